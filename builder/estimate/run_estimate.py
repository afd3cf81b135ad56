"""A config's estimate: what its run will ask of every model, from the sizes of its seeds, at list price."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stepdown.builder.config.loading import Config
from stepdown.builder.config.pool import Model
from stepdown.builder.config.protocol import JudgeConfig, ProtocolConfig
from stepdown.builder.engine.context import search_rules
from stepdown.builder.engine.seeds import strong_models
from stepdown.builder.engine.workloads import LoadedWorkload, load_workload, node_needs_of
from stepdown.builder.estimate.arithmetic import (
    Amount,
    AmountByModel,
    Hints,
    SearchSettings,
    Work,
    amount_of,
    best,
    expected,
    label_shares,
    perfect_hints,
    worst,
)
from stepdown.builder.estimate.earlier_run import NeededAndPaid, SeenInRun
from stepdown.builder.estimate.playing import SeedSize
from stepdown.builder.estimate.sizes import measure_seeds
from stepdown.builder.run.spent import Spent

CASES = ("best", "expected", "worst")
"""The names of an estimate's cases, in the order of `BestExpectedWorst.each`."""
NO_HINTS, PERFECT = "none", "perfect"
"""Hints that there may be, beside those of a policy."""
_HINT = Amount(1, 150, 15)
"""What a hint takes beside the tokens of the step that it shows: the question, and a short answer."""
REPORT = Amount(1, 3000, 700)
"""What a verdict of one judge takes beside the tokens of the case: rubric and form, and a report."""


@dataclass(slots=True)
class CaseWork:
    """What one case of an estimate makes of all instances together, and of the one with the most calls."""

    total: Work = field(default_factory=Work)
    longest: Work = field(default_factory=Work)

    def add(self, instance: Work) -> None:
        self.total += instance
        self.longest = max(self.longest, instance, key=lambda work: work.calls)


@dataclass(slots=True)
class BestExpectedWorst:
    """An estimate's three cases, each with what it asks of the models; and the best of those in which seeds pass."""

    best: AmountByModel = field(default_factory=AmountByModel)
    expected: AmountByModel = field(default_factory=AmountByModel)
    worst: AmountByModel = field(default_factory=AmountByModel)
    where_seeds_pass: AmountByModel = field(default_factory=AmountByModel)
    searched: dict[str, AmountByModel] = field(default_factory=lambda: defaultdict(AmountByModel))
    """The search alone as expected, by the hints that it would have."""

    work: tuple[CaseWork, CaseWork, CaseWork] = field(default_factory=lambda: (CaseWork(), CaseWork(), CaseWork()))
    """Of the best, the expected and the worst case."""

    def each(self) -> tuple[AmountByModel, AmountByModel, AmountByModel]:
        return self.best, self.expected, self.worst


@dataclass(frozen=True, slots=True)
class WorkloadAssumptions:
    """What an estimate knows or assumes of a workload: its seeds, and what its search will come to."""

    benchmark: str
    instances: int
    steps: int
    without_seed: int
    bases: Mapping[str, int]
    """How many instances' seed lengths are known in which way."""
    early: bool | None
    """Whether a trial that fails ends with the candidate's own call; None: sometimes."""
    shares: Sequence[float]
    """Of steps that are expected to end in each tier, cheapest first."""
    shares_of_run: bool
    """Whether they are those of the run that was named."""
    failing: float
    """The share of instances that are expected to come to no seed, of those of which it is not known."""
    images: int
    """Container images that its instances need."""
    image_gib: float
    """What one of them takes of a disk in the mean, beside layers that it shares with others."""


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """What will be asked of one model. `of_run` is what a run did ask, where one is named."""

    tier: str
    model: str
    best: Spent
    expected: Spent
    worst: Spent
    of_run: NeededAndPaid | None

    def case(self, name: str) -> Spent:
        """What is asked of it in one of CASES."""
        return dict(zip(CASES, (self.best, self.expected, self.worst), strict=True))[name]


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The whole estimate."""

    workloads: tuple[WorkloadAssumptions, ...]
    models: tuple[ModelEstimate, ...]
    where_seeds_pass: Spent
    """The best case of those in which every seed passes at its first attempt."""
    work: tuple[CaseWork, CaseWork, CaseWork]
    """At best, as expected, at worst."""
    searched: Mapping[str, Spent]
    """What searching takes as expected, without verdicts, seeds and hints themselves: NO_HINTS, PERFECT, and the hints
    of a policy by its name."""


def estimate_run(
    config: Config,
    steps: int | None,
    earlier: SeenInRun,
    of_run: dict[str, NeededAndPaid] | None,
    hinting: Mapping[str, Mapping[str, Hints]] | None = None,
) -> RunEstimate:
    """What a config's run will take. `steps` is the assumed length of seeds that are still to be collected; `earlier`
    and `of_run` are the seeds and the calls of a run of the same workloads, `hinting` is what policies would have
    hinted there, by policy and benchmark. Raises BadInput.
    """
    protocol, estimates = config.protocol, BestExpectedWorst()
    workloads = [
        _add_workload(protocol, index, steps, earlier, estimates, hinting or {})
        for index in range(len(protocol.workloads))
    ]
    models = tuple(_model_estimates(protocol, estimates, earlier, of_run))
    passing = (_at_list_price(estimates.where_seeds_pass, model, earlier) for model in protocol.models.values())
    searched = {
        hints: sum((_at_list_price(amounts, model, earlier) for model in protocol.models.values()), Spent())
        for hints, amounts in estimates.searched.items()
    }
    return RunEstimate(tuple(workloads), models, sum(passing, Spent()), estimates.work, searched)


def _add_workload(
    protocol: ProtocolConfig,
    index: int,
    steps: int | None,
    earlier: SeenInRun,
    estimates: BestExpectedWorst,
    hinting: Mapping[str, Mapping[str, Hints]],
) -> WorkloadAssumptions:
    """Add a workload's calls to the estimates; returns what they assume."""
    workload = load_workload(protocol, index)
    harness = workload.harness
    early = harness.early_verdicts
    searched_by, rules = search_rules(protocol), protocol.rules
    search_only = SearchSettings(
        searched_by.cascades, searched_by.passes, searched_by.of, early, rules.confirm, rules.control
    )
    names = [[model.name for model in tier.models] for tier in protocol.pool.tiers]
    settings = replace(search_only, probe=rules.probe, pool=names)
    tiers = [tier.name for tier in protocol.pool.tiers]
    of_run = earlier.label_shares(harness.name, tiers)
    shares = of_run or label_shares(harness.expected_labels, len(tiers))
    failing, lost = earlier.failing_share(harness.name), earlier.mean_failed(harness.name)
    needs = node_needs_of(index, workload)
    bases: Counter[str] = Counter()
    instances = total = missing = 0
    for seed in measure_seeds(protocol, index, workload, steps, earlier):
        instances += 1
        if seed is None:
            missing += 1
            continue
        if seed.failed is None:
            total += len(seed.sizes)
            bases[seed.basis] += 1
        else:
            missing += 1
        one = BestExpectedWorst()
        strongest = _dearest_strong_model(seed, workload, protocol)
        trials = _searched(seed, strongest, settings, shares)
        unconfirmed = _searched(seed, strongest, replace(settings, confirm=0), shares) if settings.confirm else trials
        for amounts, searched in zip(one.each(), trials, strict=True):
            amounts.add_all(searched)
        if harness.needs_judge and protocol.judge is not None:
            _add_judging(seed, trials, workload, protocol.judge, one)
        _add_collecting(seed, workload, protocol, one)
        _add_hints(seed, protocol, one)
        by_hints: dict[str, Hints | None] = {NO_HINTS: None, PERFECT: perfect_hints(len(tiers))}
        by_hints |= {name: by_benchmark.get(harness.name) for name, by_benchmark in hinting.items()}
        for name, hints in by_hints.items():
            estimates.searched[name].add_all(expected(seed.sizes, seed.strong, search_only, shares, hints))
        if seed.failed is None:
            estimates.where_seeds_pass.add_all(one.best)
        _allow_for_no_seed(one, seed, workload, protocol, failing, lost)
        for amounts, found in zip(estimates.each(), one.each(), strict=True):
            amounts.add_all(found)
        strong = (seed.strong, seed.strong, strongest)
        for work, found, searched, name in zip(estimates.work, one.each(), unconfirmed, strong, strict=True):
            work.add(Work(found.calls, _executions(seed, searched, name) + settings.confirm))
    return WorkloadAssumptions(
        harness.name,
        instances,
        total,
        missing,
        dict(bases),
        early,
        shares,
        of_run is not None,
        failing,
        len(needs.images),
        needs.image_gib,
    )


def _searched(
    seed: SeedSize, strongest: str, settings: SearchSettings, shares: Sequence[float]
) -> tuple[AmountByModel, AmountByModel, AmountByModel]:
    """An instance's search at best, as expected, and at worst."""
    return (
        best(seed.sizes, seed.strong, settings),
        expected(seed.sizes, seed.strong, settings, shares),
        worst(seed.sizes, strongest, settings),
    )


def _executions(seed: SeedSize, searched: AmountByModel, strong: str) -> float:
    """How many trajectories are executed: the seed's, its verification, and the trials, each with one candidate."""
    if seed.failed is not None:
        return 1.0
    return 2.0 + sum(amount.calls for model, amount in searched.by_model.items() if model != strong)


def _allow_for_no_seed(
    one: BestExpectedWorst,
    seed: SeedSize,
    workload: LoadedWorkload,
    protocol: ProtocolConfig,
    failing: float,
    lost: Mapping[str, Amount],
) -> None:
    """Change an instance's best and expected case for what it takes where no seed passes: then nothing is searched.

    At best every attempt at a seed fails with its first call. What a run saw of this instance is taken as it was;
    `failing` and `lost` are what it saw of others.
    """
    if seed.failed is not None:
        one.best = AmountByModel(dict(seed.failed))
        one.expected = AmountByModel(dict(seed.failed))
        return
    if seed.is_known:
        return
    fewest = _fewest_without_seed(seed, workload, protocol)
    if fewest.calls < one.best.calls:
        one.best = fewest
    mixed = AmountByModel()
    for amounts, share in ((one.expected.by_model, 1 - failing), (lost, failing)):
        for model, amount in amounts.items():
            mixed.add(model, amount, share)
    one.expected = mixed


def _fewest_without_seed(seed: SeedSize, workload: LoadedWorkload, protocol: ProtocolConfig) -> AmountByModel:
    fewest, seeds = AmountByModel(), workload.config.seeds
    if seeds.source == "collect":
        for model in strong_models(seeds, protocol.pool):
            fewest.add(model, amount_of(seed.sizes[:1]), seeds.attempts)
    elif seeds.source == "reference":
        fewest.add(seed.strong, amount_of(seed.sizes))
    return fewest


def _dearest_strong_model(seed: SeedSize, workload: LoadedWorkload, protocol: ProtocolConfig) -> str:
    """At worst a seed that is still to be collected is made by the dearest of the models that may make it: its name."""
    if workload.config.seeds.source != "collect":
        return seed.strong
    models, pool = strong_models(workload.config.seeds, protocol.pool), protocol.pool
    return max(models, key=lambda name: amount_of(seed.sizes).usd(pool.by_name[name].price))


def _add_collecting(
    seed: SeedSize, workload: LoadedWorkload, protocol: ProtocolConfig, estimates: BestExpectedWorst
) -> None:
    """Add what a seed takes that is collected or made by the pseudo-model: at worst all attempts of all models."""
    seeds = workload.config.seeds
    if seeds.source == "import":
        return
    estimates.best.add(seed.strong, amount_of(seed.sizes))
    estimates.expected.add(seed.strong, amount_of(seed.sizes))
    if seeds.source == "reference":
        estimates.worst.add(seed.strong, amount_of(seed.sizes))
        return
    for model in strong_models(seeds, protocol.pool):
        estimates.worst.add(model, amount_of(seed.sizes), seeds.attempts)


def _add_judging(
    seed: SeedSize,
    trials: Sequence[AmountByModel],
    workload: LoadedWorkload,
    judge: JudgeConfig,
    estimates: BestExpectedWorst,
) -> None:
    """Add a verdict on the seed and on every trial. A judge is shown about as much as the last step, and its answer.

    How many trials there are follows from the calls: a trial takes one where seeds have one step, else the mean over
    all steps.
    """
    last, steps = seed.sizes[-1], len(seed.sizes)
    one = Amount(0, last.prompt + last.output) + REPORT
    seats = len(judge.models) * judge.samples
    needed = seats if judge.rule == "unanimous" else seats // 2 + 1
    attempts = workload.config.seeds.attempts if workload.config.seeds.source == "collect" else 1
    asked = (needed / seats, 1.0, float(judge.attempts))
    for amounts, searched, times, seeds in zip(estimates.each(), trials, asked, (1, 1, attempts), strict=True):
        verdicts = seeds + searched.calls / ((steps + 1) / 2)
        probes = verdicts / judge.probes if judge.probes else 0.0
        for model in judge.models:
            amounts.add(model.name, one, (verdicts * judge.samples + probes) * times)


def _add_hints(seed: SeedSize, protocol: ProtocolConfig, estimates: BestExpectedWorst) -> None:
    """Add the hints: one is asked for at every step of a seed, and shows the step."""
    if protocol.hints.model is not None:
        shown = amount_of(seed.sizes)
        asked = Amount(0, shown.prompt + shown.output) + _HINT.times(shown.calls)
        for amounts in estimates.each():
            amounts.add(protocol.hints.model.name, asked)


def _model_estimates(
    protocol: ProtocolConfig,
    estimates: BestExpectedWorst,
    earlier: SeenInRun,
    of_run: dict[str, NeededAndPaid] | None,
) -> Iterator[ModelEstimate]:
    """Every model that may be asked, cheapest tier first; then those that only the run has."""
    nothing = NeededAndPaid(Spent(), Spent())
    left = dict(of_run or {})
    tiers = [(protocol.pool.tiers[index].name, model) for index, model in protocol.pool.models()]
    if protocol.hints.model is not None:
        tiers.append(("hints", protocol.hints.model))
    known = {model.name for _, model in tiers}
    tiers += [
        ("judge", model) for model in (protocol.judge.models if protocol.judge else ()) if model.name not in known
    ]
    for tier, model in tiers:
        lowest, mean, highest = (_at_list_price(amounts, model, earlier) for amounts in estimates.each())
        own = left.pop(model.name, nothing) if of_run is not None else None
        if highest.calls or (own is not None and own.needed.calls):
            yield ModelEstimate(tier, model.name, lowest, mean, highest, own)
    for name, own in sorted(left.items()):
        yield ModelEstimate("not in this pool", name, Spent(), Spent(), Spent(), own)


def _at_list_price(amounts: AmountByModel, model: Model, earlier: SeenInRun) -> Spent:
    """The list price, with the model's mean answer in the run where one is named."""
    amount = amounts.by_model.get(model.name, Amount())
    if (output := earlier.outputs.get(model.name)) is not None:
        amount = Amount(amount.calls, amount.prompt, amount.calls * output)
    return Spent(round(amount.calls), amount.usd(model.price))
