"""JSONL: one step a line with all that a reviewer is shown; the reviewer fills in `verdict` and `notes`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from stepdown.audit.exchange.records import ExchangeFormat, IncomingAnswer, OutgoingStep, parsed_json
from stepdown.builder.config.validation import read_text


def _write(steps: Iterable[OutgoingStep], out: TextIO) -> int:
    count = 0
    for step in steps:
        case = step.case
        record = {
            "id": case.id,
            "reviewer": step.reviewer,
            "verdict": step.verdict.value if step.verdict else None,
            "notes": step.notes,
            "prefix": case.prefix_digest,
            "benchmark": case.benchmark,
            "instance_id": case.instance_id,
            "step_index": case.step_index,
            "total_steps": case.total_steps,
            "target_tier": case.tier,
            "target_tier_id": case.tier_id,
            "below": case.below,
            "messages": list(case.messages),
            "tools": list(case.tools),
            "response": case.response,
            "lower": [
                {
                    "candidate": answer.number,
                    "response": answer.response,
                    "verdict": answer.verdict.value,
                    "reason": answer.reason,
                }
                for answer in case.lower
            ],
        }
        out.write(json.dumps(record, ensure_ascii=True) + "\n")
        count += 1
    return count


def _read(path: Path) -> Iterator[IncomingAnswer]:
    item = 0
    for number, text in enumerate(read_text(path).split("\n"), 1):
        if not text.strip():
            continue
        item += 1
        try:
            record = parsed_json(text)
        except (ValueError, RecursionError) as error:
            yield IncomingAnswer(number, item, problem=f"not JSON: {getattr(error, 'msg', error)}")
            continue
        if not isinstance(record, dict):
            yield IncomingAnswer(number, item, problem="not an object")
            continue
        row_id, prefix_digest, reviewer, verdict, notes = map(
            record.get, ("id", "prefix", "reviewer", "verdict", "notes")
        )
        yield IncomingAnswer(number, item, row_id, prefix_digest, reviewer, verdict, notes)


FORMAT = ExchangeFormat(_write, _read, {})
