"""A small SQLite file in a folder of its own kind, which is no run: a live run's, that of continuations.

One process at a time works on such a folder, and what its work depends on can not change on the way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from stepdown.builder.common.locks import LockHeld, take_lock
from stepdown.builder.common.sqlite import SQLiteFile, make_tables, open_prepared
from stepdown.builder.config.validation import changes
from stepdown.builder.errors import BadInput

_LOCK = "lock"


class OwnStore:
    """The file of a folder. Threads share one. Subclasses say what it is and holds."""

    file_name: ClassVar[str]
    called: ClassVar[str]
    """What messages call the file."""
    nothing: ClassVar[str]
    """What a folder without it has, in a message."""
    version: ClassVar[int]
    tables: ClassVar[str]

    def __init__(self, folder: Path, mode: Literal["ro", "rwc"] = "rwc") -> None:
        """Raises BadInput where the file can not be used, or is of another version of stepdown."""
        path = folder / self.file_name
        if mode == "ro" and not path.is_file():
            raise BadInput(self.nothing, file=folder)
        pragmas = ("journal_mode=WAL", "synchronous=NORMAL") if mode != "ro" else ()
        self._file = open_prepared(path, self.called, mode, pragmas, self._prepare)

    def _prepare(self, file: SQLiteFile) -> None:
        [(version,)] = file.read("PRAGMA user_version")
        if version == 0:
            with file.transaction() as db:
                make_tables(db, self.tables, self.version)
        elif version != self.version:
            raise BadInput(f"of another version of stepdown ({version})", file=file.path)

    def close(self) -> None:
        self._file.close()

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the work was begun with."""
        found: Mapping[str, Any] = self._file.meta("settings") or {}
        return found

    def keep_settings(self, settings: Mapping[str, Any]) -> None:
        """Keep what the work depends on. Raises BadInput, with the difference, where it was begun otherwise."""
        begun = self._file.meta("settings")
        if begun is None:
            self._file.set_meta("settings", dict(settings))
        elif begun != settings:
            difference = "; ".join(changes(begun, dict(settings))[:4])
            raise BadInput(f"this was begun otherwise ({difference}): name another folder", file=self._file.path)

    @classmethod
    @contextmanager
    def open_for_work(cls, folder: Path) -> Iterator[Self]:
        """The store of a folder, for this process alone; both are made where there are none. Raises BadInput."""
        path = folder / _LOCK
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise BadInput(f"the folder can not be used: {error.strerror}", file=folder) from None
        try:
            take_lock(descriptor, path)
            store = cls(folder)
            try:
                yield store
            finally:
                store.close()
        except LockHeld:
            raise BadInput("another process works here", file=folder) from None
        finally:
            os.close(descriptor)
