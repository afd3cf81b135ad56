"""The audit queue: for each row that the protocol's own rate samples, what a reviewer is shown. It names no model.

Rows of the lowest tier are not in it: nothing is below them, so they settle themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from stepdown.builder.artifacts.rows import Row
from stepdown.builder.config.pool import Model, Pool
from stepdown.builder.records import Message, Response, Verdict, assistant_message
from stepdown.builder.run.ledger import Ledger, Purpose, TrialRecord

MASKED = "[model]"


@dataclass(frozen=True, slots=True)
class LowerAnswer:
    """What one candidate of the tier below the label answered, and why its trial did not count."""

    number: int
    """The candidate's place in its tier's cascade, from 1; one that was drawn several times has one number."""
    response: Message | None
    """None where it came to no answer."""
    verdict: Verdict
    reason: str


def read_lower_answers(
    ledger: Ledger, trials: Iterable[TrialRecord], step: int, tier: int, pool: Pool, mask: NameMask
) -> Iterator[LowerAnswer]:
    """What the candidates one tier below a step's label (`tier`, an index) answered.

    In the cascade's order: models that were probed together are recorded as they ended, which may give them away.
    """
    cascade = [model.name for model in pool.tiers[tier - 1].models] if tier > 0 else []
    found = [
        trial
        for trial in trials
        if trial.purpose is Purpose.SEARCH
        and not trial.superseded
        and (trial.trial.step, trial.trial.tier) == (step, tier - 1)
        and trial.verdict is not Verdict.TECHNICAL
    ]
    for trial in sorted(found, key=lambda one: (cascade.index(one.trial.model), one.trial.sample.number)):
        number = cascade.index(trial.trial.model) + 1
        response = ledger.trajectories.candidate_response(trial.id, step)
        yield LowerAnswer(number, shown_response(response) if response else None, trial.verdict, mask(_why(trial)))


def shown_response(response: Response) -> Message:
    """The response as a reviewer sees it: the message, without reasoning and provider fields."""
    return assistant_message(response)


def _why(trial: TrialRecord) -> str:
    """Why a trial did not count; a pass has no reason of its own."""
    if trial.reason or trial.verdict is not Verdict.PASS:
        return trial.reason
    if trial.accepted:
        return "accepted, but too few of the candidate's samples were"
    return f"passed in {trial.calls} calls where {trial.trial.limit} were to be made"


class NameMask:
    """Replaces models' names in text that trials quote: a reviewer who knows the model would judge the name."""

    def __init__(self, models: Iterable[Model]) -> None:
        names: set[str] = set()
        for model in models:
            names |= {model.name, model.model, model.model.rpartition("/")[2], model.revision or ""}
        # The longest first: a name may begin another one.
        known = sorted(filter(None, names), key=lambda name: (-len(name), name))
        pattern = "|".join(map(re.escape, known))
        self._names = re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])", re.IGNORECASE)

    def __call__(self, text: str) -> str:
        return self._names.sub(MASKED, text)


def queue_entry(row: Row, locked: Response, lower: Iterable[LowerAnswer]) -> dict[str, Any]:
    """The queue's record of a row: the row itself, the response that was locked, and the trials one tier lower."""
    return {
        **row.to_json(),
        "response": shown_response(locked),
        "lower": [
            {"response": trial.response, "verdict": trial.verdict.value, "reason": trial.reason} for trial in lower
        ],
    }
