"""Tables of separated values as spreadsheets save them: by commas, semicolons or tabs."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput

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


def read_separated(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table by the names of its header, each with the line where it ends: by tabs in a `.tsv`, by commas
    in any other file. Raises BadInput where it can not be read, or two columns have one name.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            names = [name for name in reader.fieldnames or () if name]
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise BadInput(f"two columns are named {printable(twice, 60)!r}", file=path, line=1)
            for row in reader:
                yield reader.line_num, row
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=path) from None
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8: {error.reason} at byte {error.start}", file=path) from None
    except csv.Error as error:
        raise BadInput(f"not CSV: {error}", file=path) from None
