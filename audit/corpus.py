"""Draws the sample of a run's labelled steps into the audit's store, and gives its steps to reviewers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from stepdown.audit.plans import keep_plan
from stepdown.audit.reviewers import SPLIT
from stepdown.audit.sampling import SamplingPlan, assignments, sampled_steps
from stepdown.audit.settling import ReviewOutcome, review_outcome
from stepdown.audit.store import AuditStore
from stepdown.audit.verdict_basis import models_below
from stepdown.audit.verdicts import AuditStep
from stepdown.builder.config.pool import Tier
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.engine.workloads import load_harness
from stepdown.builder.errors import BadInput
from stepdown.builder.run.ledger import Ledger


def load_audited_workloads(protocol: ProtocolConfig, include: Collection[str] = ()) -> list[str]:
    """The workloads whose steps are audited: those with several steps a task, and those that `include` names.

    Loads their harnesses, which runs their code. Workloads with one step a task are left out: where a judge grades
    them, it is calibrated against people. Raises BadInput for an unknown name.
    """
    names: dict[str, bool] = {}
    for index, workload in enumerate(protocol.workloads):
        harness = load_harness(workload, f"protocol.workloads.{index}.harness")
        names[harness.name] = names.get(harness.name, False) or harness.multi_step
    if unknown := sorted(set(include) - set(names)):
        raise BadInput(f"the run has no workload {unknown[0][:100]!r}: {', '.join(sorted(names))}", field="--include")
    return [name for name, multi_step in names.items() if multi_step or name in include]


def count_labelled_steps(ledger: Ledger, tiers: Sequence[Tier]) -> dict[tuple[str, str], int]:
    """Count the labelled steps of the run, by workload and label."""
    counts: Counter[tuple[str, str]] = Counter()
    for benchmark, _, places in ledger.labels():
        counts.update((benchmark, tiers[place].name) for place in places)
    return dict(counts)


def read_labelled_steps(ledger: Ledger, protocol: ProtocolConfig, workloads: Collection[str]) -> Iterator[AuditStep]:
    """Read every labelled step of the workloads, in the run's order, with one instance in memory at a time."""
    tiers = protocol.pool.tiers
    below = [models_below(tiers, index) for index in range(len(tiers))]
    named = [(tier.name, tier.id) for tier in tiers]
    for benchmark, instance_id, places in ledger.labels():
        if benchmark not in workloads:
            continue
        start = f"{benchmark}/{instance_id}/"
        for index, place in enumerate(places, 1):
            tier, tier_id = named[place]
            yield AuditStep(f"{start}{index}", benchmark, instance_id, index, tier, tier_id, place == 0, below[place])


def draw_sample(
    store: AuditStore, ledger: Ledger, protocol: ProtocolConfig, plan: SamplingPlan, workloads: Collection[str]
) -> int:
    """Add the plan's sample to the store, and return how many steps are new. Steps that are in the store stay in it."""
    new = store.add(sampled_steps(plan, lambda: read_labelled_steps(ledger, protocol, workloads)))
    keep_plan(store, plan, workloads)
    return new


def assign_disputed_steps(store: AuditStore, reviewer: str) -> int:
    """Assign the steps on which reviewers disagree, and nothing else, to a further reviewer; return how many.

    Where there are none, the reviewer becomes known all the same, with an empty queue.

    Raises BadInput where the reviewer has a queue of all steps already.
    """
    if reviewer in store.reviewers.names() and store.reviewers.reviews_everything(reviewer):
        raise BadInput(f"{reviewer!r} reviews every step already: name somebody else", field="--settle")
    disputed = [
        one.step.id
        for one in store.reviewed()
        if review_outcome(one) is ReviewOutcome.DISAGREE and reviewer not in {said.reviewer for said in one.said}
    ]
    if disputed:
        store.reviewers.note_settling(reviewer, disputed)
    store.reviewers.assign([(reviewer, step) for step in disputed], [reviewer])
    return len(disputed)


def share_out_steps(store: AuditStore, reviewers: Sequence[str], overlap: float, seed: int) -> None:
    """Assign the steps that nobody has yet: a share `overlap` of them to all reviewers, each of the others to one.

    Without reviewers, steps are shared out as the time before. A reviewer's queue is what is assigned to them.
    """
    if reviewers:
        store.set_meta(SPLIT, {"reviewers": list(reviewers), "overlap": overlap, "seed": seed})
    split = store.meta(SPLIT)
    if split:
        names = tuple(split["reviewers"])
        store.reviewers.assign(list(assignments(store.unassigned(), names, split["overlap"], split["seed"])), names)
