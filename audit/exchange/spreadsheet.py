"""CSV for a spreadsheet: one step a row, as text; the reviewer fills in `verdict` and `notes`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from stepdown.audit.exchange.records import (
    ExchangeFormat,
    IncomingAnswer,
    OutgoingStep,
    lower_answers_text,
    message_text,
    question,
    tool_list,
    transcript,
)
from stepdown.builder.common.separated import declares_delimiter, delimiter_of
from stepdown.builder.config.validation import read_text
from stepdown.builder.errors import BadInput

COLUMNS = (
    "id",
    "reviewer",
    "verdict",
    "notes",
    "question",
    "target_tier",
    "below",
    "response",
    "lower",
    "conversation",
    "tools",
    "step_index",
    "total_steps",
    "prefix",
)
NEEDED = ("id", "reviewer", "verdict", "notes", "prefix")

LONGEST_CELL = 30_000
"""Characters. A spreadsheet's cell takes 32,767. Of a longer text the end is kept, which is what the step answers."""

_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""The beginning of a formula, also in the full-width forms that some spreadsheets accept."""


def quoted(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula; `unquoted` gives the text back.

    >>> quoted("=HYPERLINK(1)"), quoted("plain"), unquoted(quoted("'=1"))
    ("'=HYPERLINK(1)", 'plain', "'=1")
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unquoted(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _write(steps: Iterable[OutgoingStep], out: TextIO) -> int:
    table = csv.writer(out, lineterminator="\r\n")
    table.writerow(COLUMNS)
    count = 0
    for step in steps:
        case = step.case
        cells = (
            case.id,
            step.reviewer,
            step.verdict.value if step.verdict else "",
            step.notes,
            question(case),
            case.tier,
            case.below or "",
            _fitting(message_text(case.response)),
            _fitting(lower_answers_text(case.lower)),
            _fitting(transcript(case)),
            _fitting(tool_list(case)),
            str(case.step_index),
            str(case.total_steps),
            case.prefix_digest,
        )
        table.writerow(quoted(cell.replace("\0", "\ufffd")) for cell in cells)
        count += 1
    return count


def _fitting(text: str) -> str:
    if len(text) <= LONGEST_CELL:
        return text
    return f"[{len(text) - LONGEST_CELL} characters left out]\n{text[-LONGEST_CELL:]}"


def _read(path: Path) -> Iterator[IncomingAnswer]:
    text = read_text(path)
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    first, _, rest = text.partition("\n")
    above = int(declares_delimiter(first))
    text = rest if above else text
    delimiter = delimiter_of(text.partition("\n")[0], NEEDED)
    # Strict, since otherwise a quote that is never closed would silently swallow all rows after it.
    table = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(table, [])]
        if missing := [name for name in NEEDED if name not in names]:
            raise BadInput(f"the table has no column {missing[0]!r}", file=path, line=above + 1)
        if twice := [name for name in NEEDED if names.count(name) > 1]:
            raise BadInput(f"the table has two columns {twice[0]!r}", file=path, line=above + 1)
        places = {name: names.index(name) for name in NEEDED}
        line = above + table.line_num + 1
        for item, row in enumerate(table, 1):
            if any(row):
                yield _answer(row, places, line, item)
            line = above + table.line_num + 1
    except csv.Error as error:
        raise BadInput(f"not CSV: {error}", file=path, line=above + table.line_num) from None


def _answer(row: list[str], places: dict[str, int], line: int, item: int) -> IncomingAnswer:
    if len(row) <= max(places.values()):
        return IncomingAnswer(line, item, problem=f"the row has {len(row)} cells, too few for the columns")
    cell = {name: unquoted(row[place]) for name, place in places.items()}
    return IncomingAnswer(line, item, cell["id"], cell["prefix"], cell["reviewer"], cell["verdict"], cell["notes"])


FORMAT = ExchangeFormat(_write, _read, {})
