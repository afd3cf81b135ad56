"""Makes caches as an earlier stepdown had them: by diskcache, without the table of today."""

from __future__ import annotations

from pathlib import Path

from stepdown.builder.cache.earlier import EarlierStore
from stepdown.builder.cache.table import FILE_NAME, TableValues


def made_earlier(folder: Path) -> None:
    """Have a folder hold its entries as an earlier stepdown kept them."""
    values, earlier = TableValues(folder), EarlierStore(folder)
    for found in values.read():
        assert not found.problem
        earlier.put(found.key, found.value)
    values.close()
    earlier.close()
    (folder / FILE_NAME).unlink()
