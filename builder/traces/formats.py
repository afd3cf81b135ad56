"""The formats of traces that are read, and which of them a file has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from stepdown.builder.traces import langfuse, langsmith, openai, opentelemetry
from stepdown.builder.traces.calls import ChatCall, LeftOut
from stepdown.builder.traces.documents import Record

INSPECT = "inspect"
ENDINGS = (".json", ".jsonl", ".ndjson", ".eval", ".json.gz", ".jsonl.gz")
"""How names of files end that are looked for in a folder."""


@dataclass(frozen=True, slots=True)
class Format:
    """What tells that a record is of a format, and the calls of such a record."""

    what: str
    is_one: Callable[[Any], bool]
    calls: Callable[[Record], Iterable[ChatCall | LeftOut]]


FORMATS = {
    "otel": Format("OpenTelemetry spans of models", opentelemetry.is_one, opentelemetry.calls),
    "langsmith": Format("runs of LangSmith", langsmith.is_one, langsmith.calls),
    "langfuse": Format("traces or observations of Langfuse", langfuse.is_one, langfuse.calls),
    "openai": Format("a chat log with requests and responses", openai.is_one, openai.calls),
}
"""Formats that hold calls, in the order in which they are tried; logs of inspect_ai hold trajectories."""
NAMES = (*FORMATS, INSPECT)
