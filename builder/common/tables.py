"""A table of texts, and how it is printed: drawn on a terminal, aligned columns elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stepdown.builder.common.text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Drawn


@dataclass(frozen=True, slots=True)
class Table:
    """A title, names of columns, and rows of texts; the first `words` columns are words, the others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1
    note: str = ""
    """What a reader must know to read it."""


def print_table(out: Console, table: Table) -> None:
    """Print a table and its note: drawn on a terminal, as aligned columns elsewhere."""
    if out.is_terminal:
        out.print(draw(table))
    else:
        for line in _aligned(table):
            out.print(line, markup=False)
    if table.note:
        out.print(printable(table.note), markup=False)
    out.print()


def draw(table: Table, *, sums: bool = False) -> Drawn:
    """The table drawn with lines. No cell is cut off, and whatever cells hold, nothing but text is printed.

    `sums`: the last row sums up the others, and is set apart from them.
    """
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(title=printable(table.title), title_justify="left")
    for place, name in enumerate(table.columns):
        justify: Literal["left", "right"] = "left" if place < table.words else "right"
        drawn.add_column(Text(printable(name)), justify=justify, overflow="fold")
    for number, row in enumerate(table.rows, 1):
        is_last_part = sums and number == len(table.rows) - 1
        drawn.add_row(*(Text(printable(cell)) for cell in row), end_section=is_last_part)
    return drawn


def _aligned(table: Table) -> Iterator[str]:
    """The table's title, columns and rows as lines of plain text."""
    yield printable(table.title)
    lines = [tuple(printable(cell) for cell in row) for row in (table.columns, *table.rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        cells = (
            cell.ljust(width) if place < table.words else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
