"""Several policies side by side, as tables: the paper's A17 to A19, and paired differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepdown.builder.common.tables import Table
from stepdown.routing.scores.comparing import PolicyScore
from stepdown.routing.scores.in_sample import NAME
from stepdown.scoring.result import Metric

HEADLINE = {"RowPass": "RowPass", "RowExact": "RowExact", "TrajPass": "TrajPass", "CostSave E": "CostSave"}


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
                    shown(one.name),
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
                (shown(one.name), *(percent(part.metrics[metric].value) for part in one.score.workloads))
                for one in found
            ),
        )
    strong = first.score.tiers[-1]
    yield Table(
        f"errors on rows labelled below {strong}",
        ("policy", *first.score.overall.patterns),
        tuple((shown(one.name), *map(str, one.score.overall.patterns.values())) for one in found),
    )
    yield Table(
        f"failed trajectories, and rows labelled {strong}",
        ("policy", "failed", "of", f"{strong} found", "of", "no answer"),
        tuple(
            (
                shown(one.name),
                str(one.score.overall.failed_trajectories),
                str(one.score.overall.trajectories),
                str(one.score.overall.strong_found),
                str(one.score.overall.strong_rows),
                str(one.score.missing + one.score.broken),
            )
            for one in found
        ),
    )


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def interval(metric: Metric) -> str:
    return "-" if metric.low is None or metric.high is None else f"{metric.low:.1f}..{metric.high:.1f}"


def _lead(metric: Metric) -> str:
    return "-" if metric.value is None else f"{metric.value:+.2f} ({interval(metric)})"


def shown(name: str) -> str:
    return f"{name} (in sample)" if name == NAME else name


def _has_it(found: Sequence[PolicyScore]) -> bool:
    return any(one.name == NAME for one in found)
