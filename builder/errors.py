"""The ways a run can go wrong, each a class named for what happened.

A verdict is not an error: a model that fails its task is the normal case and is recorded, not raised. Errors can be
pickled, since an instance may be worked on by another machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class StepdownError(Exception):
    """The root of every error that stepdown raises on purpose."""


class BadInput(StepdownError):
    """Something a person wrote or passed is wrong: one line that names the file, the line and the field. Exit code 2.

    >>> str(BadInput("unknown key", file="run.yaml", line=3, field="protocol.pol"))
    'run.yaml:3: protocol.pol: unknown key'
    """

    def __init__(
        self, problem: str, *, file: str | Path | None = None, line: int | None = None, field: str | None = None
    ) -> None:
        self.problem, self.file, self.line, self.field = problem, file, line, field
        place = f"{file}:{line}" if file and line else str(file) if file else f"line {line}" if line else ""
        super().__init__(" ".join(": ".join(part for part in (place, field, problem) if part).split()))


class RunStopped(StepdownError):
    """The run must not go on: a rejected key, no credit, an unknown model. No verdict follows from it. Exit code 2.

    `in_protocol` says that it can be mended only in the config's protocol, which is frozen for a run.
    """

    def __init__(self, text: str, *, in_protocol: bool = False) -> None:
        super().__init__(text)
        self.in_protocol = in_protocol


class Technical(StepdownError):
    """The apparatus failed, not the model: transport, time-out, a dead container, a diverged replay.

    `attempts` are the errors that came before this one, oldest first: they are evidence and go to the ledger.
    """

    def __init__(self, reason: str, attempts: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.attempts = tuple(attempts)


class Lost(Technical):
    """A live environment is gone, its daemon or its machine: the trial may well come to its end when executed again."""


class Interrupted(StepdownError):
    """A person or a budget asked the run to stop; work in hand was left where it was."""


class JudgeBelowBar(Interrupted):
    """A judge has surely fallen below its bar: no further trial is begun. `judge` is its name. Exit code 3."""

    def __init__(self, judge: str, why: str) -> None:
        super().__init__(f"judge {judge} has fallen below `judge.bar`: {why}")
        self.judge, self.why = judge, why

    def __reduce__(self) -> tuple[type[JudgeBelowBar], tuple[str, str]]:
        return JudgeBelowBar, (self.judge, self.why)


class BudgetReached(Interrupted):
    """A budget of the run is used up: no further call is begun. `name` is its field in the config. Exit code 3."""

    def __init__(self, name: str, spent: str) -> None:
        super().__init__(f"the run's budget of {name} is reached ({spent})")
        self.name, self.spent = name, spent

    def __reduce__(self) -> tuple[type[BudgetReached], tuple[str, str]]:
        return BudgetReached, (self.name, self.spent)
