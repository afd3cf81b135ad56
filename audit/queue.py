"""The audit queue's file: a record for each row that the protocol's own rate samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from audit.cases import LowerAnswer, shown
from builder.records import Response


def queue_entry(row: Mapping[str, Any], locked: Response, lower: Iterable[LowerAnswer]) -> dict[str, Any]:
    """The queue's record of a row: the row itself, the response that was locked, and the trials one tier lower."""
    return {
        **row,
        "response": shown(locked),
        "lower": [
            {"response": trial.response, "verdict": trial.verdict.value, "reason": trial.reason} for trial in lower
        ],
    }
