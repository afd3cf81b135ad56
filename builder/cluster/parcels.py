"""The files that a config names, on nodes that do not have them: packed at the head, unpacked once on each node.

Everything goes by its digest: what a node finds at the same path with the same digest (a shared folder) is used there.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from stepdown.builder.common.files import digest_of, digest_of_folder
from stepdown.builder.common.trees import digest_of_tree
from stepdown.builder.config.loading import Config
from stepdown.builder.config.protocol import WorkloadConfig
from stepdown.builder.errors import BadInput
from stepdown.builder.run.ledger.database import FILE_NAME as LEDGER
from stepdown.harnesses.own_code import find_own

Fetch = Callable[[str], bytes]
"""Gives what was packed under a digest."""

_CONTENT = "content"
_LARGEST = 1 << 20
"""Bytes. Code of one's own may read small files beside it; what is larger does not go along."""
_MOST = 64 << 20
"""Bytes of one folder of code."""


class Parcel(NamedTuple):
    """A file or a folder that nodes need."""

    path: Path
    digest: str
    files: tuple[str, ...] | None = None
    """Of a folder of code, those that go along; None: all there is."""


def parcels_of(config: Config) -> Iterator[Parcel]:
    """What nodes need of the files that a config names. Raises BadInput where a folder of code is too large."""
    protocol, modules = config.protocol, config.operation.modules
    if protocol.hints.file is not None and protocol.hints.sha256 is not None:
        yield Parcel(protocol.hints.file, protocol.hints.sha256)
    if protocol.hints.policy is not None and protocol.hints.sha256 is not None:
        yield Parcel(Path(protocol.hints.policy), protocol.hints.sha256)
    for workload in protocol.workloads:
        if workload.seeds.file is not None and workload.seeds.sha256 is not None:
            yield Parcel(workload.seeds.file, workload.seeds.sha256)
        if workload.tasks is not None and workload.source_sha256 is not None:
            yield Parcel(workload.tasks, workload.source_sha256)
        if workload.assets is not None and (sha256 := workload.source.get("assets_sha256")):
            yield Parcel(workload.assets, str(sha256))
    named = [workload.harness for workload in protocol.workloads if workload.is_own_code]
    named += [str(protocol.hints.policy)] if protocol.hints.may_be_own_code else []
    tops: dict[Path, set[str]] = {}
    for name in named:
        if (own := find_own(name.partition(":")[0], modules)) is not None:
            tops.setdefault(own.folder.resolve(), set()).add(own.top)
    for folder, names in tops.items():
        yield code_parcel(folder, names)


def code_parcel(folder: Path, tops: Collection[str] = ()) -> Parcel:
    """The code in a folder of one's own: its modules and packages, with those named `tops`, and the small files beside
    them. No runs, no caches, nothing hidden, no links. Raises BadInput where that is far too much.
    """
    files, size = [], 0
    for place, folders, names in os.walk(folder):
        is_top = Path(place) == folder
        folders[:] = sorted(
            name
            for name in folders
            if _may_hold_code(Path(place, name))
            and (not is_top or name in tops or Path(place, name, "__init__.py").is_file())
        )
        for name in sorted(names):
            file = Path(place, name)
            if name.startswith(".") or file.is_symlink() or not file.is_file():
                continue
            length = file.stat().st_size
            if length <= _LARGEST:
                size += length
                files.append(str(file.relative_to(folder)))
    if size > _MOST:
        problem = f"more than {_MOST >> 20} MiB of files lie there: keep the code in a folder of its own"
        raise BadInput(problem, file=folder, field="operation.modules")
    return Parcel(folder, _digest_of_files(folder, files), tuple(files))


def _may_hold_code(folder: Path) -> bool:
    is_made = folder.name.startswith((".", "__pycache__")) or folder.is_symlink()
    return not is_made and not any((folder / mark).exists() for mark in (LEDGER, "responses.sqlite", "pyvenv.cfg"))


def _digest_of_files(folder: Path, files: Iterable[str]) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(f"{file}\0{digest_of(folder / file)}\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def packed(parcel: Parcel) -> bytes:
    """The bytes that travel. Raises OSError."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        if parcel.path.is_file():
            tar.add(parcel.path, arcname=_CONTENT)
        elif parcel.files is None:
            tar.add(parcel.path, arcname=_CONTENT, filter=_without_made)
        else:
            for file in parcel.files:
                tar.add(parcel.path / file, arcname=f"{_CONTENT}/{file}")
    return out.getvalue()


def _without_made(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in Path(member.name).parts else member


def placed(parcel: Parcel, into: Path, fetch: Fetch) -> Path:
    """Where a parcel's file or folder lies on this node: where it lay at the head, else unpacked in a folder of the
    node's own, once for all processes. Raises OSError.
    """
    if _is_in_place(parcel):
        return parcel.path
    # Under its own name: a workload may go by the names of its files.
    home = into / parcel.digest
    place = home / parcel.path.name
    if not place.exists():
        into.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=into))
        with tarfile.open(fileobj=io.BytesIO(fetch(parcel.digest))) as tar:
            tar.extractall(fresh)  # noqa: S202 - packed by the head, which this process works for
        (fresh / _CONTENT).rename(fresh / parcel.path.name)
        try:
            fresh.rename(home)
        except OSError:  # another process was faster
            shutil.rmtree(fresh)
    return place


def is_there(parcel: Parcel, into: Path) -> bool:
    """Whether this node has a parcel's file or folder, where it lay at the head or unpacked."""
    return _is_in_place(parcel) or (into / parcel.digest).exists()


def _is_in_place(parcel: Parcel) -> bool:
    path = parcel.path
    try:
        if path.is_file():
            return digest_of(path) == parcel.digest
        if not path.is_dir():
            return False
        if parcel.files is not None:
            return _digest_of_files(path, parcel.files) == parcel.digest
        return parcel.digest in (digest_of_tree(path), digest_of_folder(path))
    except OSError:
        return False


def localized(config: Config, places: Mapping[Path, Path]) -> Config:
    """The config as a node reads it: its files at the places that they have there."""

    def local(path: Path | None) -> Path | None:
        return None if path is None else places.get(path, path)

    protocol, modules = config.protocol, local(config.operation.modules)
    hints, policy = protocol.hints, protocol.hints.policy
    hints = hints.model_copy(
        update={"file": local(hints.file), "policy": None if policy is None else str(local(Path(policy)))}
    )
    workloads = tuple(_local_workload(workload, local) for workload in protocol.workloads)
    return config.model_copy(
        update={
            "protocol": protocol.model_copy(update={"hints": hints, "workloads": workloads}).beside(modules),
            "operation": config.operation.model_copy(update={"modules": modules}),
        }
    )


def _local_workload(workload: WorkloadConfig, local: Callable[[Path | None], Path | None]) -> WorkloadConfig:
    source = dict(workload.source)
    if workload.tasks is not None and workload.source_sha256 is not None:
        source["file"] = str(local(workload.tasks))
    if workload.assets is not None and "assets_sha256" in source:
        source["assets"] = str(local(workload.assets))
    seeds = workload.seeds.model_copy(update={"file": local(workload.seeds.file)})
    return workload.model_copy(update={"source": source, "seeds": seeds})
