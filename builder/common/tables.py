"""A table of texts, and how it is printed: drawn on a terminal, aligned columns elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from stepdown.builder.common.text import printable


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
    """Print a table. Whatever its cells hold, nothing but text reaches the terminal."""
    columns = tuple(printable(name) for name in table.columns)
    rows = [tuple(printable(cell) for cell in row) for row in table.rows]
    if out.is_terminal:
        drawn = Drawn(title=printable(table.title), title_justify="left")
        for place, name in enumerate(columns):
            justify: Literal["left", "right"] = "left" if place < table.words else "right"
            drawn.add_column(Text(name), justify=justify, overflow="fold")
        for row in rows:
            drawn.add_row(*map(Text, row))
        out.print(drawn)
    else:
        out.print(printable(table.title), markup=False)
        widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
        for row in (columns, *rows):
            cells = (
                cell.ljust(width) if place < table.words else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            out.print("  ".join(cells).rstrip(), markup=False)
    if table.note:
        out.print(printable(table.note), markup=False)
    out.print()
