"""What is wrong with a release, a line each: named by file, row and field, bounded in number and in length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput

MOST_SHOWN = 100
FieldProblem = tuple[str, str]
"""A field, empty where it is the whole file or record, and what is wrong with it."""
Tell = Callable[[int], None]
"""Called with the number of rows that have been checked so far."""


def silent(rows: int) -> None:
    """Says nothing of it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `row` is a line of `file`, from 1; None where it is not a matter of a row."""

    file: str
    problem: str
    row: int | None = None
    field: str = ""
    id: str = ""
    """Of the row, where it has one."""

    def __str__(self) -> str:
        """A line.

        >>> str(Problem("question_bank.jsonl", "is missing", 7, "messages"))
        'question_bank.jsonl:7: messages: is missing'
        """
        place = f"{self.file}:{self.row}" if self.row is not None else self.file
        text = ": ".join(part for part in (place, self.field, self.problem) if part)
        return f"{text} ({self.id})" if self.id else text


@dataclass(slots=True)
class Problems:
    """The first problems that were found, and how many there are in all."""

    shown: list[Problem] = field(default_factory=list)
    total: int = 0

    def add(self, file: str, problem: str, row: int | None = None, field: str = "", id: str = "") -> None:  # noqa: A002
        self.total += 1
        if len(self.shown) < MOST_SHOWN:
            self.shown.append(
                Problem(printable(file, 200), printable(problem), row, printable(field, 200), printable(id, 250))
            )

    def bad_input(self, file: str, error: BadInput, row: int | None = None) -> None:
        """What a reader has refused, under the name that the release has for the file."""
        self.add(file, error.problem, row, error.field or "")

    def counted(self) -> str:
        """How many there are, and how many of them are not shown.

        >>> Problems(total=1).counted(), Problems(total=2).counted()
        ('1 problem (1 not shown)', '2 problems (2 not shown)')
        """
        hidden = self.total - len(self.shown)
        return f"{self.total} problem{'s' * (self.total != 1)}{f' ({hidden} not shown)' if hidden else ''}"

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.shown)

    def __bool__(self) -> bool:
        return self.total > 0
