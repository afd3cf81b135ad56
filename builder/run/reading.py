"""A run's ledger, opened to be read while others may work on it. Loads nothing that only a run at work needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stepdown.builder.errors import BadInput
from stepdown.builder.run.ledger import Ledger
from stepdown.builder.run.ledger.database import FILE_NAME


@contextmanager
def open_ledger(path: Path) -> Iterator[Ledger]:
    """The ledger of a run that may not have been begun yet, to read. Raises BadInput where no run is there."""
    if not is_run(path):
        raise BadInput("no run is here", file=path)
    ledger = Ledger(path, read_only=True)
    try:
        yield ledger
    finally:
        ledger.close()


@contextmanager
def open_begun_ledger(path: Path) -> Iterator[Ledger]:
    """The ledger of a run, to read. Raises BadInput: no run, or never begun."""
    with open_ledger(path) as ledger:
        if not ledger.is_begun:
            raise BadInput("the run was never begun", file=path)
        yield ledger


def is_run(path: Path) -> bool:
    """Whether a run's ledger is there. Raises BadInput where that cannot be said."""
    try:
        return (path / FILE_NAME).exists()
    except (OSError, ValueError) as error:
        raise BadInput(getattr(error, "strerror", None) or str(error), file=repr(str(path))[1:100]) from None
