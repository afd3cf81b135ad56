"""Argilla: records in the form of its `Record.to_dict`, for a dataset that is made with `SETTINGS`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from stepdown.audit.exchange.json_arrays import read_json_array, write_json_array
from stepdown.audit.exchange.records import (
    ExchangeFormat,
    IncomingAnswer,
    OutgoingStep,
    account_id,
    lower_answers_text,
    message_text,
    question,
    record_id,
    tool_list,
    transcript,
)
from stepdown.audit.verdicts import AuditVerdict

SUBMITTED, COMPLETED = "submitted", "completed"
SETTINGS: Mapping[str, Any] = {
    "guidelines": "Would one tier lower still handle this step?",
    "fields": ["question", "prefix", "tools", "response", "lower"],
    "questions": [
        {"name": "verdict", "type": "label_selection", "labels": [verdict.value for verdict in AuditVerdict]},
        {"name": "notes", "type": "text", "required": False},
    ],
    "metadata": ["digest", "reviewer", "target_tier", "below", "step"],
}


def _write(steps: Iterable[OutgoingStep], out: TextIO) -> int:
    return write_json_array(map(argilla_record, steps), out)


def argilla_record(step: OutgoingStep) -> dict[str, Any]:
    """A step as a record, in the form of `Record.to_dict`."""
    case = step.case
    user = account_id(step.reviewer)
    responses: dict[str, Any] = {}
    if step.verdict is not None:
        responses["verdict"] = [{"value": step.verdict.value, "user_id": user, "status": "submitted"}]
        if step.notes:
            responses["notes"] = [{"value": step.notes, "user_id": user, "status": "submitted"}]
    return {
        "id": record_id(case.id, step.reviewer),
        "fields": {
            "question": question(case),
            "prefix": transcript(case),
            "tools": tool_list(case) or "none",
            "response": message_text(case.response) or "(empty)",
            "lower": lower_answers_text(case.lower) or "nothing was tried one tier lower",
        },
        "metadata": {
            "row": case.id,
            "digest": case.prefix_digest,
            "reviewer": step.reviewer,
            "target_tier": case.tier,
            "below": case.below or "",
            "step": f"{case.step_index} of {case.total_steps}",
        },
        "suggestions": {},
        "responses": responses,
    }


def _read(path: Path) -> Iterator[IncomingAnswer]:
    return read_records(read_json_array(path))


def read_records(records: Iterable[Any]) -> Iterator[IncomingAnswer]:
    """The answers of records, one for everyone who answered; what was not submitted is told as that."""
    for number, record in enumerate(records, 1):
        try:
            metadata = dict(record["metadata"])
            users = _by_user(record.get("responses") or {}, record.get("status"))
        except (KeyError, TypeError, ValueError, AttributeError):
            yield IncomingAnswer(None, number, problem="not a record with `metadata` and `responses`")
            continue
        for user, found in users.items():
            step = metadata.get("row"), metadata.get("digest"), metadata.get("reviewer")
            if found.twice:
                yield IncomingAnswer(None, number, *step, problem=f"two answers of one user to {found.twice!r}")
            if found.submitted:
                verdict, notes = map(found.submitted.get, ("verdict", "notes"))
                yield IncomingAnswer(None, number, *step, verdict, notes, account=user)
            if found.unsubmitted:
                yield IncomingAnswer(None, number, *step, account=user, unsubmitted=found.unsubmitted)


@dataclass(slots=True)
class _UserAnswers:
    """What one user has answered in a record."""

    submitted: dict[str, Any] = field(default_factory=dict)
    """Values by question."""
    unsubmitted: str = ""
    """The status of the rest, if there is any."""
    twice: str = ""
    """A question that has two answers."""


def _by_user(responses: Mapping[str, Any], record_status: object) -> dict[str, _UserAnswers]:
    answers = [(name, answer) for name, given in responses.items() for answer in given]
    people = {str(answer.get("user_id", "")) for _, answer in answers}
    found: dict[str, _UserAnswers] = defaultdict(_UserAnswers)
    for name, answer in answers:
        user = found[str(answer.get("user_id", ""))]
        status = answer.get("status") or _status_by_record(record_status, len(people))
        if status != SUBMITTED:
            user.unsubmitted = str(status)
        elif name in user.submitted:
            user.twice = name
        else:
            user.submitted[name] = answer["value"]
    return found


def _status_by_record(status: object, people: int) -> str:
    """The status of answers that have none of their own, as in `Record.to_dict`.

    A record is completed once enough people have submitted. Where one person has answered, that was the answer; of
    several, somebody's may still be a draft.
    """
    if status == COMPLETED and people == 1:
        return SUBMITTED
    return (
        f"no status in a record of {people} people" if status == COMPLETED else f"record {status or 'without status'}"
    )


FORMAT = ExchangeFormat(_write, _read, {".settings.json": json.dumps(SETTINGS, indent=1) + "\n"})
