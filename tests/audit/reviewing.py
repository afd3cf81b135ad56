"""Reviewers at work, for tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from stepdown.audit.cases import open_cases
from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import AuditStep


def review(run: Path, reviewer: str, verdict: Callable[[AuditStep], str | None], notes: str = "") -> None:
    """Answer every step of a reviewer's queue; None leaves one out."""
    with open_cases(run) as cases, AuditStore(run) as store:
        for item in store.queue(reviewer):
            step = item.step
            said = verdict(step)
            if said is not None:
                prefix = cases.read_prefix_digest(step.benchmark, step.instance_id, step.step_index)
                store.record(reviewer, step.id, said, notes, prefix_digest=prefix)


def tight(step: AuditStep) -> str:
    return "tight"


def only(verdict: str, *steps: AuditStep | str) -> Callable[[AuditStep], str]:
    """That verdict on the steps named, tight on all others."""
    ids = {step if isinstance(step, str) else step.id for step in steps}
    return lambda step: verdict if step.id in ids else "tight"


def read_steps(run: Path) -> list[AuditStep]:
    with AuditStore(run) as store:
        return list(store.steps())


def above_lowest(run: Path) -> list[AuditStep]:
    """The sampled steps that people are asked about."""
    return [step for step in read_steps(run) if not step.lowest]


def said(run: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """All that stands: verdict and notes by reviewer and step."""
    with AuditStore(run) as store:
        return {(one.reviewer, one.step_id): (one.verdict.value, one.notes) for one in store.standing()}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def by_id(records: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in records}
