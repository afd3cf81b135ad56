"""A policy's folder: `policy.json`, which says what it is and what it was made from, and its arrays. Never a pickle."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zipfile import ZIP_STORED, BadZipFile, ZipFile

from pydantic import Field

from stepdown.builder.common.extras import require
from stepdown.builder.common.faults import said
from stepdown.builder.common.files import sync_folder, whole_file, write_text
from stepdown.builder.config.validation import JsonObject, Strict, validated
from stepdown.builder.digests import digest
from stepdown.builder.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

POLICY, ARRAYS = "policy.json", "arrays.npz"
_LARGEST = 1 << 30
"""Bytes of a policy's arrays, at most."""
Kind = Literal["logistic", "nearest"]


class Inputs(Strict):
    """What the policy sees of a call."""

    embedding: str
    """Name of the embedding of the latest user or tool text."""
    figures: tuple[str, ...]
    """Names of figures of the prefix, in the order of the arrays' columns, after those of the embedding."""


class PolicyOrigin(Strict):
    """What the policy was made from. No row outside `train` groups was looked at."""

    source: str
    """Name and version of the release, or the run's benchmark names."""
    rows_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Digest of the file of rows."""
    rows: int = Field(ge=1)
    """Rows it was fitted on."""
    groups: int = Field(ge=1)
    calibration_rows: int = Field(0, ge=0)
    """Rows of other groups, on which its probabilities were calibrated."""
    calibration_groups: int = Field(0, ge=0)
    held_out: Literal["test", "hashed"] = "test"
    """Which groups were left for scoring: the release's own `test` split, or a share of groups by their hash."""


class PolicyFile(Strict):
    """`policy.json`."""

    format: int = Field(1, ge=1, le=1)
    kind: Kind
    name: str = Field(min_length=1)
    tiers: tuple[str, ...] = Field(min_length=2)
    """Names, the cheapest first."""
    inputs: Inputs
    settings: JsonObject = Field(default_factory=dict)
    """What its kind was fitted with."""
    trained_on: PolicyOrigin
    arrays_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    report: JsonObject = Field(default_factory=dict)
    """What cross-validation and calibration came to."""

    @property
    def version(self) -> str:
        """Another choice of anything that its answers depend on is another version."""
        parts = [self.kind, list(self.tiers), self.inputs.model_dump(mode="json"), self.settings, self.arrays_sha256]
        return digest(parts)[:16]


def write_policy(folder: Path, made: PolicyFile, arrays: Mapping[str, NDArray[Any]]) -> PolicyFile:
    """Write a policy into an empty or new folder; `policy.json`, which makes it one, comes last.

    Raises BadInput where something else lies there.
    """
    import numpy as np

    refuse_taken(folder)
    folder.mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **dict(arrays))
    with whole_file(folder / ARRAYS, durable=True) as file:
        file.write(packed.getvalue())
    made = made.model_copy(update={"arrays_sha256": hashlib.sha256(packed.getvalue()).hexdigest()})
    write_text(folder / POLICY, made.model_dump_json(indent=1) + "\n", durable=True)
    sync_folder(folder)
    return made


def refuse_taken(folder: Path) -> None:
    """Raises BadInput where something lies in the folder that a policy is to be written into."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    problem = "is there already, and not empty"
    if (folder / ARRAYS).is_file() and not (folder / POLICY).is_file():
        problem = "holds a policy whose training was cut off: remove it, or name another folder"
    raise BadInput(problem, file=folder, field="--out")


def read_policy(folder: Path) -> tuple[PolicyFile, dict[str, NDArray[Any]]]:
    """What a policy's folder holds. Raises BadInput(file, field) for anything that is no policy, or not whole."""
    from stepdown.builder.common.reading import read_document

    require("route", "numpy")
    import numpy as np

    path, packed = folder / POLICY, folder / ARRAYS
    made = validated(PolicyFile, read_document(path), file=path)
    try:
        if packed.stat().st_size > _LARGEST:
            raise BadInput(f"larger than {_LARGEST} bytes", file=packed)
        data = packed.read_bytes()
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=packed) from None
    if hashlib.sha256(data).hexdigest() != made.arrays_sha256:
        raise BadInput("is not the file that policy.json names: its digest differs", file=packed)
    try:
        _refuse_compressed(data, packed)
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (ValueError, OSError, BadZipFile, KeyError, EOFError, NotImplementedError, MemoryError) as error:
        raise BadInput(f"holds no arrays: {said(error)}", file=packed) from None
    if odd := [name for name, array in arrays.items() if array.dtype.kind not in "fiu"]:
        raise BadInput(f"its array {odd[0]!r} holds no real numbers", file=packed)
    return made, arrays


def _refuse_compressed(data: bytes, file: Path) -> None:
    """Arrays are written as they are: what is compressed may be a thousand times as large as the file."""
    with ZipFile(io.BytesIO(data)) as packed:
        if any(entry.compress_type != ZIP_STORED for entry in packed.infolist()):
            raise BadInput("holds compressed arrays, which a policy has none of", file=file)
