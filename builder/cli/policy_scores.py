"""What `stepdown score --policy` prints: several policies on the same rows, beside what needs no router."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import click

from stepdown.builder.cli import console
from stepdown.builder.common.tables import Table
from stepdown.builder.common.text import printable
from stepdown.routing.policies.asking import Asking
from stepdown.routing.policies.contract import Policy
from stepdown.routing.policies.loading import load_policy
from stepdown.routing.scores.comparing import PolicyScore, score_policies
from stepdown.routing.scores.in_sample import NAME, NearestInSample
from stepdown.scoring.bank import Bank
from stepdown.scoring.result import Metric
from stepdown.scoring.score import ScoreSettings

HEADLINE = {"RowPass": "RowPass", "RowExact": "RowExact", "TrajPass": "TrajPass", "CostSave E": "CostSave"}


def scored(bank: Bank, named: Sequence[str], settings: ScoreSettings) -> list[PolicyScore]:
    """Every named policy's score, progress on stderr where that is a terminal. Raises BadInput."""
    for name in named:
        console.name_policy_code(name)
    policies = [_policy(name, bank) for name in named]
    is_watched = sys.stderr.isatty()

    def notify(name: str, done: int) -> None:
        if is_watched:
            click.echo(f"\r{name}: {done} rows\033[K", err=True, nl=False)

    found = score_policies(bank, policies, settings, notify)
    if is_watched:
        click.echo("", err=True)
    for policy in policies:
        if isinstance(policy, Asking):
            click.echo(told_of_asking(policy), err=True)
    return found


def told_of_asking(policy: Asking) -> str:
    """What a router's own calls came to, in a line."""
    asked = policy.asked
    kept = f"{asked.calls - asked.fresh} of them answered before"
    said = f"{policy.name}: {asked.calls} calls of its own, {kept}; list price ${asked.usd:.4f}"
    return printable(f"{said}; malformed answers: {asked.malformed}")


def _policy(name: str, bank: Bank) -> Policy:
    if name == NAME:
        return NearestInSample(bank)
    return load_policy(name)


def tables(found: Sequence[PolicyScore]) -> Iterator[Table]:
    """The policies side by side; the first is what the others are held against."""
    first = found[0]
    names = (*HEADLINE, "Combined")
    baselines = first.score.baselines
    yield Table(
        "policies (percent)",
        ("policy", *HEADLINE.values(), "Combined", "95% interval"),
        (
            *(
                (
                    _shown(one.name),
                    *(percent(one.score.overall.metrics[name].value) for name in names),
                    interval(one.score.overall.metrics["Combined"]),
                )
                for one in found
            ),
            *((name, *(percent(each[metric]) for metric in names), "") for name, each in baselines.items()),
            *(
                (f"best fixed, {best.basis}{how}", *(percent(each[metric]) for metric in names), "")
                for best in first.score.best_fixed
                for how, each in (("", best.chosen), (" (hindsight)", best.hindsight))
            ),
        ),
        note="beneath the policies: what needs no router. A best fixed tier is chosen on training groups and scored on "
        "the others" + (f". {NAME} has seen the rows it is scored on: an upper reference" if _has_it(found) else ""),
    )
    if len(found) > 1:
        yield Table(
            f"points above {first.name}, paired on the same trajectories",
            ("policy", *HEADLINE.values(), "Combined"),
            tuple((one.name, *(_lead(one.over_first[name]) for name in names)) for one in found[1:]),
            note="a difference whose interval holds 0 is none that these rows can show",
        )
    workloads = [part.name for part in first.score.workloads]
    for metric, title in (("Combined", "Combined"), ("CostSave E", "CostSave")):
        yield Table(
            f"{title} by workload (percent)",
            ("policy", *workloads),
            tuple(
                (_shown(one.name), *(percent(part.metrics[metric].value) for part in one.score.workloads))
                for one in found
            ),
        )
    strong = first.score.tiers[-1]
    yield Table(
        f"errors on rows labelled below {strong}",
        ("policy", *first.score.overall.patterns),
        tuple((_shown(one.name), *map(str, one.score.overall.patterns.values())) for one in found),
    )
    yield Table(
        f"failed trajectories, and rows labelled {strong}",
        ("policy", "failed", "of", f"{strong} found", "of", "no answer"),
        tuple(
            (
                _shown(one.name),
                str(one.score.overall.failed_trajectories),
                str(one.score.overall.trajectories),
                str(one.score.overall.strong_found),
                str(one.score.overall.strong_rows),
                str(one.score.missing + one.score.broken),
            )
            for one in found
        ),
    )


def as_json(found: Sequence[PolicyScore], part: Any) -> list[dict[str, Any]]:
    """Each policy as JSON; `part` makes the JSON of a score."""
    return [
        {
            "policy": one.name,
            "version": one.version,
            "in_sample": one.name == NAME,
            "score": part(one.score),
            "over_first": {name: asdict(metric) for name, metric in one.over_first.items()},
        }
        for one in found
    ]


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def interval(metric: Metric) -> str:
    return "-" if metric.low is None or metric.high is None else f"{metric.low:.1f}..{metric.high:.1f}"


def _lead(metric: Metric) -> str:
    return "-" if metric.value is None else f"{metric.value:+.2f} ({interval(metric)})"


def _shown(name: str) -> str:
    return f"{name} (in sample)" if name == NAME else name


def _has_it(found: Sequence[PolicyScore]) -> bool:
    return any(one.name == NAME for one in found)
