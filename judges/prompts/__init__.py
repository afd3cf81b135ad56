"""The prompts of a judge model, as files. Their digest enters cache keys: a changed word makes another judge."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from stepdown.builder.records import digest, exact_digest
from stepdown.judges.report import report_tool

NAMES = ("rubric", "rag", "meeting", "question")
"""Of what a case is judged by. Whether an agent refused is asked apart, and has a version of its own."""


@cache
def prompt(name: str) -> str:
    """The text of a prompt file."""
    return (files(__package__) / f"{name}.txt").read_text(encoding="utf-8")


@cache
def prompts_digest() -> str:
    """The digest of the prompts by which a case is judged, and of the report's schema."""
    return digest([*((name, prompt(name)) for name in NAMES), exact_digest(report_tool())])
