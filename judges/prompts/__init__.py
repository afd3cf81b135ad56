"""The words that a judge model is given, as files. A changed word is another judge: their digest enters cache keys."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from stepdown.builder.records import digest, exact_digest
from stepdown.judges.report import tool

NAMES = ("rubric", "rag", "meeting", "question")


@cache
def prompt(name: str) -> str:
    """The text of a prompt file."""
    return (files(__package__) / f"{name}.txt").read_text(encoding="utf-8")


@cache
def prompts_digest() -> str:
    """Of all prompt files and the report's schema."""
    return digest([*((name, prompt(name)) for name in NAMES), exact_digest(tool())])
