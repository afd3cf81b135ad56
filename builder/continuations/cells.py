"""A cell is one execution to be made: a checkpoint, in a context, with feedback, by a model, in a draw. Its record says
what that came to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from stepdown.builder.records import OutcomeState


class CellKey(NamedTuple):
    """What names a cell within its plan."""

    checkpoint: str
    context: str
    feedback: str
    model: str
    draw: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One execution, by all that it is compared by, with the state that it came to."""

    checkpoint: str
    parent: str
    """What is drawn whole when intervals are made."""
    stage: str
    condition: str
    """Both empty where the plan says none."""
    context: str
    feedback: str
    model: str
    draw: int
    state: OutcomeState
    limited: str = ""
    """Which limit of the plan ended it, `decisions` or `tool_calls`; empty where none did."""

    @property
    def key(self) -> CellKey:
        return CellKey(self.checkpoint, self.context, self.feedback, self.model, self.draw)

    @property
    def matched_set(self) -> tuple[str, int]:
        """What it is excluded with: all contexts, feedback and models at its checkpoint in its draw."""
        return self.checkpoint, self.draw

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "state": self.state.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        """The inverse, of a record that may hold more. Raises KeyError, TypeError or ValueError on anything else."""
        words = {name: data[name] for name in _WORDS}
        draw, limited = data["draw"], data.get("limited", "")
        if any(not isinstance(value, str) for value in (*words.values(), limited)) or type(draw) is not int:
            raise TypeError("not a cell")
        return cls(**words, draw=draw, state=OutcomeState(data["state"]), limited=limited)


def same_place(parent: str, condition: str, stage: str) -> tuple[str, str, str] | None:
    """What no two checkpoints may share, since they are compared by it; None for one that says neither of the two."""
    return (parent, condition, stage) if condition or stage else None


_WORDS = ("checkpoint", "parent", "stage", "condition", "context", "feedback", "model")
FILE = "cells.jsonl"
"""The records of all cells that were executed, in a folder of continuations."""
