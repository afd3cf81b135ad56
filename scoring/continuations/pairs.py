"""Matched pairs: cells that differ in one thing alone. Their transitions between states, and what routing would change.

A technical outcome says nothing about a model. It stands in the matrix, and in no share of states.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from stepdown.builder.continuations.cells import Cell
from stepdown.builder.records import OutcomeState
from stepdown.scoring.group_draws import Estimate, GroupDraws

STATES = tuple(OutcomeState)
"""In the order of rows and columns of a transition matrix."""
SETTLED = tuple(state for state in STATES if state is not OutcomeState.TECHNICAL)
FACTORS = ("context", "feedback", "model", "stage", "condition")
"""What matched cells may differ in."""
_OF_CHECKPOINTS = ("stage", "condition")
_COMPLETE, _UNSAFE, _TECHNICAL = OutcomeState.COMPLETE, OutcomeState.UNSAFE, OutcomeState.TECHNICAL

Pair = tuple[Cell, Cell]
Levels = Mapping[str, str]
"""Factors with the level that all cells of a table have."""


def levels(cells: Sequence[Cell], factor: str) -> list[str]:
    """The levels of a factor in the order of the cells; without the empty one, which is no level."""
    return [level for level in dict.fromkeys(getattr(cell, factor) for cell in cells) if level]


def divided(cells: Sequence[Cell], by: Sequence[str]) -> Iterator[tuple[Levels, list[Cell]]]:
    """The cells by their levels of some factors, in the order of the cells."""
    parts: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        parts[tuple(getattr(cell, factor) for factor in by)].append(cell)
    for found, part in parts.items():
        yield dict(zip(by, found, strict=True)), part


def matched(cells: Sequence[Cell], factor: str, before: str, after: str) -> list[Pair]:
    """Pairs of cells of which one has the level `before` and one the level `after`, and which are alike otherwise.

    For a stage or condition: two checkpoints of one parent, alike in the other of the two.
    """
    sides: dict[tuple[object, ...], dict[str, Cell]] = defaultdict(dict)
    for cell in cells:
        if (level := getattr(cell, factor)) in (before, after):
            sides[_but(cell, factor)][level] = cell
    return [(side[before], side[after]) for side in sides.values() if len(side) == 2]


def _but(cell: Cell, factor: str) -> tuple[object, ...]:
    """All that matched cells have in common, for a factor."""
    where = ("parent", *_OF_CHECKPOINTS) if factor in _OF_CHECKPOINTS else ("checkpoint",)
    return tuple(getattr(cell, name) for name in (*where, "context", "feedback", "model", "draw") if name != factor)


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """What the cells of some levels came to."""

    levels: Levels
    counts: Mapping[str, int]
    """Cells by state."""
    limited: int
    """Cells that a limit of the plan ended."""
    shares: Mapping[str, Estimate]
    """Of the cells that are not technical, by state."""


def outcomes(cells: Sequence[Cell], by: Sequence[str], draws: GroupDraws) -> tuple[OutcomeRow, ...]:
    """States by the levels of some factors."""
    rows = []
    for found, part in divided(cells, by):
        counts = Counter(cell.state for cell in part)
        settled = [cell for cell in part if cell.state is not _TECHNICAL]
        shares = draws.means([cell.parent for cell in settled], [_ones(cell.state) for cell in settled], len(SETTLED))
        by_state = {state.value: counts[state] for state in STATES}
        rows.append(OutcomeRow(found, by_state, sum(bool(cell.limited) for cell in part), _named(shares)))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Transition:
    """How the states of matched cells change from one level of a factor to another one."""

    factor: str
    before: str
    after: str
    within: Levels
    """What the pairs have in common beside."""
    pairs: int
    counts: tuple[tuple[int, ...], ...]
    """Pairs by the state before (rows) and after (columns), both in the order of STATES."""
    shares: tuple[tuple[Estimate, ...], ...]
    """The same, of all pairs."""
    settled: int
    """Pairs of which neither is technical."""
    changes: Mapping[str, Estimate]
    """By how much the share of each state grows, over the settled pairs."""


def transitions(cells: Sequence[Cell], by: Sequence[str], draws: GroupDraws) -> tuple[Transition, ...]:
    """A matrix for each two levels of each factor, within the levels of `by`; where no cells match, none."""
    return tuple(
        _transition(factor, before, after, within, pairs, draws)
        for factor in FACTORS
        for before, after in combinations(levels(cells, factor), 2)
        for within, part in divided(cells, [name for name in by if name != factor])
        if (pairs := matched(part, factor, before, after))
    )


def _transition(
    factor: str, before: str, after: str, within: Levels, pairs: Sequence[Pair], draws: GroupDraws
) -> Transition:
    moves = [(first.state, second.state) for first, second in pairs]
    counts, kinds = Counter(moves), list(product(STATES, STATES))
    shares = draws.means(_parents(pairs), [[float(move == kind) for kind in kinds] for move in moves], len(kinds))
    settled = _settled(pairs)
    grown = [
        [after - before for before, after in zip(_ones(first.state), _ones(second.state), strict=True)]
        for first, second in settled
    ]
    return Transition(
        factor=factor,
        before=before,
        after=after,
        within=within,
        pairs=len(pairs),
        counts=tuple(tuple(counts[row, column] for column in STATES) for row in STATES),
        shares=tuple(tuple(shares[row * len(STATES) :][: len(STATES)]) for row in range(len(STATES))),
        settled=len(settled),
        changes=_named(draws.means(_parents(settled), grown, len(SETTLED))),
    )


@dataclass(frozen=True, slots=True)
class Routing:
    """What changes where a router gives the same cells to another model. The five kinds share out the settled pairs."""

    base: str
    other: str
    within: Levels
    settled: int
    technical: int
    """Pairs of which one is technical or both are: no kind."""
    both_complete: int
    rescued: int
    """Not complete under the base, complete under the other one."""
    rescued_from_unsafe: int
    """Of these, those that were unsafe."""
    lost: int
    """Collateral loss: complete under the base, not complete under the other one."""
    lost_to_unsafe: int
    persistent_unsafe: int
    """Unsafe under both."""
    neither: int
    """The rest: complete under neither, and not unsafe under both."""
    rescue: Estimate
    """Share of the settled pairs that are rescued; so with the two next."""
    loss: Estimate
    persistence: Estimate
    net: Estimate
    """Rescue less loss: by how much the share of complete cells grows."""


def routing(cells: Sequence[Cell], by: Sequence[str], draws: GroupDraws) -> tuple[Routing, ...]:
    """Every two models on the cells that both have executed; the first in the cells' order is the base."""
    return tuple(
        _routing(base, other, within, pairs, draws)
        for base, other in combinations(levels(cells, "model"), 2)
        for within, part in divided(cells, [name for name in by if name != "model"])
        if (pairs := matched(part, "model", base, other))
    )


def _routing(base: str, other: str, within: Levels, pairs: Sequence[Pair], draws: GroupDraws) -> Routing:
    settled = _settled(pairs)
    states = [(first.state, second.state) for first, second in settled]
    rescued = [before is not _COMPLETE and after is _COMPLETE for before, after in states]
    lost = [before is _COMPLETE and after is not _COMPLETE for before, after in states]
    persistent = [before is after is _UNSAFE for before, after in states]
    both = sum(before is after is _COMPLETE for before, after in states)
    kinds = [[float(one), float(two), float(three), float(one) - float(two)]
             for one, two, three in zip(rescued, lost, persistent, strict=True)]  # fmt: skip
    rescue, loss, persistence, net = draws.means(_parents(settled), kinds, 4)
    return Routing(
        base=base,
        other=other,
        within=within,
        settled=len(settled),
        technical=len(pairs) - len(settled),
        both_complete=both,
        rescued=sum(rescued),
        rescued_from_unsafe=sum(before is _UNSAFE and after is _COMPLETE for before, after in states),
        lost=sum(lost),
        lost_to_unsafe=sum(before is _COMPLETE and after is _UNSAFE for before, after in states),
        persistent_unsafe=sum(persistent),
        neither=len(settled) - both - sum(rescued) - sum(lost) - sum(persistent),
        rescue=rescue,
        loss=loss,
        persistence=persistence,
        net=net,
    )


def _ones(state: OutcomeState) -> list[float]:
    """A one in the place of the state, among SETTLED."""
    return [float(state is one) for one in SETTLED]


def _named(estimates: Sequence[Estimate]) -> dict[str, Estimate]:
    return {state.value: one for state, one in zip(SETTLED, estimates, strict=True)}


def _parents(pairs: Sequence[Pair]) -> list[str]:
    """Of each pair; where stages or conditions are compared both are of one parent, and so they always are."""
    return [first.parent for first, _ in pairs]


def _settled(pairs: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in pairs if _TECHNICAL not in (pair[0].state, pair[1].state)]
