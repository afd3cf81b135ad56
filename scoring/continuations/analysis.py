"""The whole analysis of continuations: outcomes, transitions, routing, and where features are given a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepdown.builder.continuations.cells import Cell
from stepdown.builder.records import OutcomeState
from stepdown.scoring.continuations.pairs import (
    STATES,
    OutcomeRow,
    Routing,
    Transition,
    levels,
    outcomes,
    routing,
    transitions,
)
from stepdown.scoring.continuations.predicting import Features, Prediction, predict
from stepdown.scoring.group_draws import RESAMPLES, GroupDraws


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """What an analysis depends on beside the cells."""

    by: tuple[str, ...] = ("model",)
    """Factors within whose levels transitions and routing are told apart; outcomes are by these, and always by model,
    context and feedback."""
    resamples: int = RESAMPLES
    """Of parents; 0: no intervals."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Analysis:
    """What cells came to."""

    cells: int
    excluded: int
    """Cells that a mask leaves out; they are in no figure."""
    parents: int
    outcomes: tuple[OutcomeRow, ...]
    transitions: tuple[Transition, ...]
    routing: tuple[Routing, ...]
    states: tuple[OutcomeState, ...] = STATES
    """In the order of rows and columns of transitions."""
    prediction: Prediction | None = None


def analyse(
    cells: Sequence[Cell],
    settings: AnalysisSettings,
    excluded: int = 0,
    features: Features | None = None,
    predicted: OutcomeState = OutcomeState.UNSAFE,
) -> Analysis:
    """Analyse the cells that are left. Levels, and so which of two is the first, are in the order of the cells."""
    parents = {cell.parent for cell in cells}
    draws = GroupDraws(parents, settings.resamples, settings.seed)
    varied = [factor for factor in ("context", "feedback") if len(levels(cells, factor)) > 1]
    shown = list(dict.fromkeys(("model", *settings.by, *varied)))
    return Analysis(
        cells=len(cells),
        excluded=excluded,
        parents=len(parents),
        outcomes=outcomes(cells, shown, draws),
        transitions=transitions(cells, settings.by, draws),
        routing=routing(cells, settings.by, draws),
        prediction=predict(cells, predicted, features, draws) if features is not None else None,
    )
