"""A table of texts, and how it is printed: drawn on a terminal, aligned columns elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stepdown.builder.common.text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table as Drawn
    from rich.text import Text


LONGEST_WHOLE = 40
"""Characters of a word that is kept whole. A longer one, such as a path, is folded where it must be."""


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


def draw(table: Table, *, sums: bool = False) -> DrawnTable:
    """The table drawn with lines. No cell is cut off, and whatever cells hold, nothing but text is printed.

    `sums`: the last row sums up the others, and is set apart from them.
    """
    return DrawnTable(table, sums)


@dataclass(frozen=True, slots=True)
class DrawnTable:
    """A table as rich draws it. Where a screen is too narrow for its words, each row is drawn as lines of its own: a
    word that is split in two can neither be read nor searched for.
    """

    table: Table
    sums: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Drawn | Text]:
        drawn = _drawn(self.table, self.sums)
        needed = sum(_longest_word(cells) for cells in _cells(self.table)) + 3 * len(self.table.columns) + 1
        if needed <= options.max_width:
            yield drawn
        else:
            yield from _stacked(self.table)


def _drawn(table: Table, sums: bool) -> Drawn:
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(title=printable(table.title), title_justify="left")
    for place, (name, cells) in enumerate(zip(table.columns, _cells(table), strict=True)):
        justify: Literal["left", "right"] = "left" if place < table.words else "right"
        least = _longest_word(cells)
        drawn.add_column(Text(printable(name)), justify=justify, overflow="fold", min_width=least)
    for number, row in enumerate(table.rows, 1):
        is_last_part = sums and number == len(table.rows) - 1
        drawn.add_row(*(Text(printable(cell)) for cell in row), end_section=is_last_part)
    return drawn


def _cells(table: Table) -> Iterator[tuple[str, ...]]:
    """The name and the cells of each column, as they are printed."""
    for column in zip(table.columns, *table.rows, strict=True):
        yield tuple(printable(cell) for cell in column)


def _longest_word(cells: tuple[str, ...]) -> int:
    from rich.cells import cell_len

    longest = max((cell_len(word) for cell in cells for word in cell.split()), default=0)
    return min(longest, LONGEST_WHOLE)


def _stacked(table: Table) -> Iterator[Text]:
    """The table's title, and each row as a line for each of its cells."""
    from rich.text import Text

    yield Text(printable(table.title))
    for row in table.rows:
        yield Text()
        for name, cell in zip(table.columns, row, strict=True):
            yield Text(f"{printable(name)}: {printable(cell)}" if name else printable(cell))


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
