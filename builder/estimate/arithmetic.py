"""How many calls and tokens of every model a run will take: at best, as expected, and at worst.

Pure arithmetic over the sizes of seeds. A trial at step i of n costs 1 + (n - i) calls: the candidate's, and the strong
model's for all later steps. It may cost less where a harness can say early that it is lost. The protocol itself is in
`search`; `tests/test_estimate.py` compares the two.

Best and worst bound all calls of a search together, for trajectories that keep their length, models that never say the
same, and an empty cache. One model's calls, or the price, may lie outside: the run with the fewest calls need not be
the cheapest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stepdown.builder.config.price import Price
from stepdown.builder.records import Usage

PAPER_LABELS = (689, 62, 49, 170)
"""The paper's labels, over all of its workloads: steps of tier low, mid, mid_high and high. What is expected of a
workload that does not say what its own are."""


@dataclass(frozen=True, slots=True)
class StepSize:
    """Tokens of one step: of its prefix, and of its answer."""

    prompt: int
    output: int


Hints = Sequence[Sequence[float]]
"""By the tier of a step, and by the tier that is hinted for it: the share of the former's steps. Each row sums to 1."""

StepSizes = tuple[StepSize, ...]
"""The sizes of a seed's steps, in order."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of calls and of their tokens. Expected numbers have fractions."""

    calls: float = 0.0
    prompt: float = 0.0
    output: float = 0.0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.calls + other.calls, self.prompt + other.prompt, self.output + other.output)

    def times(self, factor: float) -> Amount:
        return Amount(self.calls * factor, self.prompt * factor, self.output * factor)

    def usd(self, price: Price) -> float:
        """The list price, with nothing read from a provider's prompt cache."""
        return price.cost(Usage(prompt=round(self.prompt), completion=round(self.output)))


@dataclass(slots=True)
class AmountByModel:
    """What is asked of the models, by the name of each."""

    by_model: dict[str, Amount] = field(default_factory=dict)

    def add(self, model: str, amount: Amount, times: float = 1.0) -> None:
        if times:
            self.by_model[model] = self.by_model.get(model, Amount()) + amount.times(times)

    def add_all(self, other: AmountByModel) -> None:
        for model, amount in other.by_model.items():
            self.add(model, amount)

    @property
    def calls(self) -> float:
        return sum(amount.calls for amount in self.by_model.values())


@dataclass(frozen=True, slots=True)
class Work:
    """Calls, and executions of trajectories: what an instance's time goes by."""

    calls: float = 0.0
    executions: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.calls + other.calls, self.executions + other.executions)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What the cost of a search depends on, beside the sizes of its seed."""

    cascades: Sequence[Sequence[str]]
    """The models to probe, by tier index, in order, without the strong tier."""
    passes: int = 1
    of: int = 1
    early: bool | None = False
    """Whether a trial that fails ends with the candidate's own call. None: some do."""
    confirm: int = 0
    """Executions of the final trajectory, each step by its lock."""
    control: int = 0
    """Draws of the strong model at every step that stays strong."""
    probe: str = "none"
    """At which steps every model of `pool` is tried that the search has not tried: none, the last, all."""
    pool: Sequence[Sequence[str]] = ()
    """The models of every tier, the strong one last. Needed where there are probes."""

    @property
    def failing(self) -> int:
        """Samples after which a candidate has failed, where all of them fail."""
        return self.of - self.passes + 1

    def probed_at(self, place: int, steps: int) -> Sequence[Sequence[str]]:
        """The models of every tier that are tried at a step, of so many; none where it is not probed."""
        return self.pool if self.probe == "all" or (self.probe == "last" and place == steps) else ()


def perfect_hints(tiers: int) -> Hints:
    """Every step is hinted its own tier.

    >>> perfect_hints(2)
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return [[float(hint == label) for hint in range(tiers)] for label in range(tiers)]


def amount_of(sizes: StepSizes) -> Amount:
    """All steps of a trajectory."""
    return Amount(len(sizes), sum(step.prompt for step in sizes), sum(step.output for step in sizes))


def best(sizes: StepSizes, strong: str, settings: SearchSettings) -> AmountByModel:
    """The fewest calls: at every step the first candidate passes.

    Where failed trials may end early, or where more samples are needed to pass than to fail, a step whose candidates
    all fail may take even fewer; then that is counted. Probes of other models are lost as early as they may be.
    """
    amounts = AmountByModel()
    models = _models(settings)
    for place, step in enumerate(sizes, 1):
        own, rest = _amount_of_step(step), amount_of(sizes[place:])
        lost = Amount() if settings.early is not False else rest
        probed = [model for tier in settings.probed_at(place, len(sizes)) for model in tier]
        first_passes, all_fail = AmountByModel(), AmountByModel()
        first_passes.add(settings.cascades[0][0], own, settings.passes)
        first_passes.add(strong, rest, settings.passes)
        _add_probes(first_passes, set(probed) - {settings.cascades[0][0]}, strong, own, lost)
        for model in models:
            all_fail.add(model, own, settings.failing)
            all_fail.add(strong, lost, settings.failing)
        all_fail.add(strong, own + lost, settings.control)
        _add_probes(all_fail, set(probed) - set(models), strong, own, lost)
        amounts.add_all(min(first_passes, all_fail, key=lambda step: step.calls))
        if settings.early is False or place == 1:
            amounts.add(settings.cascades[0][0], own, settings.confirm)
    return amounts


def worst(sizes: StepSizes, strong: str, settings: SearchSettings) -> AmountByModel:
    """The most calls: at every step all candidates fail, in every sample, and only at the end of the trajectory.

    No search of a seed of this length takes more calls, since an accepted trial never makes a trajectory longer.
    """
    amounts = AmountByModel()
    for place, step in enumerate(sizes, 1):
        own, rest = _amount_of_step(step), amount_of(sizes[place:])
        for model in _models(settings):
            amounts.add(model, own, settings.of)
            amounts.add(strong, rest, settings.of)
        probed = {model for tier in settings.probed_at(place, len(sizes)) for model in tier}
        _add_probes(amounts, probed - set(_models(settings)), strong, own, rest)
        amounts.add(strong, own, settings.confirm)
        amounts.add(strong, own + rest, settings.control)
    return amounts


def expected(
    sizes: StepSizes, strong: str, settings: SearchSettings, shares: Sequence[float], hints: Hints | None = None
) -> AmountByModel:
    """The mean number of calls, where these shares of the steps end in each tier, cheapest first. They sum to 1.

    `hints` say where the search of a step begins, by its tier; None: at the cheapest. It is assumed that a tier that
    passes does so by its first model, and every tier above it too, that samples of one candidate agree, and that
    trajectories keep their length.
    """
    amounts = AmountByModel()
    passed, failed = _probed(shares, hints, len(settings.cascades))
    for place, step in enumerate(sizes, 1):
        own, rest = _amount_of_step(step), amount_of(sizes[place:])
        for tier, cascade in enumerate(settings.cascades):
            amounts.add(cascade[0], own, passed[tier] * settings.passes + shares[tier] * settings.confirm)
            amounts.add(strong, rest, passed[tier] * settings.passes)
            failing = failed[tier] * settings.failing
            for model in cascade:
                amounts.add(model, own, failing)
                amounts.add(strong, rest, 0.0 if settings.early else failing)
        amounts.add(strong, own, shares[-1] * settings.confirm)
        amounts.add(strong, own + rest, shares[-1] * settings.control)
        for tier, models in enumerate(settings.probed_at(place, len(sizes))):
            good = sum(shares[: tier + 1])
            for number, model in enumerate(models):
                # What the search tries is no probe: the first model of a tier that passes, all of one that fails.
                is_searched = tier < len(passed) and number < len(settings.cascades[tier])
                passes = good - (passed[tier] if is_searched and number == 0 else 0.0)
                fails = 1 - good - (failed[tier] if is_searched else 0.0)
                amounts.add(model, own, passes + fails)
                amounts.add(strong, rest, passes + (0.0 if settings.early else fails))
    return amounts


def _add_probes(amounts: AmountByModel, models: Iterable[str], strong: str, own: Amount, rest: Amount) -> None:
    """Add one trial of each model at a step, after which the strong model makes the rest."""
    for model in sorted(models):
        amounts.add(model, own)
        amounts.add(strong, rest)


def _probed(shares: Sequence[float], hints: Hints | None, strong: int) -> tuple[list[float], list[float]]:
    """How many times a step's tiers are tried with success and without, in the mean: as `search` goes from a hint.

    A step that is hinted too high is tried downwards until a tier fails, one that is hinted too low upwards until one
    passes. A hint at the strong tier is one just below it.
    """
    passed, failed = [0.0] * strong, [0.0] * strong
    for label, share in enumerate(shares):
        for hint, part in enumerate(hints[label] if hints else [1.0]):
            start = min(hint, strong - 1)
            downwards = label <= start
            for tier in range(label, start + 1 if downwards else min(label + 1, strong)):
                passed[tier] += share * part
            for tier in range(max(label - 1, 0), label) if downwards else range(start, label):
                failed[tier] += share * part
    return passed, failed


def _amount_of_step(step: StepSize) -> Amount:
    return Amount(1, step.prompt, step.output)


def _models(settings: SearchSettings) -> list[str]:
    return [model for cascade in settings.cascades for model in cascade]


def label_shares(labels: tuple[int, int, int, int] | None, tiers: int) -> list[float]:
    """The share of steps that is expected to end in each of so many tiers, after labels of four, or else the paper's.

    Four tiers are the paper's. Of others the cheapest is its low and the strong one its high; what is between them is
    divided evenly among the tiers between. A pool of two tiers has none: there those steps stay strong.

    >>> [round(share, 3) for share in label_shares((94, 33, 41, 168), 4)]
    [0.28, 0.098, 0.122, 0.5]
    >>> [round(share, 3) for share in label_shares((94, 33, 41, 168), 2)]
    [0.28, 0.72]
    """
    low, mid, mid_high, high = labels or PAPER_LABELS
    total = low + mid + mid_high + high
    if tiers == 2:
        return [low / total, 1 - low / total]
    if tiers == 4:
        return [low / total, mid / total, mid_high / total, high / total]
    between = (mid + mid_high) / total / (tiers - 2)
    return [low / total, *[between] * (tiers - 2), high / total]
