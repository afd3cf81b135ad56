"""What a reviewer gets for a sampled step: the frozen prefix, the label, what one tier lower did. No model names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from builder.records import Message, Response, Verdict, assistant_message


@dataclass(frozen=True, slots=True)
class Lower:
    """A trial one tier below the label: what the candidate answered, and why the trial did not count."""

    response: Response | None
    verdict: Verdict
    reason: str


def queue_entry(row: Mapping[str, Any], locked: Response, lower: Iterable[Lower]) -> dict[str, Any]:
    """The queue's record of a row: the row itself, the response that was locked, and the trials one tier lower."""
    return {
        **row,
        "response": shown(locked),
        "lower": [
            {
                "response": shown(trial.response) if trial.response else None,
                "verdict": trial.verdict.value,
                "reason": trial.reason,
            }
            for trial in lower
        ],
    }


def shown(response: Response) -> Message:
    """The response as a reviewer sees it: the message, without reasoning and provider fields."""
    return assistant_message(response)
