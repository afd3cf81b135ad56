"""A config's estimate, put together: the seeds' sizes through the arithmetic, priced, beside what a run really took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stepdown.builder.config.loading import Config
from stepdown.builder.config.pool import Model
from stepdown.builder.config.protocol import JudgeConfig, ProtocolConfig
from stepdown.builder.engine.context import search_rules
from stepdown.builder.engine.seeds import strong_models
from stepdown.builder.engine.workloads import LoadedWorkload, load_workload
from stepdown.builder.estimate.arithmetic import (
    Amount,
    ModelAmounts,
    SearchCosts,
    best,
    expected,
    label_shares,
    whole,
    worst,
)
from stepdown.builder.estimate.sizes import RunSeedSizes, SeedSize, measure_seeds
from stepdown.builder.records import Usage
from stepdown.builder.run.budget import Spent
from stepdown.builder.run.ledger import Ledger, Purpose

_HINT = Amount(1, 150, 15)
"""What a hint takes beside the step that it shows: the question, and a short answer."""
REPORT = Amount(1, 3000, 700)
"""What a verdict of one judge takes beside the case: rubric and form, and a report."""


@dataclass(slots=True)
class ThreeEstimates:
    """The three numbers of everything that is estimated."""

    best: ModelAmounts = field(default_factory=ModelAmounts)
    expected: ModelAmounts = field(default_factory=ModelAmounts)
    worst: ModelAmounts = field(default_factory=ModelAmounts)

    def each(self) -> tuple[ModelAmounts, ModelAmounts, ModelAmounts]:
        return self.best, self.expected, self.worst


@dataclass(frozen=True, slots=True)
class WorkloadSeeds:
    """What is known or assumed of a workload's seeds."""

    benchmark: str
    instances: int
    steps: int
    without_seed: int
    bases: Mapping[str, int]
    """Instances by what their seed's length rests on."""
    early: bool | None
    shares: Sequence[float]


@dataclass(frozen=True, slots=True)
class Taken:
    """What a run has taken of one model: all calls that its protocol needed, and those that it paid for itself."""

    needed: Spent
    paid: Spent


@dataclass(frozen=True, slots=True)
class ModelForecast:
    """One model of the estimate. `taken` is the run's, where one is named."""

    tier: str
    model: str
    best: Spent
    expected: Spent
    worst: Spent
    taken: Taken | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """The whole estimate."""

    workloads: tuple[WorkloadSeeds, ...]
    lines: tuple[ModelForecast, ...]


def forecast(config: Config, steps: int | None, earlier: RunSeedSizes, taken: dict[str, Taken] | None) -> Forecast:
    """What a config will take. `steps` is the assumed length of seeds that are still to be collected; `earlier` and
    `taken` are the seeds and the calls of a run of the same workloads. Raises BadInput.
    """
    protocol, estimates = config.protocol, ThreeEstimates()
    workloads = [_workload(protocol, index, steps, earlier, estimates) for index in range(len(protocol.workloads))]
    return Forecast(tuple(workloads), tuple(_lines(protocol, estimates, taken)))


def _workload(
    protocol: ProtocolConfig, index: int, steps: int | None, earlier: RunSeedSizes, estimates: ThreeEstimates
) -> WorkloadSeeds:
    """Add a workload's calls to the estimates."""
    workload = load_workload(protocol, index)
    harness = workload.harness
    early = harness.early_verdicts
    rules = search_rules(protocol)
    fresh = protocol.rules
    plan = SearchCosts(rules.cascades, rules.passes, rules.of, early, fresh.confirm, fresh.control)
    shares = label_shares(harness.name, len(protocol.pool.tiers))
    bases: Counter[str] = Counter()
    instances = total = missing = 0
    for seed in measure_seeds(protocol, index, workload, steps, earlier):
        instances += 1
        if seed is None:
            missing += 1
            continue
        total += len(seed.shape)
        bases[seed.basis] += 1
        strongest = _dearest(seed, workload, protocol)
        trials = (
            best(seed.shape, seed.strong, plan),
            expected(seed.shape, seed.strong, plan, shares),
            worst(seed.shape, strongest, plan),
        )
        for bill, searched in zip(estimates.each(), trials, strict=True):
            bill.add_all(searched)
        if harness.needs_judge and protocol.judge is not None:
            _add_judging(seed, trials, workload, protocol.judge, estimates)
        _add_collecting(seed, workload, protocol, estimates)
        _add_hints(seed, protocol, estimates)
    return WorkloadSeeds(harness.name, instances, total, missing, dict(bases), early, shares)


def _dearest(seed: SeedSize, workload: LoadedWorkload, protocol: ProtocolConfig) -> str:
    """At worst a seed that is still to be collected is made by the dearest of the models that may make it."""
    if workload.config.seeds.source != "collect":
        return seed.strong
    models, pool = strong_models(workload.config.seeds, protocol.pool), protocol.pool
    return max(models, key=lambda name: whole(seed.shape).usd(pool.by_name[name].price))


def _add_collecting(
    seed: SeedSize, workload: LoadedWorkload, protocol: ProtocolConfig, estimates: ThreeEstimates
) -> None:
    """Collecting a seed, or letting the pseudo-model make it: at worst every attempt of every model is needed."""
    seeds = workload.config.seeds
    if seeds.source == "import":
        return
    estimates.best.add(seed.strong, whole(seed.shape))
    estimates.expected.add(seed.strong, whole(seed.shape))
    if seeds.source == "reference":
        estimates.worst.add(seed.strong, whole(seed.shape))
        return
    for model in strong_models(seeds, protocol.pool):
        estimates.worst.add(model, whole(seed.shape), seeds.attempts)


def _add_judging(
    seed: SeedSize,
    trials: Sequence[ModelAmounts],
    workload: LoadedWorkload,
    judge: JudgeConfig,
    estimates: ThreeEstimates,
) -> None:
    """A verdict on the seed and on every trial. The judge is shown about what the last step was shown, and its answer.

    A trial takes one call where seeds have one step; of longer ones the mean over all places is taken.
    """
    last, steps = seed.shape[-1], len(seed.shape)
    one = Amount(0, last.prompt + last.output) + REPORT
    seats = len(judge.models) * judge.samples
    needed = seats if judge.rule == "unanimous" else seats // 2 + 1
    attempts = workload.config.seeds.attempts if workload.config.seeds.source == "collect" else 1
    asked = (needed / seats, 1.0, float(judge.attempts))
    for bill, searched, times, seeds in zip(estimates.each(), trials, asked, (1, 1, attempts), strict=True):
        verdicts = seeds + searched.calls / ((steps + 1) / 2)
        for model in judge.models:
            bill.add(model.name, one, verdicts * judge.samples * times)


def _add_hints(seed: SeedSize, protocol: ProtocolConfig, estimates: ThreeEstimates) -> None:
    """A hint is asked for at every step of a seed, and shown the step."""
    if protocol.hints.model is not None:
        shown = whole(seed.shape)
        asked = Amount(0, shown.prompt + shown.output) + _HINT.times(shown.calls)
        for bill in estimates.each():
            bill.add(protocol.hints.model.name, asked)


def _lines(
    protocol: ProtocolConfig, estimates: ThreeEstimates, taken: dict[str, Taken] | None
) -> Iterator[ModelForecast]:
    """A line for every model that may be asked, cheapest tier first; then those that only the run has."""
    nothing = Taken(Spent(), Spent())
    left = dict(taken or {})
    tiers = [(protocol.pool.tiers[index].name, model) for index, model in protocol.pool.models()]
    if protocol.hints.model is not None:
        tiers.append(("hints", protocol.hints.model))
    known = {model.name for _, model in tiers}
    tiers += [
        ("judge", model) for model in (protocol.judge.models if protocol.judge else ()) if model.name not in known
    ]
    for tier, model in tiers:
        lowest, mean, highest = (_spent(bill, model) for bill in estimates.each())
        own = left.pop(model.name, nothing) if taken is not None else None
        if highest.calls or (own is not None and own.needed.calls):
            yield ModelForecast(tier, model.name, lowest, mean, highest, own)
    for name, own in sorted(left.items()):
        yield ModelForecast("not in this pool", name, Spent(), Spent(), Spent(), own)


def _spent(bill: ModelAmounts, model: Model) -> Spent:
    amount = bill.amounts.get(model.name, Amount())
    return Spent(round(amount.calls), amount.usd(model.price))


def read_taken(ledger: Ledger, protocol: ProtocolConfig) -> dict[str, Taken]:
    """What a run's calls took, by model, at its own pool's prices."""
    found: dict[str, Taken] = {}
    for total in ledger.call_totals():
        if total.purpose == Purpose.REPEAT:
            continue  # the audit's, not the labels'
        model = protocol.models.get(total.model)
        price: Callable[[Usage], float] = model.price.cost if model else lambda usage: 0.0
        took = Spent(total.calls, price(total.usage))
        before = found.get(total.model, Taken(Spent(), Spent()))
        found[total.model] = Taken(before.needed + took, before.paid + took if total.paid else before.paid)
    return found
