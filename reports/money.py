"""Sections on cost: what routing by label would save, one trajectory as a case, and what the build took."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stepdown.builder.common.tables import Table
from stepdown.reports.charts import Bars, Lines
from stepdown.reports.facts import Facts, TrajectoryCost
from stepdown.reports.section import Section, percent

_BINS = 10


def savings(facts: Facts) -> Section | None:
    """Savings against always the strong tier, prompt caching included."""
    title = "Savings against always the strong tier"
    if facts.savings is None:
        lead = f"Not told: {facts.no_savings}." if facts.no_savings else ""
        return Section("savings", title, lead) if lead else None
    found = facts.savings
    names = sorted(found.shares)
    rows = [_savings_row(name, found.strong_usd[name], found.label_usd[name], found.shares[name]) for name in names]
    every = [share for name in names for share in found.shares[name]]
    if len(names) > 1:
        rows.append(_savings_row("all", sum(found.strong_usd.values()), sum(found.label_usd.values()), every))
    counts = [0] * _BINS
    below = sum(share < 0 for share in every)
    for share in every:
        if share >= 0:
            counts[min(int(share * _BINS), _BINS - 1)] += 1
    bins = [f"{100 * n // _BINS} to {100 * (n + 1) // _BINS}%" for n in range(_BINS)]
    if below:
        bins, counts = ["dearer", *bins], [below, *counts]
    return Section(
        "savings",
        title,
        "What trajectories cost when every step goes to its label's tier, beside all steps at the strong one. A step "
        "that has its predecessor's tier (where rates are a run's own, its model) reads the shared prefix from the "
        "prompt cache; after a change the whole prompt is written anew, which can cost more than it saves.",
        (
            Table(
                "cost by label and at the strong tier",
                ("workload", "trajectories", "strong USD", "by label USD", "saved", "median saved", "dearer by label"),
                tuple(rows),
                note=facts.rates,
            ),
            _longest(facts, found.longest),
        ),
        (Bars(tuple(bins), tuple(map(float, counts)), (), 0, "trajectories", "Trajectories by the share saved"),)
        if len(every) > 1
        else (),
    )


def _savings_row(name: str, strong: float, label: float, shares: Sequence[float]) -> tuple[str, ...]:
    return (
        name,
        str(len(shares)),
        f"{strong:.4f}",
        f"{label:.4f}",
        percent(strong - label, strong),
        f"{100 * statistics.median(shares):.1f}%",
        str(sum(share < 0 for share in shares)),
    )


def _longest(facts: Facts, longest: Sequence[TrajectoryCost]) -> Table:
    return Table(
        "the longest trajectories",
        ("instance", "steps", *facts.tiers, "strong USD", "by label USD", "saved"),
        tuple(
            (
                f"{saved.trajectory.benchmark}/{saved.trajectory.instance_id}",
                str(len(saved.trajectory.steps)),
                *(str(sum(step.label == tier for step in saved.trajectory.steps)) for tier in range(len(facts.tiers))),
                f"{sum(saved.strong_usd):.4f}",
                f"{sum(saved.label_usd):.4f}",
                f"{100 * saved.share:.1f}%",
            )
            for saved in longest
        ),
        note=facts.rates,
    )


def case(facts: Facts) -> Section | None:
    """One trajectory, step by step."""
    saved = facts.savings.case if facts.savings else None
    if saved is None:
        return None
    one = saved.trajectory
    strong, label = list(_running(saved.strong_usd)), list(_running(saved.label_usd))
    return Section(
        "case",
        f"A case: {one.benchmark}/{one.instance_id}",
        f"The longest trajectory whose labels are not all alike: {len(one.steps)} steps. Against the strong tier "
        f"throughout, prompt caching included, routing by label {_saves(saved.share)}.",
        (
            Table(
                "the case, step by step",
                (
                    "step",
                    "role",
                    "tier",
                    "prompt tokens",
                    "read from cache",
                    "answer tokens",
                    "strong USD",
                    "label USD",
                ),
                tuple(
                    (
                        str(number),
                        role.value if role else "not known",
                        facts.tiers[step.label],
                        str(step.prompt),
                        str(read),
                        f"{step.output:.0f}",
                        f"{strong_usd:.5f}",
                        f"{label_usd:.5f}",
                    )
                    for number, (step, role, read, strong_usd, label_usd) in enumerate(
                        zip(one.steps, saved.roles, saved.read, saved.strong_usd, saved.label_usd, strict=True), 1
                    )
                ),
                words=3,
                note=facts.rates,
            ),
        ),
        (
            Lines(
                (("always the strong tier", tuple(strong)), ("by label", tuple(label))),
                "step",
                "USD so far",
                "Cost of the case so far, after each step",
            ),
        )
        if len(one.steps) > 1
        else (),
    )


def _saves(share: float) -> str:
    return f"saves {100 * share:.1f}%" if share >= 0 else f"costs {-100 * share:.1f}% more"


def _running(values: Sequence[float]) -> Iterator[float]:
    total = 0.0
    for value in values:
        total += value
        yield total


def build(facts: Facts) -> Section | None:
    """What the run took: what the protocol needed, and what was paid."""
    needed, spend = facts.bank.manifest.get("needed"), facts.spend
    if not facts.is_run or not isinstance(needed, Mapping) or spend is None:
        return None
    paid: dict[tuple[str, str], tuple[int, float]] = {}
    for line in spend.get("by_model") or ():
        key = str(line["purpose"]), str(line["model"])
        calls, usd = paid.get(key, (0, 0.0))
        paid[key] = calls + line["calls"], usd + line["usd"]
    unbooked: Mapping[str, Any] = spend.get("unbooked") or {"calls": 0, "usd": 0.0}
    calls_needed = sum((needed.get("calls") or {}).values())
    labels = facts.rows
    lines = [
        ("calls that the protocol needed", str(calls_needed)),
        ("their list price", f"${needed.get('list_price_usd', 0):.4f}"),
        ("calls paid by this run", str(spend["calls"] + unbooked["calls"])),
        ("paid, at list price", f"${spend['usd'] + unbooked['usd']:.4f}"),
        ("calls that earlier runs had paid", str(spend.get("calls_paid_by_earlier_runs", 0))),
        ("calls of trials that never ended", str(unbooked["calls"])),
        ("errors retried", str(spend.get("errors_retried", 0))),
        ("calls needed per label", f"{calls_needed / labels:.2f}" if labels else "-"),
    ]
    rows = [
        (model, purpose, str(calls), f"{usd:.4f}")
        for (purpose, model), (calls, usd) in sorted(paid.items(), key=lambda item: (-item[1][1], item[0]))
    ]
    note = "Rates: list prices of the run's own pool; tokens are as the providers counted them."
    tables = [Table("the build", ("", "amount"), tuple(lines), note=note)]
    if rows:
        columns = ("model", "purpose", "calls", "USD")
        tables.append(Table("paid by model and purpose", columns, tuple(rows), words=2, note=note))
    return Section(
        "build", "Cost of the build", "What finding these labels took, at list price.", tuple(tables), _by_purpose(paid)
    )


def _by_purpose(paid: Mapping[tuple[str, str], tuple[int, float]]) -> tuple[Bars, ...]:
    calls: dict[str, float] = {}
    for (purpose, _), (count, _usd) in sorted(paid.items()):
        calls[purpose] = calls.get(purpose, 0.0) + count
    if len(calls) < 2:
        return ()
    return (Bars(tuple(calls), tuple(calls.values()), (), 0, "calls paid", "Calls paid by what they were made for"),)
