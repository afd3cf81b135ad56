"""What work on an instance is given: the instance itself, and what all instances of a run share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from stepdown.builder.cache.responses import Answers
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.engine.calls import OnCall, Provider
from stepdown.builder.engine.hints import HintSource
from stepdown.builder.engine.search import SearchRules
from stepdown.builder.engine.workloads import LoadedWorkload
from stepdown.builder.records import Instance
from stepdown.builder.run.budget import BudgetGuard
from stepdown.builder.run.ledger import InstanceRecord, LabellingLedger
from stepdown.judges.exam.watch import ExamWatch


@dataclass(frozen=True, slots=True)
class Job:
    """An instance to work at: its record in the ledger, its task, and its workload."""

    record: InstanceRecord
    instance: Instance
    workload: LoadedWorkload


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all instances of a run share."""

    protocol: ProtocolConfig
    ledger: LabellingLedger
    cache: Answers
    provider: Provider
    hints: HintSource | None
    """None where every step starts at the cheapest tier."""
    stop: threading.Event
    """Set from outside to end the work: no further step of any trial is begun."""
    on_call: OnCall | None = None
    on_lock: Callable[[], None] = lambda: None
    """Told whenever a step's search has ended."""
    on_blocked: Callable[[Instance, str], None] = lambda instance, reason: None
    """Told of every instance that a technical error blocks, with the reason."""
    budget: BudgetGuard | None = None
    """The run's budget; None: without limit."""
    speculate: int = 0
    """How many trials an instance's search may be ahead of what it has asked for."""
    exam: ExamWatch | None = None
    """What probes say of the run's judges; None where nobody watches."""


def search_rules(protocol: ProtocolConfig) -> SearchRules:
    """The search's rules as the config states them."""
    rules, pool = protocol.rules, protocol.pool
    return SearchRules(
        cascades=[[model.name for model in tier.models[: rules.cascade]] for tier in pool.tiers[:-1]],
        same_length=rules.step_rule == "same",
        passes=rules.acceptance.passes,
        of=rules.acceptance.of,
    )
