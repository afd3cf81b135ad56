"""The tables of `stepdown continue`: for a terminal, and as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from stepdown.audit.exchange.spreadsheet import quoted
from stepdown.builder.common.files import whole_text_file
from stepdown.builder.common.tables import Table
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput
from stepdown.scoring.continuations.analysis import Analysis
from stepdown.scoring.continuations.pairs import SETTLED, STATES, Levels, OutcomeRow, Routing, Transition
from stepdown.scoring.continuations.predicting import Prediction
from stepdown.scoring.group_draws import Estimate

Row = Sequence[str | int | float | None]
_COMPARED = ("", "from", "to", "within")
_KINDS = (
    "both_complete",
    "rescued",
    "rescued_from_unsafe",
    "lost",
    "lost_to_unsafe",
    "persistent_unsafe",
    "neither",
)
"""What can become of a pair of models at one cell, as `Routing` counts it."""


def tables_of(found: Analysis) -> Iterator[Table]:
    """What is printed."""
    if found.outcomes:
        yield _outcomes(found.outcomes)
    if found.transitions:
        yield _matrices(found.transitions)
        yield _changes(found.transitions)
    if found.routing:
        yield _routing(found.routing)


def lines_of(found: Analysis) -> Iterator[str]:
    """What is said below the tables."""
    excluded = f"; {found.excluded} cells are excluded by the mask" if found.excluded else ""
    yield f"{found.cells} cells of {found.parents} parents{excluded}"
    if found.prediction is not None:
        yield from _predicted(found.prediction)


def _outcomes(rows: Sequence[OutcomeRow]) -> Table:
    factors = list(rows[0].levels)
    return Table(
        "outcomes",
        (
            *factors,
            *(state.value for state in STATES),
            "limited",
            "unsafe %",
            "95% interval",
            "complete %",
            "95% interval",
        ),
        tuple(
            (
                *map(printable, row.levels.values()),
                *(str(row.counts[state.value]) for state in STATES),
                str(row.limited),
                *_percent(row.shares["unsafe"]),
                *_percent(row.shares["complete"]),
            )
            for row in rows
        ),
        words=len(factors),
        note="shares are of the cells that are not technical; limited: ended by a limit of the plan",
    )


def _matrices(rows: Sequence[Transition]) -> Table:
    return Table(
        "transitions: pairs by the state before (from) and after (to)",
        (*_COMPARED, "before", *(state.value for state in STATES)),
        tuple(
            (*_compared(one), state.value, *map(str, counts))
            for one in rows
            for state, counts in zip(STATES, one.counts, strict=True)
            if any(counts)
        ),
        words=5,
        note="cells that differ in this one thing alone; states that no pair begins in are left out",
    )


def _changes(rows: Sequence[Transition]) -> Table:
    return Table(
        "changes of shares, in points",
        (*_COMPARED, "pairs", *(state.value for state in SETTLED)),
        tuple(
            (
                *_compared(one),
                str(one.settled),
                *(_points(one.changes[state.value]) for state in SETTLED),
            )
            for one in rows
        ),
        words=4,
        note="over pairs of which neither is technical, with 95% intervals",
    )


def _routing(rows: Sequence[Routing]) -> Table:
    return Table(
        "routing the same cells to another model",
        ("base", "other", "within", "pairs", "technical", *(name.replace("_", " ") for name in _KINDS), "net, points"),
        tuple(
            (
                printable(one.base),
                printable(one.other),
                _within(one.within),
                str(one.settled),
                str(one.technical),
                *(str(getattr(one, kind)) for kind in _KINDS),
                _points(one.net),
            )
            for one in rows
        ),
        words=3,
        note="rescued: not complete under the base, complete under the other; lost: the reverse; net: their difference",
    )


def _predicted(one: Prediction) -> Iterator[str]:
    yield (
        f"predicting {one.outcome} by {', '.join(one.features)}: {one.positives} of {one.rows} cells, "
        f"each of {one.parents} parents left out once"
    )
    if one.auc.value is None:
        yield "AUC: undefined, since all cells are of one class"
    else:
        interval = "" if one.auc.low is None or one.auc.high is None else f" ({one.auc.low:.3f} to {one.auc.high:.3f})"
        yield f"AUC over all held-out scores: {one.auc.value:.3f}{interval}"
    if one.one_class_folds:
        yield f"{one.one_class_folds} folds had one class only in training: their cells have the score 0.5"
    if one.without_features or one.technical:
        yield f"left out: {one.without_features} cells without features, {one.technical} technical ones"


def _compared(one: Transition) -> tuple[str, ...]:
    """What a row is of, in the columns of _COMPARED."""
    return one.factor, printable(one.before), printable(one.after), _within(one.within)


def _within(levels: Levels) -> str:
    return ", ".join(f"{factor} {printable(level)}" for factor, level in levels.items() if level) or "all"


def _percent(share: Estimate) -> tuple[str, str]:
    if share.value is None:
        return "-", "-"
    interval = "-" if share.low is None or share.high is None else f"{100 * share.low:.1f}..{100 * share.high:.1f}"
    return f"{100 * share.value:.1f}", interval


def _points(change: Estimate) -> str:
    if change.value is None:
        return "-"
    if change.low is None or change.high is None:
        return f"{100 * change.value:+.1f}"
    return f"{100 * change.value:+.1f} ({100 * change.low:+.1f}..{100 * change.high:+.1f})"


def write_tables(found: Analysis, folder: Path) -> None:
    """Write every figure of the tables as CSV files into a folder. Raises BadInput where that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in _files(found):
            with whole_text_file(folder / f"{name}.csv") as file:
                table = csv.writer(file, lineterminator="\n")
                for row in rows:
                    table.writerow(quoted(cell) if isinstance(cell, str) else cell for cell in row)
    except OSError as error:
        raise BadInput(f"the tables can not be written: {error.strerror}", file=folder) from None


def _files(found: Analysis) -> Iterator[tuple[str, Iterator[Row]]]:
    yield "outcomes", _outcome_rows(found)
    yield "transitions", _transition_rows(found)
    yield "changes", _change_rows(found)
    yield "routing", _routing_rows(found)
    if found.prediction is not None:
        yield "predictions", _prediction_rows(found.prediction)


def _outcome_rows(found: Analysis) -> Iterator[Row]:
    factors = list(found.outcomes[0].levels) if found.outcomes else []
    yield [*factors, "state", "cells", "share", "low", "high", "limited"]
    for row in found.outcomes:
        for state, count in row.counts.items():
            share = row.shares.get(state, Estimate())
            yield [*row.levels.values(), state, count, *_cells(share), row.limited]


def _transition_rows(found: Analysis) -> Iterator[Row]:
    yield ["factor", "from", "to", "within", "state_from", "state_to", "pairs", "share", "low", "high"]
    for one in found.transitions:
        for before, counts, shares in zip(STATES, one.counts, one.shares, strict=True):
            for after, count, share in zip(STATES, counts, shares, strict=True):
                states = (before.value, after.value)
                yield [one.factor, one.before, one.after, _named(one.within), *states, count, *_cells(share)]


def _change_rows(found: Analysis) -> Iterator[Row]:
    yield ["factor", "from", "to", "within", "state", "settled_pairs", "change", "low", "high"]
    for one in found.transitions:
        for state, change in one.changes.items():
            yield [one.factor, one.before, one.after, _named(one.within), state, one.settled, *_cells(change)]


def _routing_rows(found: Analysis) -> Iterator[Row]:
    shares = ("rescue", "loss", "persistence", "net")
    yield [
        "base",
        "other",
        "within",
        "settled",
        "technical",
        *_KINDS,
        *(f"{name}{end}" for name in shares for end in ("", "_low", "_high")),
    ]
    for one in found.routing:
        counts = [one.settled, one.technical, *(getattr(one, kind) for kind in _KINDS)]
        estimates = [cell for name in shares for cell in _cells(getattr(one, name))]
        yield [one.base, one.other, _named(one.within), *counts, *estimates]


def _prediction_rows(found: Prediction) -> Iterator[Row]:
    yield ["checkpoint", "parent", "context", "feedback", "model", "draw", "state", "score", found.outcome]
    for one in found.scored:
        cell = one.cell
        yield [*cell.key[:1], cell.parent, *cell.key[1:], cell.state.value, one.score, int(one.truth)]


def _named(levels: Levels) -> str:
    return "; ".join(f"{factor}={level}" for factor, level in levels.items())


def _cells(one: Estimate) -> tuple[float | None, float | None, float | None]:
    return one.value, one.low, one.high
