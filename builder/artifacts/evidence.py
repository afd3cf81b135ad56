"""Why a row has its label: the trials behind it. Internal: evidence names models."""

from __future__ import annotations

from collections import Counter
from typing import Any

from stepdown.builder.artifacts.labelled import LabelledInstance
from stepdown.builder.config.pool import Pool
from stepdown.builder.run.ledger import Purpose, TrialRecord


def evidence_of(instance: LabelledInstance, index: int, pool: Pool) -> dict[str, Any]:
    """Why a step has its label: every trial that was executed for it, in order. Internal: it names models."""
    lock, record = instance.locks[index - 1], instance.record
    tiers = pool.tiers
    return {
        "id": f"{record.benchmark}/{record.instance_id}/{index}",
        "group": record.group,
        "basis": "executed",
        "lock": {"tier": tiers[lock.tier].name, "model": lock.model},
        "hint": tiers[instance.hints[index]].name if index in instance.hints else None,
        "trials": [
            trial_evidence(trial, tiers[trial.trial.tier].name) for trial in _search_trials(instance, index, pool)
        ],
        **_fresh_draws("confirm", [t for t in instance.trials if t.purpose is Purpose.CONFIRM]),
        **_fresh_draws(
            "control", [t for t in instance.trials if t.purpose is Purpose.CONTROL and t.trial.step == index]
        ),
    }


def trial_evidence(record: TrialRecord, tier: str) -> dict[str, Any]:
    """A trial as evidence shows it; `tier` is the name of its tier."""
    return {
        "tier": tier,
        "model": record.trial.model,
        "sample": record.trial.sample.number,
        "limit": record.trial.limit,
        "verdict": record.verdict.value,
        **({"state": record.state.value} if record.state is not None else {}),
        "accepted": record.accepted,
        "calls": record.calls,
        "reason": record.reason,
        **({"grading": record.grading} if record.grading is not None else {}),
    }


def _fresh_draws(name: str, trials: list[TrialRecord]) -> dict[str, Any]:
    """Fresh executions, where the protocol asks for them: how many, how many were accepted, and their verdicts."""
    if not trials:
        return {}
    verdicts = Counter(trial.verdict.value for trial in trials)
    accepted = sum(trial.accepted for trial in trials)
    return {name: {"of": len(trials), "accepted": accepted, "verdicts": dict(sorted(verdicts.items()))}}


def _search_trials(instance: LabelledInstance, index: int, pool: Pool) -> list[TrialRecord]:
    """A step's trials in the protocol's order: tiers as they were probed, models as the cascade has them, samples.

    Models that are probed together are recorded as they end, which is no order of the protocol's.
    """
    found = [trial for trial in instance.trials if trial.purpose is Purpose.SEARCH and trial.trial.step == index]
    tiers = list(dict.fromkeys(trial.trial.tier for trial in found))
    models = [model.name for _, model in pool.models()]
    return sorted(
        found,
        key=lambda record: (
            tiers.index(record.trial.tier),
            models.index(record.trial.model),
            record.trial.sample.number,
        ),
    )
