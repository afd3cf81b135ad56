"""Lists of words by language, as files with lines such as `en: a an the`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def words_by_language(name: str) -> dict[str, frozenset[str]]:
    """The words of a list, by the code of their language."""
    lines = (files(__package__) / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return {language: frozenset(listed.split()) for language, _, listed in (line.partition(": ") for line in lines)}
