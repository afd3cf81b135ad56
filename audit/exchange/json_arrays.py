"""Files that are one JSON array: the form of Label Studio and of Argilla."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from stepdown.audit.exchange.records import parsed_json
from stepdown.builder.config.validation import read_text
from stepdown.builder.errors import BadInput


def write_json_array(items: Iterable[Mapping[str, Any]], out: TextIO) -> int:
    """Write a JSON array, one item a line and one in memory at a time; return how many."""
    count = 0
    for item in items:
        out.write(("[\n" if not count else ",\n") + json.dumps(item))
        count += 1
    out.write("\n]\n" if count else "[]\n")
    return count


def read_json_array(path: Path) -> list[Any]:
    """Read the items of a file that is one JSON array. Raises BadInput."""
    try:
        items = parsed_json(read_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {getattr(error, 'msg', error)}", file=path) from None
    if not isinstance(items, list):
        raise BadInput("not a JSON array", file=path)
    return items
