"""Tables of separated values as spreadsheets save them: by commas, semicolons or tabs."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection

_DELIMITERS = ",;\t|"
_DECLARATION = re.compile(r'"?sep=.?"?[\r\n]*', re.IGNORECASE)


def declares_delimiter(line: str) -> bool:
    """Whether a table's first line only says how its cells are separated, as some spreadsheets want it.

    >>> declares_delimiter("sep=;"), declares_delimiter("id;tier")
    (True, False)
    """
    return _DECLARATION.fullmatch(line) is not None


def delimiter_of(header: str, names: Collection[str]) -> str:
    """What separates the cells of a table: that by which its header has the most of these names; a comma in doubt.

    >>> delimiter_of('id;"tier"', ["id", "tier"]), delimiter_of("id,tier", ["id", "tier"])
    (';', ',')
    """

    def found(delimiter: str) -> int:
        cells = next(csv.reader([header], delimiter=delimiter), [])
        return len(set(names) & {cell.strip() for cell in cells})

    return max(_DELIMITERS, key=found)
