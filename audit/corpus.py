"""A run's labelled steps, and the sample that is drawn from them into the audit's store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict

from audit.carry import models_below
from audit.sampling import Plan, assigned, chosen
from audit.store import AuditStore
from audit.verdicts import Choice
from builder.build import harness_of
from builder.config import Protocol
from builder.errors import BadInput
from builder.ledger import Ledger, State
from builder.pool import Tier

SPLIT, PLANS = "split", "plans"
"""Names under which the store keeps how steps are shared out, and every plan that was drawn by."""


def audited(protocol: Protocol, include: Collection[str] = ()) -> list[str]:
    """The workloads whose steps are audited: those of several steps, and those that are named. Runs their code.

    Judged workloads of one turn have a judge calibrated against people instead. Raises BadInput: an unknown name.
    """
    names: dict[str, bool] = {}
    for index, workload in enumerate(protocol.workloads):
        harness = harness_of(workload, f"protocol.workloads.{index}.harness")
        names[harness.name] = names.get(harness.name, False) or harness.multi_step
    if unknown := sorted(set(include) - set(names)):
        raise BadInput(f"the run has no workload {unknown[0][:100]!r}: {', '.join(sorted(names))}", field="--include")
    return [name for name, multi_step in names.items() if multi_step or name in include]


def labelled_steps(ledger: Ledger, tiers: Sequence[Tier]) -> dict[tuple[str, str], int]:
    """How many labelled steps the run has, by workload and label."""
    counts: Counter[tuple[str, str]] = Counter()
    for record in ledger.instances(State.DONE):
        counts.update((record.benchmark, tiers[lock.tier].name) for lock in record.locks)
    return dict(counts)


def corpus(ledger: Ledger, protocol: Protocol, workloads: Collection[str]) -> Iterator[Choice]:
    """Every labelled step of the workloads, in the run's order; one instance in memory at a time."""
    tiers = protocol.pool.tiers
    below = [models_below(tiers, index) for index in range(len(tiers))]
    named = [(tier.name, tier.id) for tier in tiers]
    for record in ledger.instances(State.DONE):
        if record.benchmark not in workloads:
            continue
        benchmark, instance_id = record.benchmark, record.instance_id
        start = f"{benchmark}/{instance_id}/"
        for index, lock in enumerate(record.locks, 1):
            tier, tier_id = named[lock.tier]
            yield Choice(
                f"{start}{index}", benchmark, instance_id, index, tier, tier_id, lock.tier == 0, below[lock.tier]
            )


def draw(store: AuditStore, ledger: Ledger, protocol: Protocol, plan: Plan, workloads: Collection[str]) -> int:
    """Add the plan's sample to the store, where a step that is in it stays, whatever the plan; how many are new."""
    new = store.add(chosen(plan, lambda: corpus(ledger, protocol, workloads)))
    plans = store.meta(PLANS) or []
    if (drawn_by := asdict(plan)) not in plans:
        store.set_meta(PLANS, [*plans, drawn_by])
    return new


def share_out(store: AuditStore, reviewers: Sequence[str], overlap: float, seed: int) -> None:
    """Assign what is assigned to nobody yet: a share `overlap` to all of the reviewers, the rest to one of them each.

    Without reviewers, as it was shared out before. A reviewer's queue is what is assigned to them.
    """
    if reviewers:
        store.set_meta(SPLIT, {"reviewers": list(reviewers), "overlap": overlap, "seed": seed})
    split = store.meta(SPLIT)
    if split:
        names = tuple(split["reviewers"])
        store.assign(list(assigned(store.unassigned(), names, split["overlap"], split["seed"])), names)
