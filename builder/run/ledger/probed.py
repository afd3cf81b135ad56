"""How far the steps of a run's finished instances have been probed with every model, counted without their texts."""

from __future__ import annotations

from dataclasses import dataclass

from stepdown.builder.common.sqlite import SQLiteFile
from stepdown.builder.records import Verdict
from stepdown.builder.run.ledger.schema import InstanceState, Purpose


@dataclass(frozen=True, slots=True)
class Probed:
    """The cells of one finished instance: its steps that are probed, times the models of the pool."""

    instance: int
    cells: int
    tried: int
    """Cells that a probe, or a trial of the search with a verdict, was executed for."""
    technical: int
    """Those of them that came to no verdict for technical reasons."""


class ProbedSteps:
    """Counts cells. A cell has the outcome of the search's first draw, or where that has none, of a probe."""

    def __init__(self, file: SQLiteFile) -> None:
        self._file = file

    def of_instances(self, models: int, last: bool) -> list[Probed]:
        """Every finished instance, in the run's order, in a run of so many models; of its `last` step alone, or of
        all.
        """
        steps = "1" if last else "json_array_length(locks)"
        here = "step = json_array_length(locks)" if last else "step <= json_array_length(locks)"
        query = (
            "WITH done AS (SELECT id, locks FROM instances WHERE state = ?), "  # noqa: S608
            "cells AS (SELECT done.id AS instance, min(verdict = ?) AS technical FROM done JOIN trials "
            f"ON trials.instance = done.id AND superseded = 0 AND {here} "
            "AND (purpose = ? OR (purpose = ? AND sample = 0 AND verdict != ?)) GROUP BY done.id, step, model) "
            f"SELECT done.id, {steps} * ?, count(technical), coalesce(sum(technical), 0) "
            "FROM done LEFT JOIN cells ON cells.instance = done.id GROUP BY done.id ORDER BY done.id"
        )
        technical, probe, search = Verdict.TECHNICAL.value, Purpose.PROBE.value, Purpose.SEARCH.value
        values = (InstanceState.DONE.value, technical, probe, search, technical, models)
        return [Probed(*row) for row in self._file.read(query, values)]
