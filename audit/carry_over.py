"""Carries audit verdicts over from the run that a new one relabels, where they still hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import replace
from pathlib import Path

from stepdown.audit.store import FILE_NAME, AuditStore
from stepdown.audit.verdict_basis import VerdictBasis, carries_over, models_below
from stepdown.audit.verdicts import AuditStep, FormerVerdict, RecordedVerdict, ReviewedStep
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Trajectory
from stepdown.builder.run.folder import open_for_reading
from stepdown.builder.run.ledger import InstanceRecord, InstanceState, Ledger

CARRIED, AGAIN, GONE = "carried", "queued again", "gone"
ITSELF = "settles itself"
"""The label is the lowest tier now: nobody is asked, and what was said is history."""


def find_earlier_run(run: Path, ledger: Ledger, named: Path | None) -> Path | None:
    """Find the folder of the run that `run` relabels; None where it relabels none or that one was not audited.

    `named` is where the user says that the earlier run is. Raises BadInput where that is another run, no run, or one
    that was not audited.
    """
    origin = ledger.meta.run.origin
    if origin is None:
        if named is not None:
            raise BadInput("the run relabels no other one: there are no verdicts to take over", file=run)
        return None
    place = named or (run.resolve() / origin.folder if origin.folder else None)
    if place is None or not place.is_dir():
        if named is not None:
            raise BadInput("no run is here", file=named)
        return None
    with open_for_reading(place) as (old, _):
        if old.meta.run.id != origin.run:
            raise BadInput("this is not the run that the new one relabels", file=place)
    if (place / FILE_NAME).is_file():
        return place
    if named is not None:
        raise BadInput("the run was never sampled for an audit", file=place)
    return None


def carry_over(store: AuditStore, ledger: Ledger, protocol: ProtocolConfig, old: Path) -> Counter[str]:
    """Carry the verdicts on the old run's steps over into the store; return how many steps had which result.

    A verdict carries over where prefix, label and the models one tier lower are the same. Else the step is queued
    again, with the old verdict as history. A step of the lowest label settles itself, whatever was said of it. In every
    case the step is in the new sample.
    """
    new = _NewRunSteps(ledger, protocol)
    counts: Counter[str] = Counter()
    with AuditStore(old) as before:
        settling = before.reviewers.settling()
        for reviewed in before.reviewed():
            if reviewed.said:
                counts[_carry_step(store, new, reviewed, settling)] += 1
    return counts


def _carry_step(store: AuditStore, new: _NewRunSteps, reviewed: ReviewedStep, settling: Set[tuple[str, str]]) -> str:
    old = reviewed.step
    found = new.step(old)
    if found is None:
        return GONE
    step, prefix_digest = found
    now = VerdictBasis(prefix_digest, step.tier, step.tier_id, step.below)
    holds: list[RecordedVerdict] = []
    former: list[FormerVerdict] = []
    for said in reviewed.said:
        then = VerdictBasis(said.prefix_digest, old.tier, old.tier_id, old.below)
        if carries_over(then, now):
            holds.append(replace(said, source=CARRIED))
        else:
            former.append(FormerVerdict(said.reviewer, said.verdict, said.notes, said.at, _changed(then, now)))
    store.add([step])
    store.carry(holds)
    store.set_former(step.id, former)
    for said in holds:
        if (said.reviewer, said.step_id) in settling:
            store.reviewers.note_settling(said.reviewer, [said.step_id])
    if step.lowest:
        return ITSELF
    if holds:
        # A step that waited for a second reviewer in the old run waits for them here too.
        store.reviewers.wait_for(step.id, {*reviewed.awaited_by, *(one.reviewer for one in former)})
    return CARRIED if not former else AGAIN


def _changed(then: VerdictBasis, now: VerdictBasis) -> str:
    if then.prefix_digest != now.prefix_digest:
        return "the prefix has changed"
    if (then.label, then.label_id) != (now.label, now.label_id):
        return f"the label has changed from {then.label} to {now.label}"
    return "the models one tier lower have changed"


class _NewRunSteps:
    """Reads the new run's steps, with one trajectory in memory."""

    def __init__(self, ledger: Ledger, protocol: ProtocolConfig) -> None:
        self._ledger, self._tiers = ledger, protocol.pool.tiers
        self._at: InstanceRecord | None = None
        self._trajectory: Trajectory = ()

    def step(self, old: AuditStep) -> tuple[AuditStep, str] | None:
        """The new run's step of the same id, and its prefix's exact digest; None where the new run has none."""
        try:
            record = self._ledger.instance(old.benchmark, old.instance_id)
        except KeyError:
            return None
        if record.state is not InstanceState.DONE or record.final is None or old.step_index > len(record.locks):
            return None
        if self._at is None or self._at.id != record.id:
            self._at, self._trajectory = record, self._ledger.trajectories.read(record.final)
        tier = record.locks[old.step_index - 1].tier
        named = self._tiers[tier]
        below = models_below(self._tiers, tier)
        step = old._replace(tier=named.name, tier_id=named.id, lowest=tier == 0, below=below)
        return step, self._trajectory[old.step_index - 1].prefix.exact
