"""Keeps the values of key variables out of whatever is stored or shown."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from urllib.parse import quote

from stepdown.builder.records import clean_text

_KEY_VARIABLE = re.compile(r"(API_?KEY|API_?TOKEN|ACCESS_?KEY|ACCESS_?TOKEN|SECRET|AUTH_?TOKEN|HF_TOKEN)[A-Z_]*$")
_LONGEST_LINE = 300
_SHORTEST_KEY = 4
_SHORTEST_REAL_KEY = 12
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@lru_cache(maxsize=1024)
def _is_telling(name: str) -> bool:
    """Whether a variable of this name holds a key, whoever set it."""
    return _KEY_VARIABLE.search(name.upper()) is not None


class Secrets:
    """Takes the values of key variables out of texts: of those with telling names, and of those that a config names."""

    def __init__(self, variables: Iterable[str] = ()) -> None:
        self._variables = frozenset(variables)

    def know(self, variables: Iterable[str]) -> None:
        """These hold keys too, whatever they are called."""
        self._variables |= frozenset(variables)

    def line(self, text: str) -> str:
        """The text as one short line that is safe to store and show: no keys, no control characters."""
        text = " ".join(_CONTROL.sub(" ", clean_text(self.hidden(text))).split())
        return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "\u2026"

    def hidden(self, text: str) -> str:
        """An error's text without keys."""
        return _without(self._held(_SHORTEST_KEY), text)

    def removed(self, text: str) -> str:
        """A model's or a grader's text without keys. Short values are placeholders such as `none`, and words."""
        return self.remover()(text)

    def remover(self) -> Callable[[str], str]:
        """`removed` for many texts, with the keys that the environment holds now."""
        return partial(_without, self._held(_SHORTEST_REAL_KEY))

    def _held(self, shortest: int) -> list[tuple[str, str]]:
        """Every form of every key that the environment holds, and what stands in for it."""
        names = [name for name in list(os.environ) if name in self._variables or _is_telling(name)]
        values = [(name, value) for name in names if len(value := os.environ.get(name, "").strip()) >= shortest]
        return [(form, f"[{name}]") for name, value in values for form in _forms(value)]


def _without(held: Iterable[tuple[str, str]], text: str) -> str:
    for form, shown in held:
        text = text.replace(form, shown)
    return text


def _forms(value: str) -> set[str]:
    """A key as it may stand in a text: itself, in JSON, in an address."""
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe="")}


SECRETS = Secrets()
"""The process's own: standard error and a run's records are one for all that it does. Told of every config's keys."""
