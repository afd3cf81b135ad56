"""What a run's labels cost, from its ledger: by workload and tier, and what hints and early verdicts came to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stepdown.builder.config.price import Price
from stepdown.builder.records import Usage
from stepdown.builder.run.ledger import (
    BESIDE_LABELS,
    BookedCall,
    InstanceRecord,
    InstanceState,
    Ledger,
    Purpose,
    TrialRecord,
)
from stepdown.builder.run.spent import Spent

NOTHING = Spent()


@dataclass(slots=True)
class HintEffect:
    """What hints changed of a workload's search, as far as it can be told from what was executed."""

    hints: int = 0
    """Steps that had one."""
    asked: Spent = NOTHING
    """What asking for hints took."""
    left_out: Counter[int] = field(default_factory=Counter)
    """Tiers below a step's label that its hint left out, by index: without hints they would have been probed."""
    above: Spent = NOTHING
    """Trials at tiers above a step's label: without hints there would have been none."""

    def estimated(self, failed: Mapping[int, Spent]) -> Spent:
        """What the probes that were left out are taken to have cost: each as `failed` probes of its tier in the mean.

        The count is of those that have such a mean.
        """
        known = {tier: count for tier, count in self.left_out.items() if tier in failed}
        return Spent(sum(known.values()), sum(count * failed[tier].usd for tier, count in known.items()))


@dataclass(slots=True)
class EarlyEffect:
    """Trials that ended before their agent had halted, since their verdict was certain."""

    trials: int = 0
    left: Spent = NOTHING
    """Calls up to each trial's limit, and what the same steps of the trajectory that it started from were billed."""
    unpriced: int = 0
    """Trials whose remaining steps have no usage to go by; their calls are counted, their cost is not."""


@dataclass(slots=True)
class WorkloadCost:
    """List prices of all calls of one workload, whichever run paid for them."""

    labels: Counter[int] = field(default_factory=Counter)
    """Labels by index of the tier that the search found."""
    trials: dict[int, Spent] = field(default_factory=lambda: defaultdict(Spent))
    """What the trials at the labels' own steps took, by the same."""
    beside: Spent = NOTHING
    """Seeds, their verification, hints, and fresh draws of labelled instances."""
    unlabelled: Spent = NOTHING
    """All that was done for instances that have no labels."""
    failed_probes: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """USD of every probe of a tier below its step's label, by the tier's index."""
    hints: HintEffect = field(default_factory=HintEffect)
    early: EarlyEffect = field(default_factory=EarlyEffect)

    @property
    def whole(self) -> Spent:
        return sum(self.trials.values(), self.beside + self.unlabelled)

    @property
    def mean_failed(self) -> dict[int, Spent]:
        """How many probes of each tier failed, and what they cost in the mean."""
        return {tier: Spent(len(usd), sum(usd) / len(usd)) for tier, usd in self.failed_probes.items()}


@dataclass(slots=True)
class LabelCosts:
    """What the labels of a run cost."""

    workloads: dict[str, WorkloadCost]
    prices: Mapping[str, Price]
    by_model: dict[str, tuple[int, Usage]]
    """Calls and tokens by model, whichever run paid for them."""


def read_label_costs(ledger: Ledger, strong: int) -> LabelCosts:
    """What all labels of a run cost; `strong` is the index of the strong tier. Repeats and probes, which come after
    them, are not counted.
    """
    prices = ledger.meta.run.prices
    workloads: dict[str, WorkloadCost] = {}
    for record in ledger.instances():
        cost = workloads.setdefault(record.benchmark, WorkloadCost())
        _add_instance(cost, _Instance(ledger, record, prices), strong)
    by_model: dict[str, tuple[int, Usage]] = {}
    for total in ledger.call_totals():
        if total.purpose not in BESIDE_LABELS:
            calls, usage = by_model.get(total.model, (0, Usage()))
            by_model[total.model] = calls + total.calls, usage + total.usage
    return LabelCosts(workloads, prices, dict(sorted(by_model.items())))


class _Instance:
    """What the ledger has of one instance."""

    def __init__(self, ledger: Ledger, record: InstanceRecord, prices: Mapping[str, Price]) -> None:
        self.record, self._ledger, self._prices = record, ledger, prices
        self.trials = {trial.id: trial for trial in ledger.trials(record.id) if trial.purpose not in BESIDE_LABELS}
        self._taken: dict[int | None, Spent] = defaultdict(Spent)
        for call in ledger.calls(record.id):
            self._taken[call.trial] += Spent(1, self._price(call))
        self.hints = {step: tier for step, tier in ledger.hints(record.id).items() if step <= len(record.locks)}
        self._usages: dict[int, Sequence[Usage]] = {}

    def _price(self, call: BookedCall) -> float:
        return self.price_of(call.model, call.usage)

    def price_of(self, model: str, usage: Usage) -> float:
        return self._prices[model].cost(usage) if model in self._prices else 0.0

    def took(self, trial: TrialRecord) -> Spent:
        return self._taken[trial.id]

    @property
    def asking(self) -> Spent:
        """What hints took: their calls are of no trial."""
        return self._taken[None]

    @property
    def whole(self) -> Spent:
        return sum(map(self.took, self.trials.values()), self.asking)

    @property
    def search_trials(self) -> list[TrialRecord]:
        """Trials of the search at steps that have labels."""
        steps = len(self.record.locks)
        return [one for one in self.trials.values() if one.purpose is Purpose.SEARCH and one.trial.step <= steps]

    @property
    def strong_model(self) -> str:
        return self.trials[self.record.seed].trial.model if self.record.seed is not None else ""

    def usages_of(self, trial: int) -> Sequence[Usage]:
        """The tokens of every step of a recorded trajectory."""
        if trial not in self._usages:
            self._usages[trial] = [response.usage for response in self._ledger.trajectories.responses(trial)]
        return self._usages[trial]


def _add_instance(cost: WorkloadCost, one: _Instance, strong: int) -> None:
    if one.record.state is not InstanceState.DONE:
        cost.unlabelled += one.whole
        return
    labels = [lock.tier for lock in one.record.locks]
    cost.labels.update(labels)
    searching, probes = Spent(), defaultdict[tuple[int, int], Spent](Spent)
    for trial in one.search_trials:
        took = one.took(trial)
        searching += took
        cost.trials[labels[trial.trial.step - 1]] += took
        probes[trial.trial.step, trial.trial.tier] += took
        if trial.cut_off:
            _add_cut_off(cost.early, one, trial)
    whole = one.whole
    cost.beside += Spent(whole.calls - searching.calls, whole.usd - searching.usd)
    for (step, tier), took in probes.items():
        if tier < labels[step - 1]:
            cost.failed_probes[tier].append(took.usd)
    _add_hints(cost.hints, one, labels, probes, strong)


def _add_hints(
    effect: HintEffect, one: _Instance, labels: Sequence[int], probes: Mapping[tuple[int, int], Spent], strong: int
) -> None:
    effect.asked += one.asking
    effect.hints += len(one.hints)
    for step in one.hints:
        label, tried = labels[step - 1], {tier for probed, tier in probes if probed == step}
        effect.left_out.update(tier for tier in range(min(label, strong)) if tier not in tried)
        effect.above = sum((probes[step, tier] for tier in tried if tier > label), effect.above)


def _add_cut_off(effect: EarlyEffect, one: _Instance, trial: TrialRecord) -> None:
    limit, base = trial.trial.limit, trial.base
    if limit is None or base is None or trial.calls >= limit:
        return
    effect.trials += 1
    rest = one.usages_of(base)[trial.calls : limit]
    is_known = len(rest) == limit - trial.calls and _all_counted(rest)
    usd = sum(one.price_of(one.strong_model, usage) for usage in rest) if is_known else 0.0
    effect.left += Spent(limit - trial.calls, usd)
    effect.unpriced += not is_known


def _all_counted(usages: Iterable[Usage]) -> bool:
    """Whether all of these are tokens of calls: an imported seed's steps have none."""
    return all(usage.prompt for usage in usages)
