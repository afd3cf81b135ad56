"""Argilla: records in the form of its `Record.to_dict`, for a dataset that is made with `SETTINGS`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
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
    tool_list,
    transcript,
)
from stepdown.audit.verdicts import AuditVerdict

SETTINGS = {
    "guidelines": "Would one tier lower still handle this step?",
    "fields": ["question", "prefix", "tools", "response", "lower"],
    "questions": [
        {"name": "verdict", "type": "label_selection", "labels": [verdict.value for verdict in AuditVerdict]},
        {"name": "notes", "type": "text", "required": False},
    ],
    "metadata": ["digest", "reviewer", "target_tier", "below", "step"],
}


def _write(steps: Iterable[OutgoingStep], out: TextIO) -> int:
    return write_json_array(map(_record, steps), out)


def _record(step: OutgoingStep) -> dict[str, Any]:
    case = step.case
    user = account_id(step.reviewer)
    responses: dict[str, Any] = {}
    if step.verdict is not None:
        responses["verdict"] = [{"value": step.verdict.value, "user_id": user, "status": "submitted"}]
        if step.notes:
            responses["notes"] = [{"value": step.notes, "user_id": user, "status": "submitted"}]
    return {
        # A step that two people review is two records, so the reviewer is part of the id.
        "id": f"{case.id} {step.reviewer}" if step.reviewer else case.id,
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
    """Read the answers of exported records, one for everyone who answered, without drafts and discarded answers."""
    for number, record in enumerate(read_json_array(path), 1):
        try:
            metadata = dict(record["metadata"])
            answers = _by_user(record.get("responses") or {})
        except (KeyError, TypeError, ValueError, AttributeError):
            yield IncomingAnswer(None, number, problem="not a record with `metadata` and `responses`")
            continue
        for user, found in answers.items():
            yield IncomingAnswer(
                None,
                number,
                metadata.get("row"),
                metadata.get("digest"),
                metadata.get("reviewer"),
                found.get("verdict"),
                found.get("notes"),
                account=user,
            )


def _by_user(responses: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, given in responses.items():
        for answer in given:
            if answer.get("status", "submitted") == "submitted":
                found.setdefault(str(answer.get("user_id", "")), {})[name] = answer["value"]
    return found


FORMAT = ExchangeFormat(_write, _read, {".settings.json": json.dumps(SETTINGS, indent=1) + "\n"})
