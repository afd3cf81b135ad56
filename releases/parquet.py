"""The Parquet shards: written as rows come, read back a portion at a time. `messages` and `tools` are JSON text.

What Hugging Face reads of a release is these files alone: nested JSON of changing shape is guessed at there, text is
not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from stepdown.builder.artifacts.rows import Row
from stepdown.builder.common.extras import require
from stepdown.builder.common.reading import parse_json
from stepdown.builder.errors import BadInput
from stepdown.builder.records import exact_json
from stepdown.releases.layout import DATA

SHARD_BYTES = 256 << 20
"""Of JSON text in a shard, about; zstd makes a fraction of it."""
PORTION_BYTES = 8 << 20
"""Of JSON text in a row group: what a reader has in memory at once."""
PORTION_ROWS = 2000
LARGEST_PORTION = 512 << 20
"""Bytes, uncompressed, of a row group that is read from somebody else's file: one row may be as long as a line."""
COLUMNS = (
    ("id", "string"),
    ("benchmark", "string"),
    ("instance_id", "string"),
    ("step_index", "int32"),
    ("total_steps", "int32"),
    ("messages", "string"),
    ("tools", "string"),
    ("target_tier", "string"),
    ("target_tier_id", "int32"),
    ("group", "string"),
    ("split", "string"),
)
SHARD_NAME = re.compile(r"data/(train|test)-(\d{5})-of-(\d{5})\.parquet")


def _pyarrow() -> Any:
    require("release", "pyarrow")
    import pyarrow
    import pyarrow.parquet

    return pyarrow


def record_of(row: Row) -> dict[str, Any]:
    """A row as Parquet holds it."""
    return {
        "id": row.id,
        "benchmark": row.benchmark,
        "instance_id": row.instance_id,
        "step_index": row.step_index,
        "total_steps": row.total_steps,
        "messages": exact_json(row.messages),
        "tools": exact_json(row.tools) if row.tools is not None else None,
        "target_tier": row.target_tier,
        "target_tier_id": row.target_tier_id,
        "group": row.group,
        "split": row.split,
    }


class Shards:
    """The shards of one split, in a release's draft. They get their names at the end: each says how many there are."""

    def __init__(self, release: Path, split: str, shard_bytes: int = SHARD_BYTES) -> None:
        self._arrow = _pyarrow()
        self._schema = self._arrow.schema([(name, getattr(self._arrow, kind)()) for name, kind in COLUMNS])
        self._folder, self._split, self._shard_bytes = release / DATA, split, shard_bytes
        self._portion_bytes = min(PORTION_BYTES, shard_bytes)
        self._writer: Any = None
        self._file: Any = None
        self._waiting: list[dict[str, Any]] = []
        self._bytes = self._waiting_bytes = 0
        self._rows: list[int] = []

    def add(self, row: Row) -> None:
        """The next row."""
        record = record_of(row)
        size = len(record["messages"]) + len(record["tools"] or "")
        self._waiting.append(record)
        self._waiting_bytes += size
        if self._waiting_bytes >= self._portion_bytes or len(self._waiting) >= PORTION_ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            self._folder.mkdir(exist_ok=True)
            path = self._folder / self._draft_name(len(self._rows))
            self._file = path.open("wb")  # opened here: Arrow takes a path for an address, and wants it in UTF-8
            self._writer = self._arrow.parquet.ParquetWriter(self._file, self._schema, compression="zstd")
            self._rows.append(0)
        self._writer.write_table(self._arrow.Table.from_pylist(self._waiting, schema=self._schema))
        self._rows[-1] += len(self._waiting)
        self._bytes += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0
        if self._bytes >= self._shard_bytes:
            self._end_shard()

    def _end_shard(self) -> None:
        if self._writer is not None:
            try:
                self._writer.close()
            finally:
                self._file.close()
            self._writer, self._bytes = None, 0

    def _draft_name(self, number: int) -> str:
        return f"{self._split}-{number:05}.part"

    def finish(self) -> dict[str, int]:
        """The shards' names in the release, each with the rows it holds. None are written where there are no rows."""
        self._flush()
        self._end_shard()
        named = {}
        for number, rows in enumerate(self._rows):
            name = f"{DATA}/{self._split}-{number:05}-of-{len(self._rows):05}.parquet"
            (self._folder / self._draft_name(number)).replace(self._folder.parent / name)
            named[name] = rows
        return named

    def __enter__(self) -> Shards:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end_shard()


def read_records(release: Path, name: str) -> Iterator[dict[str, Any]]:
    """The records of a shard, a portion in memory at a time. Raises BadInput where it is no shard of a release."""
    arrow = _pyarrow()
    path = release / name
    try:
        # What a file stores once and names in many rows stays stored once: a few kilobytes could else become gigabytes.
        texts = [name for name, kind in COLUMNS if kind == "string"]
        with path.open("rb") as opened, arrow.parquet.ParquetFile(opened, read_dictionary=texts) as file:
            found = [(field.name, str(_stored(field.type))) for field in file.schema_arrow]
            if found != list(COLUMNS):
                raise BadInput("the columns are not those of a release", file=path)
            if file.schema_arrow.metadata or any(key not in _ARROWS_OWN for key in file.metadata.metadata or ()):
                raise BadInput("holds more than rows: notes of its own, which loaders act on", file=path)
            for group in range(file.num_row_groups):
                size = file.metadata.row_group(group).total_byte_size
                if not 0 <= size <= LARGEST_PORTION:
                    raise BadInput(f"row group {group} is larger than {LARGEST_PORTION} bytes", file=path)
            for batch in file.iter_batches(batch_size=256):
                columns = [list(_values(batch.column(name))) for name, _ in COLUMNS]
                for values in zip(*columns, strict=True):
                    yield {name: value for (name, _), value in zip(COLUMNS, values, strict=True)}
    except BadInput:
        raise
    except KeyError:  # of a column that shall be read
        raise BadInput("the columns are not those of a release", file=path) from None
    except (arrow.ArrowException, OSError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise BadInput(f"not a Parquet file that can be read: {error}", file=path) from None


def _values(column: Any) -> Iterator[Any]:
    """The values of a column; what the file stores once is one object, however many rows have it."""
    if not hasattr(column, "dictionary"):
        yield from column.to_pylist()
        return
    stored = column.dictionary
    met: dict[int | None, Any] = {None: None}
    for place in column.indices.to_pylist():
        if place not in met:
            met[place] = stored[place].as_py()
        yield met[place]


_ARROWS_OWN = frozenset({b"ARROW:schema"})
"""Notes on a Parquet file that pyarrow itself leaves there, and takes into account."""


def _stored(kind: Any) -> Any:
    """The type of a column's values, stored once each or not."""
    return getattr(kind, "value_type", kind)


def difference(row: Row, record: dict[str, Any]) -> tuple[str, str] | None:
    """The first field in which a Parquet record is not its row, and how; None where they are equal."""
    for name, kind in COLUMNS:
        value, found = getattr(row, name), record.get(name)
        if name in ("messages", "tools"):
            if not _same_json(value, found):
                return name, "not that of the row in question_bank.jsonl"
        elif found != value or (found is None) != (value is None):
            return name, f"{str(found)[:80]!r} is not the {kind} of the row in question_bank.jsonl"
    return None


_LONGEST_SPELLING = 8
"""How much longer the same JSON may be when written otherwise: an escaped letter takes six, and spaces some."""


def _same_json(value: Any, text: str | None) -> bool:
    if value is None or text is None:
        return value is None and text is None
    exact = exact_json(value)
    if exact == text:
        return True
    if len(text) > _LONGEST_SPELLING * len(exact):
        return False
    try:
        return exact_json(parse_json(text.encode(), Path())) == exact
    except (BadInput, ValueError, RecursionError):
        return False
