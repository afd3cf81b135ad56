"""A run's folder: made or opened by one process at a time, its protocol frozen, its input files kept with it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from builder.config import Config, Hints, Operation, Protocol, Seeds
from builder.errors import BadInput
from builder.ledger import Ledger
from builder.ledger.file import FILE_NAME
from builder.validation import changes, validated

LOCK_NAME = "lock"
INPUTS = "inputs"
SHOWN_DIFFERENCES = 4


class RunFolder:
    """An open run: its folder, ledger and config. Made by `opened`."""

    def __init__(self, path: Path, ledger: Ledger, config: Config) -> None:
        self.path, self.ledger, self.config = path, ledger, config

    @property
    def cache_folder(self) -> Path:
        return self.config.operation.cache or self.path / "cache"


def is_run(path: Path) -> bool:
    """Whether a run's ledger is there. Raises BadInput where that cannot be said."""
    try:
        return (path / FILE_NAME).exists()
    except (OSError, ValueError) as error:
        raise BadInput(getattr(error, "strerror", None) or str(error), file=repr(str(path))[1:100]) from None


@contextmanager
def opened(path: Path, config: Config | None = None) -> Iterator[RunFolder]:
    """Open a run's folder, for this process alone; make it where there is none and a config is given.

    Raises BadInput: not a run, not writable, in use by another process, or begun under another protocol, the
    difference shown.
    """
    if config is None and not is_run(path):
        raise BadInput("no run is here", file=path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        strangers = [] if is_run(path) else sorted(p.name for p in path.iterdir() if p.name != LOCK_NAME)
        if strangers:
            raise BadInput(f"the folder is not empty and not a run (it holds {strangers[0]!r})", file=path)
        handle = (path / LOCK_NAME).open("a+")
    except OSError as error:
        raise BadInput(f"the run's folder can not be used: {error.strerror}", file=path) from None
    with handle:
        _lock(handle.fileno(), path)
        ledger = Ledger(path)
        try:
            yield _begun(path, ledger, config)
        finally:
            ledger.close()


def _lock(descriptor: int, path: Path) -> None:
    """Take the run for this process; the system gives it free when the process ends, however it ends."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        raise BadInput(f"another process works on this run{f' (process {pid})' if pid else ''}", file=path) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)


def _begun(path: Path, ledger: Ledger, config: Config | None) -> RunFolder:
    if not ledger.is_begun:
        if config is None:
            raise BadInput("the run was never begun: build it anew", file=path)
        _keep_inputs(path, config.protocol)
        ledger.set_meta("id", uuid.uuid4().hex)
        ledger.set_meta("operation", config.operation.model_dump(mode="json"))
        ledger.set_meta("protocol", protocol_record(config.protocol))
        return RunFolder(path, ledger, config)
    frozen = ledger.meta("protocol")
    if config is not None:
        differences = changes(frozen, protocol_record(config.protocol))
        if differences:
            shown = "; ".join(differences[:SHOWN_DIFFERENCES])
            more = f"; and {len(differences) - SHOWN_DIFFERENCES} more" if len(differences) > SHOWN_DIFFERENCES else ""
            raise BadInput(f"the run was begun under another protocol ({shown}{more}): name another folder", file=path)
        ledger.set_meta("operation", config.operation.model_dump(mode="json"))
    where = path / FILE_NAME
    protocol = validated(Protocol, _with_inputs(frozen, path), file=where)
    operation = validated(Operation, ledger.meta("operation"), file=where)
    return RunFolder(path, ledger, Config(protocol=protocol, operation=operation))


def protocol_record(protocol: Protocol) -> dict[str, Any]:
    """The protocol as ledger and manifest hold it: files by name and digest, not by where they lay."""
    record = protocol.model_dump(mode="json")
    for part in _parts_with_files(record):
        part["file"] = Path(part["file"]).name
    return record


def _parts_with_files(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for part in (record["hints"], *(workload["seeds"] for workload in record["workloads"])):
        if part["file"] is not None:
            yield part


def _kept_input(path: Path, sha256: str) -> Path:
    return path / INPUTS / f"{sha256}.jsonl"


def _keep_inputs(path: Path, protocol: Protocol) -> None:
    parts: list[Hints | Seeds] = [protocol.hints, *(workload.seeds for workload in protocol.workloads)]
    for part in parts:
        if part.file is not None and part.sha256 is not None:
            target = _kept_input(path, part.sha256)
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(part.file, target)


def _with_inputs(record: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The frozen protocol, naming the run's own copies of its files."""
    copy: dict[str, Any] = json.loads(json.dumps(record))
    for part in _parts_with_files(copy):
        kept = _kept_input(path, part["sha256"])
        try:
            found = hashlib.sha256(kept.read_bytes()).hexdigest()
        except OSError as error:
            raise BadInput(
                f"the run's own copy of {part['file']} can not be read: {error.strerror}", file=kept
            ) from None
        if found != part["sha256"]:
            raise BadInput(f"the run's own copy of {part['file']} has been changed", file=kept)
        part["file"] = str(kept)
    return copy
