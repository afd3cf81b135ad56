"""What a run of the same workloads says for an estimate: what it saw, and the calls that it needed."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.estimate.arithmetic import Amount, AmountByModel, StepSize, StepSizes
from stepdown.builder.estimate.playing import SeedSize, sizes_of
from stepdown.builder.records import Usage, Verdict
from stepdown.builder.run.ledger import BESIDE_LABELS, CallTotal, InstanceState, Ledger
from stepdown.builder.run.spent import Spent


@dataclass(frozen=True, slots=True)
class FailedSeed:
    """The attempts at a seed of which none passed: what they took, by model, and the steps of the longest."""

    took: Mapping[str, Amount]
    longest: int


@dataclass(frozen=True, slots=True)
class SeenInRun:
    """What a run saw that an estimate goes by. Keys of instances are (benchmark, instance id)."""

    seeds: Mapping[tuple[str, str], SeedSize] = field(default_factory=dict)
    failed: Mapping[tuple[str, str], FailedSeed] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Labelled steps by benchmark and tier."""
    outputs: Mapping[str, float] = field(default_factory=dict)
    """Tokens of a model's mean answer, of models whose provider counted them."""
    calls: int = 0
    retried: int = 0
    """Calls that it needed, and errors that were met by another try."""

    def mean_sizes(self, benchmark: str) -> StepSizes:
        """A seed of mean length, rounded up, whose steps are as those of the run's seeds in the mean; empty where the
        run has none.
        """
        all_sizes = [seed.sizes for (name, _), seed in self.seeds.items() if name == benchmark]
        length = rounded_mean([len(sizes) for sizes in all_sizes]) or 0
        return tuple(_mean_step([sizes[n] for sizes in all_sizes if len(sizes) > n]) for n in range(length))

    def failing_share(self, benchmark: str) -> float:
        """The share of a benchmark's instances that came to no seed."""
        failed, found = (sum(name == benchmark for name, _ in group) for group in (self.failed, self.seeds))
        return failed / (failed + found) if failed else 0.0

    def mean_failed(self, benchmark: str) -> Mapping[str, Amount]:
        """What an instance without a seed took in the mean, by model."""
        failed = [one.took for (name, _), one in self.failed.items() if name == benchmark]
        total = AmountByModel()
        for took in failed:
            for model, amount in took.items():
                total.add(model, amount, 1 / len(failed))
        return total.by_model

    def label_shares(self, benchmark: str, tiers: Sequence[str]) -> list[float] | None:
        """The run's shares of labels in these tiers; None where it labelled nothing, or in tiers of other names."""
        counts = self.labels.get(benchmark, {})
        total = sum(counts.values())
        if not total or not set(counts) <= set(tiers):
            return None
        return [counts.get(tier, 0) / total for tier in tiers]


def _mean_step(steps: Sequence[StepSize]) -> StepSize:
    count = len(steps)
    return StepSize(sum(step.prompt for step in steps) // count, sum(step.output for step in steps) // count)


def read_seen(ledger: Ledger) -> SeenInRun:
    """What a run saw so far, with the tokens as providers counted them where they did."""
    seeds: dict[tuple[str, str], SeedSize] = {}
    failed: dict[tuple[str, str], FailedSeed] = {}
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    tiers = ledger.meta.run.tiers
    for record in ledger.instances():
        key = record.benchmark, record.instance_id
        if record.seed is not None:
            trajectory = ledger.trajectories.read(record.seed)
            seeds[key] = SeedSize(trajectory[0].model, sizes_of(trajectory), "as the run had them")
            labels[record.benchmark].update(tiers[lock.tier] for lock in record.locks)
        elif record.state is InstanceState.DROPPED and (found := _failed_seed(ledger, record.id)) is not None:
            failed[key] = found
    totals = [total for total in ledger.call_totals() if total.purpose not in BESIDE_LABELS]
    return SeenInRun(
        seeds, failed, labels, _mean_outputs(totals), sum(one.calls for one in totals), ledger.retried_errors()
    )


def _failed_seed(ledger: Ledger, instance: int) -> FailedSeed | None:
    """The attempts at an instance's seed; None where none was made, or one has no verdict."""
    trials = [trial for trial in ledger.trials(instance) if not trial.superseded]
    if not trials or any(trial.verdict is Verdict.TECHNICAL for trial in trials):
        return None
    took = AmountByModel()
    for call in ledger.calls(instance):
        took.add(call.model, Amount(1, call.usage.prompt, call.usage.completion))
    return FailedSeed(took.by_model, max(1, *(trial.calls for trial in trials)))


def _mean_outputs(totals: Sequence[CallTotal]) -> dict[str, float]:
    calls: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for total in totals:
        calls[total.model] += total.calls
        tokens[total.model] += total.usage.completion
    return {model: tokens[model] / calls[model] for model in calls if tokens[model]}


def rounded_mean(lengths: Sequence[int]) -> int | None:
    """The mean, rounded up; None where there are no lengths."""
    return math.ceil(sum(lengths) / len(lengths)) if lengths else None


@dataclass(frozen=True, slots=True)
class NeededAndPaid:
    """A run's calls of one model: all that its protocol needed, and those that it paid for itself."""

    needed: Spent
    paid: Spent


def read_needed_and_paid(ledger: Ledger, protocol: ProtocolConfig) -> dict[str, NeededAndPaid]:
    """What a run needed and paid, by model, at its own pool's prices."""
    found: dict[str, NeededAndPaid] = {}
    for total in ledger.call_totals():
        if total.purpose in BESIDE_LABELS:
            continue
        model = protocol.models.get(total.model)
        price: Callable[[Usage], float] = model.price.cost if model else lambda usage: 0.0
        spent = Spent(total.calls, price(total.usage))
        before = found.get(total.model, NeededAndPaid(Spent(), Spent()))
        found[total.model] = NeededAndPaid(before.needed + spent, before.paid + spent if total.paid else before.paid)
    return found
