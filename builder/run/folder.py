"""A run's folder: made or opened by one process at a time, its protocol frozen, its input files kept with it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepdown.builder.cache.store import is_cache
from stepdown.builder.common.files import digest_of_folder
from stepdown.builder.common.locks import LockHeld, take_lock
from stepdown.builder.common.trees import copy_tree, digest_of_tree
from stepdown.builder.config.loading import Config
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.config.validation import changes, validated
from stepdown.builder.errors import BadInput
from stepdown.builder.run.ledger import Ledger, Origin, RunMeta
from stepdown.builder.run.ledger.database import FILE_NAME
from stepdown.builder.run.reading import is_run, open_begun_ledger

LOCK_NAME = "lock"
INPUTS = "inputs"
SHOWN_DIFFERENCES = 4


class RunFolder:
    """An open run: its folder, ledger and config. Made by `open_for_work`."""

    def __init__(self, path: Path, ledger: Ledger, config: Config) -> None:
        self.path, self.ledger, self.config = path, ledger, config

    @property
    def cache_folder(self) -> Path:
        return cache_of(self.path, self.ledger)

    @property
    def origin(self) -> Origin | None:
        """What it has from the run that it relabels; None where it was built by itself."""
        return self.ledger.meta.run.origin


def cache_of(path: Path, ledger: Ledger) -> Path:
    """The folder of a run's response cache: the config's, else that of the run it relabels, else its own."""
    run = ledger.meta.run
    named, origin = run.operation["cache"], run.origin
    if named is not None:
        return Path(named)
    if origin is None:
        return path / "cache"
    shared = Path(os.path.normpath(path.resolve() / origin.cache))
    if not is_cache(shared):
        raise BadInput(f"the response cache that this run goes on from is not at {shared}", file=path)
    return shared


@contextmanager
def open_for_reading(path: Path) -> Iterator[tuple[Ledger, ProtocolConfig]]:
    """A run's ledger and protocol, to read while others may work on it. Raises BadInput: no run, or never begun."""
    with open_begun_ledger(path) as ledger:
        protocol = validated(ProtocolConfig, ledger.meta.run.protocol, file=path / FILE_NAME)
        modules = ledger.meta.run.operation.get("modules")
        yield ledger, protocol.beside(_trusted(Path(modules) if modules else None, path))


@contextmanager
def open_for_work(path: Path, config: Config | None = None, origin: Origin | None = None) -> Iterator[RunFolder]:
    """Open a run's folder, for this process alone; make it where there is none and a config is given.

    `origin` makes a new run the relabelling of another one.

    Raises BadInput: not a run, not writable, on a file system without locks, in use by another process, or begun under
    another protocol, the difference shown.
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
            yield _begin_or_go_on(path, ledger, config, origin)
        finally:
            ledger.close()


def _lock(descriptor: int, path: Path) -> None:
    """Take the run for this process; the system gives it free when the process ends, however it ends."""
    try:
        take_lock(descriptor, path)
    except LockHeld:
        pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        raise BadInput(f"another process works on this run{f' (process {pid})' if pid else ''}", file=path) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)


def _begin_or_go_on(path: Path, ledger: Ledger, config: Config | None, origin: Origin | None) -> RunFolder:
    if not ledger.is_begun:
        if config is None:
            raise BadInput("the run was never begun: build it anew", file=path)
        _keep_inputs(path, config.protocol)
        operated_by = config.operation.model_dump(mode="json")
        ledger.meta.keep_run(RunMeta(uuid.uuid4().hex, protocol_record(config.protocol), operated_by, origin))
        return RunFolder(path, ledger, config)
    frozen = ledger.meta.run.protocol
    if config is not None:
        given = protocol_record(config.protocol)
        differences = changes(with_prices_unset(frozen, given), given)
        if differences:
            shown = "; ".join(differences[:SHOWN_DIFFERENCES])
            more = f"; and {len(differences) - SHOWN_DIFFERENCES} more" if len(differences) > SHOWN_DIFFERENCES else ""
            raise BadInput(f"the run was begun under another protocol ({shown}{more}): name another folder", file=path)
        ledger.meta.keep_operation(config.operation.model_dump(mode="json"))
    if origin is not None:
        _go_on_from(origin, path, ledger)
    where = path / FILE_NAME
    protocol = validated(ProtocolConfig, _name_kept_inputs(frozen, path), file=where)
    operation = validated(OperationConfig, ledger.meta.run.operation, file=where)
    protocol = protocol.beside(_trusted(operation.modules, path))
    return RunFolder(path, ledger, Config(protocol=protocol, operation=operation))


def _trusted(modules: Path | None, path: Path) -> Path | None:
    """The folder that a run remembers for workloads of one's own; none inside the run: no code comes with a run."""
    if modules is None or not modules.is_absolute() or modules.resolve().is_relative_to(path.resolve()):
        return None
    return modules


def with_prices_unset(frozen: Any, given: Any) -> Any:
    """The frozen record, where a price of the prompt cache that nobody set stands as 0, as one of today would have it.

    So the record of a run that was begun when such tokens were free equals that of its own config. Its prices stay.
    """
    if isinstance(frozen, list) and isinstance(given, list) and len(frozen) == len(given):
        return [with_prices_unset(old, new) for old, new in zip(frozen, given, strict=True)]
    if not (isinstance(frozen, Mapping) and isinstance(given, Mapping)):
        return frozen
    unset = {name for name in ("cache_read", "cache_write") if frozen.get(name) == 0 and given.get(name, 0) is None}
    return {
        name: None if name in unset else with_prices_unset(value, given.get(name)) for name, value in frozen.items()
    }


def _go_on_from(origin: Origin, path: Path, ledger: Ledger) -> None:
    """Relabel into a run that was begun: only where it was begun as the same new version."""
    begun = ledger.meta.run.origin
    if begun is None or (begun.run, begun.departed) != (origin.run, origin.departed):
        raise BadInput("the run was not begun as a new version of that one: name another folder", file=path)
    ledger.meta.keep_origin(origin)


def protocol_record(protocol: ProtocolConfig) -> dict[str, Any]:
    """The protocol as ledger and manifest hold it: files by name and digest, not by where they lay."""
    record = protocol.model_dump(mode="json")
    for part, _ in _parts_with_files(record):
        part["file"] = Path(part["file"]).name
    for source in _sources_with_assets(record):
        source["assets"] = Path(source["assets"]).name
    if _has_policy_folder(record):
        record["hints"]["policy"] = Path(record["hints"]["policy"]).name
    return record


def _sources_with_assets(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The sources that name a folder of assets, of which the run has a copy."""
    for workload in record["workloads"]:
        if isinstance(workload["source"].get("assets"), str) and "assets_sha256" in workload["source"]:
            yield workload["source"]


def _has_policy_folder(record: Mapping[str, Any]) -> bool:
    """Whether hints come from a policy's folder, of which the run has a copy."""
    return record["hints"].get("policy") is not None and record["hints"]["sha256"] is not None


def _parts_with_files(record: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The parts of a protocol's record that name a file in `file`, each with the file's digest."""
    for part in (record["hints"], *(workload["seeds"] for workload in record["workloads"])):
        if part["file"] is not None:
            yield part, part["sha256"]
    for workload in record["workloads"]:
        if workload["source_sha256"] is not None:
            yield workload["source"], workload["source_sha256"]


def _kept_input(path: Path, sha256: str) -> Path:
    return path / INPUTS / f"{sha256}.jsonl"


def _keep_inputs(path: Path, protocol: ProtocolConfig) -> None:
    for part, sha256 in _parts_with_files(protocol.model_dump(mode="json")):
        target = _kept_input(path, sha256)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(part["file"], target)
    for source in _sources_with_assets(protocol.model_dump(mode="json")):
        copy_tree(Path(source["assets"]), path / INPUTS / source["assets_sha256"])
    if _has_policy_folder(record := protocol.model_dump(mode="json")):
        kept = path / INPUTS / record["hints"]["sha256"]
        shutil.copytree(record["hints"]["policy"], kept, dirs_exist_ok=True)


def _name_kept_inputs(record: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The frozen protocol, naming the run's own copies of its files."""
    copy: dict[str, Any] = json.loads(json.dumps(record))
    for part, sha256 in _parts_with_files(copy):
        kept = _kept_input(path, sha256)
        try:
            found = hashlib.sha256(kept.read_bytes()).hexdigest()
        except OSError as error:
            raise BadInput(
                f"the run's own copy of {part['file']} can not be read: {error.strerror}", file=kept
            ) from None
        if found != sha256:
            raise BadInput(f"the run's own copy of {part['file']} has been changed", file=kept)
        part["file"] = str(kept)
    for source in _sources_with_assets(copy):
        kept = path / INPUTS / source["assets_sha256"]
        if not kept.is_dir() or digest_of_tree(kept) != source["assets_sha256"]:
            raise BadInput(f"the run's own copy of the folder {source['assets']} is gone or was changed", file=kept)
        source["assets"] = str(kept)
    if _has_policy_folder(copy):
        hints = copy["hints"]
        kept = path / INPUTS / hints["sha256"]
        if not kept.is_dir() or digest_of_folder(kept) != hints["sha256"]:
            raise BadInput(f"the run's own copy of the policy {hints['policy']} is gone or was changed", file=kept)
        hints["policy"] = str(kept)
    return copy
