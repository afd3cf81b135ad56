"""The grid of probes: what every model of the pool came to at every step that was probed. Internal: it names models.

A line for each step and model, with the columns of a table of outcomes as `stepdown compare` reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stepdown.builder.artifacts.labelled import LabelledInstance
from stepdown.builder.config.price import Price
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.engine.probing import probed_steps
from stepdown.builder.records import Usage, Verdict
from stepdown.builder.run.ledger import Ledger, Purpose, TrialRecord


def probes_of(instance: LabelledInstance, protocol: ProtocolConfig, ledger: Ledger) -> Iterator[dict[str, Any]]:
    """The lines of an instance: its steps in order, and of each the models of the pool, cheapest tier first.

    Cells that nothing was executed for yet are left out.
    """
    found, record, pool = _outcomes(instance), instance.record, protocol.pool
    for step in probed_steps(protocol.rules, len(instance.locks)):
        for tier, model in pool.models():
            trial = found.get((step, model.name))
            if trial is None:
                continue
            is_known = trial.verdict is not Verdict.TECHNICAL
            yield {
                "item": f"{record.benchmark}/{record.instance_id}/{step}",
                "group": record.group,
                "step": step,
                "steps": len(instance.locks),
                "label": pool.tiers[instance.locks[step - 1].tier].name,
                "tier": pool.tiers[tier].name,
                "model": model.name,
                "outcome": int(trial.accepted) if is_known else None,
                "verdict": trial.verdict.value,
                **({"state": trial.state.value} if trial.state is not None else {}),
                "cost": _cost(ledger, trial, protocol.prices) if is_known else None,
                "calls": trial.calls,
                "reason": trial.reason,
            }


def _outcomes(instance: LabelledInstance) -> dict[tuple[int, str], TrialRecord]:
    """What each model came to at each step: the first draw of the search where that has a verdict, else the probe."""
    found: dict[tuple[int, str], TrialRecord] = {}
    for trial in instance.trials:
        cell = trial.trial.step, trial.trial.model
        if trial.purpose is Purpose.PROBE:
            found.setdefault(cell, trial)
        elif trial.purpose is Purpose.SEARCH and _is_first_with_a_verdict(trial):
            found[cell] = trial
    return found


def _is_first_with_a_verdict(trial: TrialRecord) -> bool:
    return trial.trial.sample.number == 0 and trial.verdict is not Verdict.TECHNICAL


def _cost(ledger: Ledger, trial: TrialRecord, prices: Mapping[str, Price]) -> float | None:
    """USD of the model's own call at the step, at list price; None where it came to no answer.

    Nothing of it counts as read from a provider's prompt cache: what that held depends on what was asked just before.
    """
    answer = ledger.trajectories.candidate_response(trial.id, trial.trial.step)
    if answer is None:
        return None
    usage = Usage(prompt=answer.usage.prompt, completion=answer.usage.completion)
    return round(prices[trial.trial.model].cost(usage), 9)
