"""A router's predictions: a tier for every row id, read once, kept in a few bytes each."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepdown.builder.common.reading import read_lines
from stepdown.builder.common.separated import declares_delimiter, delimiter_of
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput
from stepdown.releases.layout import TierName

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

MISSING, BROKEN = -1, -2
"""What stands in a tier's place where there is no prediction, or one that names no tier."""
LONGEST_LINE = 1 << 20
"""Bytes of a prediction, at most."""
_DIGEST_BYTES = 16
_WHOLE_NUMBER = re.compile(r"([0-9]{1,9})(?:[.,]0*)?")
"""A tier's id as text; a spreadsheet that took the column for measurements has written 0 as 0.0, or as 0,0."""
_COLUMNS = ("id", "tier")


class Predictions:
    """Predicted tiers (indexes) by row id.

    Ids are kept as digests, so that a million of them take 25 MB.
    """

    def __init__(self, path: Path, tiers: Sequence[TierName], foreign: bool = True) -> None:
        """Read a table (`.csv`, `.tsv`: a header with `id` and `tier`) or a JSONL file; `tier` is a tier's name or id.

        A `tier` that names none is a broken prediction, and counts as one. Raises BadInput(file, line, field): a line
        that is no prediction of any row, the second one for a row, or a `foreign` file in which no `tier` names a tier;
        one that was written here may be of a policy that had no answer at all.
        """
        import numpy as np

        self._path, self._tier_names = path, tiers
        by_name = _by_name(tiers)
        keys, tiers_found, lines = bytearray(), array("b"), array("q")
        for number, row_id, tier in _read(path):
            keys += _digest(row_id)
            tiers_found.append(_tier(tier, by_name))
            lines.append(number)
        unsorted = np.frombuffer(bytes(keys), dtype=f"S{_DIGEST_BYTES}")
        order = np.argsort(unsorted, kind="stable")
        self._keys = unsorted[order]
        self._tiers = np.frombuffer(tiers_found, dtype=np.int8)[order].astype(np.int64)
        self._lines = np.frombuffer(lines, dtype=np.int64)[order]
        self._used = np.zeros(len(order), dtype=bool)
        self._refuse_duplicates()
        if foreign and len(order) and (self._tiers == BROKEN).all():
            self._refuse_another_column()

    def __len__(self) -> int:
        return len(self._keys)

    def of(self, row_ids: Sequence[str]) -> NDArray[int64]:
        """The predicted tiers of some rows: indexes, MISSING or BROKEN."""
        import numpy as np

        wanted = np.frombuffer(b"".join(map(_digest, row_ids)), dtype=f"S{_DIGEST_BYTES}")
        if not len(self._keys):
            return np.full(len(wanted), MISSING, dtype=np.int64)
        places = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        found = self._keys[places] == wanted
        self._used[places[found]] = True
        return np.where(found, self._tiers[places], MISSING)

    def refuse_unknown(self) -> None:
        """Raises BadInput for the first prediction whose row was never asked for."""
        unused = self._lines[~self._used]
        if len(unused):
            more = f" (and {len(unused) - 1} more such lines)" if len(unused) > 1 else ""
            line = int(unused.min())
            raise BadInput(
                f"no row has the id {self._read_id_at(line)!r}{more}", file=self._path, line=line, field="id"
            )

    def _refuse_duplicates(self) -> None:
        again = self._keys[1:] == self._keys[:-1]
        if again.any():
            second = int(self._lines[1:][again].min())
            first = int(self._lines[:-1][again][self._lines[1:][again].argmin()])
            problem = f"{self._read_id_at(second)!r} is predicted twice, first at line {first}"
            raise BadInput(problem, file=self._path, line=second, field="id")

    def _read_id_at(self, line: int) -> str:
        found = (row_id for number, row_id, _ in _read(self._path) if number == line)
        return printable(next(found, "?"), longest=200)

    def _refuse_another_column(self) -> None:
        """Not predictions that are all broken, but other names than this bank's tiers have, or another column."""
        line, _, value = next(iter(_read(self._path)))
        known = ", ".join(f"{tier.name} ({tier.id})" for tier in self._tier_names)
        shown = printable(json.dumps(value, ensure_ascii=False), longest=80)
        problem = f"{shown} names no tier, and no other line does; the tiers are {known}"
        raise BadInput(problem, file=self._path, line=line, field="tier")


def _digest(row_id: str) -> bytes:
    return hashlib.blake2b(row_id.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def _by_name(tiers: Sequence[TierName]) -> dict[str | int, int]:
    """Indexes by name and by id. A name that reads like another tier's id is the name."""
    return {key: index for index, tier in enumerate(tiers) for key in (tier.name, tier.id)}


def _tier(value: Any, by_name: Mapping[str | int, int]) -> int:
    """The index of a tier by its name or id; an id may be text, as it is in any CSV and in much that models write, or a
    number with a fraction of nothing, as a spreadsheet or a table with gaps has it.
    """
    if type(value) is str:
        value = value.strip()
        if value not in by_name and (number := _WHOLE_NUMBER.fullmatch(value)):
            value = int(number[1])
    elif type(value) is float and value.is_integer():
        value = int(value)
    return by_name.get(value, BROKEN) if type(value) in (str, int) else BROKEN


def _read(path: Path) -> Iterator[tuple[int, str, Any]]:
    """The line number, id and tier of each prediction. Raises BadInput."""
    return _read_table(path) if path.suffix.lower() in (".csv", ".tsv") else _read_jsonl(path)


def _read_jsonl(path: Path) -> Iterator[tuple[int, str, Any]]:
    for number, line in read_lines(path, LONGEST_LINE):
        if not line.strip():
            continue
        try:
            data = json.loads(line)  # not as strict as for rows: what else a router writes beside its tier is its own
        except (ValueError, RecursionError) as error:
            problem = f"not JSON: {getattr(error, 'msg', error)}"
            raise BadInput(problem, file=path, line=number) from None
        if type(data) is not dict:
            raise BadInput("must be an object with `id` and `tier`", file=path, line=number)
        if type(data.get("id")) is not str:
            raise BadInput("must be the text of a row's id", file=path, line=number, field="id")
        if "tier" not in data:
            # Not a prediction that names no tier, but another file, or another name for the field.
            raise BadInput("is missing: a tier's name or id, or null", file=path, line=number, field="tier")
        yield number, data["id"], data["tier"]


def _read_table(path: Path) -> Iterator[tuple[int, str, Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, above = file.readline(), 0
            if declares_delimiter(header):
                header, above = file.readline(), 1
            file.seek(0)
            for _ in range(above):
                file.readline()
            reader = csv.DictReader(file, delimiter=delimiter_of(header, _COLUMNS))
            reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
            for needed in _COLUMNS:
                if needed not in reader.fieldnames:
                    raise BadInput("the header must name this column", file=path, line=above + 1, field=needed)
            for row in reader:
                if not row["id"]:
                    raise BadInput("is empty", file=path, line=above + reader.line_num, field="id")
                yield above + reader.line_num, row["id"], row["tier"]
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=path) from None
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8: {error.reason} at byte {error.start}", file=path) from None
    except csv.Error as error:
        raise BadInput(f"not CSV: {error}", file=path) from None
