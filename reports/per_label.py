"""The section on what a label costs, and what prompt caching, hints and early verdicts saved of it."""

from __future__ import annotations

from collections.abc import Iterator

from stepdown.builder.common.tables import Table
from stepdown.builder.records import Usage
from stepdown.builder.run.spent import Spent
from stepdown.reports.charts import Bars
from stepdown.reports.facts import Facts
from stepdown.reports.label_costs import LabelCosts, WorkloadCost
from stepdown.reports.section import Section

TITLE = "What a label costs"
RATES = "Rates: list prices of the run's own pool."
BY_TIER = """\
A label's own amount is that of the trials at its step, by the tier that the search found. Seeds with their \
verification, hints and fresh draws (confirm, control) are of no step. The last row has these too, and what instances \
took that came to no labels."""
CACHED = """\
Tokens that providers read from and wrote to their prompt caches, as they reported them. Without it: the same tokens, \
all at the price of input. Below 0 more was paid for writing than reading saved; 0 where the pool has no price of its \
own for cached tokens."""
ESTIMATED = """\
An estimate: a probe left out is of a tier below the label that would have come first without the hint, taken to have \
cost what failed probes of its tier did in the mean (told beside); without such a mean it is not counted. Probes above \
the label, which hints bring about, and asking for hints are exact."""
CUT_OFF = """\
Had each trial that was lost before its agent halted gone on to its limit: so many calls of the strong model, each at \
what the same step of the trajectory that it started from was billed. Its agent might have halted sooner, its prompts \
have cost more: that is not known. Steps of imported seeds have no bill."""


def per_label(facts: Facts) -> Section | None:
    """USD per label, and what was saved of it."""
    costs = facts.label_costs
    if costs is None:
        return None
    usd = usd_per_label(costs)
    if usd is None:
        return Section("per-label", TITLE, "Not told: no call of this run has a price.")
    tables = [_by_tier(costs, facts.tiers), _prompt_cache(costs), *_hints(costs, facts.tiers), *_early(costs)]
    return Section(
        "per-label",
        TITLE,
        f"${usd:.4f} a label, with seeds, hints and all that led to no label. All calls are counted that the protocol "
        "needed, whichever run paid for them; trials that an audit repeated are not. What was saved is told as far as "
        "it follows from calls that were made; each table says how.",
        tuple(tables),
        _chart(costs, facts.tiers),
    )


def usd_per_label(costs: LabelCosts) -> float | None:
    """USD that a label cost, all things counted; None where nothing has a price, or there is no label."""
    labels = sum(cost.labels.total() for cost in costs.workloads.values())
    usd = sum(cost.whole.usd for cost in costs.workloads.values())
    return usd / labels if labels and usd else None


def _by_tier(costs: LabelCosts, tiers: tuple[str, ...]) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, cost in sorted(costs.workloads.items()):
        for tier, label in enumerate(tiers):
            if cost.labels[tier]:
                rows.append(_row(name, label, cost.labels[tier], cost.trials[tier]))
        rows.append((name, "seeds, hints, draws", "-", *_amount(cost.beside), "-"))
        if cost.unlabelled.calls:
            rows.append((name, "no labels", "-", *_amount(cost.unlabelled), "-"))
        rows.append(_row(name, "all", cost.labels.total(), cost.whole))
    if len(costs.workloads) > 1:
        every = costs.workloads.values()
        rows.append(_row("all", "all", sum(c.labels.total() for c in every), sum((c.whole for c in every), Spent())))
    return Table(
        "USD per label",
        ("workload", "label", "labels", "calls", "USD", "USD per label"),
        tuple(rows),
        words=2,
        note=f"{RATES} {BY_TIER}",
    )


def _row(name: str, label: str, labels: int, took: Spent) -> tuple[str, ...]:
    return (name, label, str(labels), *_amount(took), f"{took.usd / labels:.5f}" if labels else "-")


def _amount(took: Spent) -> tuple[str, str]:
    return str(took.calls), f"{took.usd:.4f}"


def _prompt_cache(costs: LabelCosts) -> Table:
    rows = [(model, calls, usage, *_priced(costs, model, usage)) for model, (calls, usage) in costs.by_model.items()]
    cells = [_tokens(model, calls, usage, usd, saved) for model, calls, usage, usd, saved in rows]
    if len(rows) > 1:
        usage = sum((one[2] for one in rows), Usage())
        cells.append(
            _tokens("all", sum(one[1] for one in rows), usage, sum(one[3] for one in rows), sum(one[4] for one in rows))
        )
    return Table(
        "what prompt caching saved",
        ("model", "calls", "prompt tokens", "read", "written", "USD", "without it", "saved USD"),
        tuple(cells),
        note=f"{RATES} {CACHED}",
    )


def _priced(costs: LabelCosts, model: str, usage: Usage) -> tuple[float, float]:
    """What tokens of a model cost at list price, and what its cache saved."""
    price = costs.prices.get(model)
    return (price.cost(usage), price.saved_by_cache(usage)) if price else (0.0, 0.0)


def _tokens(model: str, calls: int, usage: Usage, usd: float, saved: float) -> tuple[str, ...]:
    counts = (calls, usage.prompt, usage.cache_read, usage.cache_write)
    return (model, *map(str, counts), f"{usd:.4f}", f"{usd + saved:.4f}", f"{saved:.4f}")


def _hints(costs: LabelCosts, tiers: tuple[str, ...]) -> Iterator[Table]:
    hinted = {name: cost for name, cost in sorted(costs.workloads.items()) if cost.hints.hints}
    if not hinted:
        return
    means = [
        (name, tiers[tier], str(mean.calls), f"{mean.usd:.5f}")
        for name, cost in hinted.items()
        for tier, mean in sorted(cost.mean_failed.items())
    ]
    yield Table(
        "what hints saved, estimated",
        ("workload", "hints", "probes left out", "with a price", "their USD", "above the label", "asking", "saved USD"),
        tuple(_hint_row(name, cost) for name, cost in hinted.items()),
        note=f"{RATES} {ESTIMATED}",
    )
    if means:
        columns = ("workload", "tier", "failed probes", "USD in the mean")
        yield Table("what probes of a tier below the label cost", columns, tuple(means), words=2, note=RATES)


def _hint_row(name: str, cost: WorkloadCost) -> tuple[str, ...]:
    effect = cost.hints
    estimated = effect.estimated(cost.mean_failed)
    return (
        name,
        str(effect.hints),
        str(effect.left_out.total()),
        str(estimated.calls),
        f"{estimated.usd:.4f}",
        f"{effect.above.usd:.4f}",
        f"{effect.asked.usd:.4f}",
        f"{estimated.usd - effect.above.usd - effect.asked.usd:.4f}",
    )


def _early(costs: LabelCosts) -> Iterator[Table]:
    cut = {name: cost.early for name, cost in sorted(costs.workloads.items()) if cost.early.trials}
    if not cut:
        return
    yield Table(
        "what early verdicts saved, estimated",
        ("workload", "trials cut off", "calls, at most", "USD, estimated", "trials without a price"),
        tuple(
            (name, str(early.trials), str(early.left.calls), f"{early.left.usd:.4f}", str(early.unpriced))
            for name, early in cut.items()
        ),
        note=f"{RATES} {CUT_OFF}",
    )


def _chart(costs: LabelCosts, tiers: tuple[str, ...]) -> tuple[Bars, ...]:
    """What the trials of a label took, by its tier."""
    found = []
    for tier, name in enumerate(tiers):
        labels = sum(cost.labels[tier] for cost in costs.workloads.values())
        if labels:
            found.append((name, sum(cost.trials[tier].usd for cost in costs.workloads.values()) / labels, tier))
    if len(found) < 2:
        return ()
    names, values, places = zip(*found, strict=True)
    title = "USD that the trials of a label took, by its tier"
    return (Bars(names, values, places, len(tiers), "USD per label", title),)
