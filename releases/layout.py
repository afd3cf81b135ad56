"""The shape of a release: the names of its files, its row, its manifest, and how they are read.

A release is a folder that anybody may have made, so all of it is read by `common.reading`, which trusts nothing.
`publish` writes this layout, `verify` checks it, `score` and `report` read it. This file says whether a release can be
read; `rowchecks`, `manifestchecks` and `documents` say whether it may be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from stepdown.builder.artifacts import names
from stepdown.builder.artifacts.rows import FIELDS, OPTIONAL_FIELDS, Row, parse_row
from stepdown.builder.common.reading import read_document, read_json_lines
from stepdown.builder.config.validation import JsonObject, Strict, validated
from stepdown.builder.errors import BadInput

ROWS, MANIFEST = names.ROWS, names.MANIFEST
"""As in a run. Rows, a JSON object per line: all of `train`, then all of `test`."""
DATA = "data"
"""The folder of the Parquet shards: the same rows in the same order, `messages` and `tools` as JSON text."""
CARD, CROISSANT, LICENSES, SUMS = "README.md", "croissant.json", "LICENSE.md", "SHA256SUMS"
TRAIN, TEST = "train", "test"
SPLITS = (TRAIN, TEST)
ANY = "*"
"""The benchmark under which a manifest counts instances of which only the number is known."""


class TierName(Strict):
    """A tier as rows name it."""

    name: str = Field(min_length=1)
    id: int


class ReleasedFile(Strict):
    """What the manifest says of a file of the release."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)
    rows: int | None = Field(None, ge=0)
    """Of data files: how many rows it holds."""


class Split(Strict):
    """How many rows, instances and groups a split holds."""

    rows: int = Field(ge=0)
    instances: int = Field(ge=0)
    groups: int = Field(ge=0)


class Holdout(Strict):
    """The rule that puts a group into a split: a hash of the seed, its benchmark and its name, below `share`: test."""

    share: float = Field(ge=0, lt=1)
    seed: int


class License(Strict):
    """Under what terms the texts of a workload stand."""

    license: str
    note: str


class RunManifest(BaseModel):
    """The manifest of a run, as a release tells of it. More keys may stand there than are named here."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)

    pool: JsonObject
    """`version`, `digest`, and `tiers`: name, id and models of each."""
    workloads: list[JsonObject]
    """`benchmark` and harness `version` of each."""
    protocol: JsonObject
    """All that labels depend on; `pool.tiers[].models[].price` are the list prices."""
    protocol_digest: str
    seeds: JsonObject
    rows: int = Field(ge=0)
    instances: dict[str, int]
    labels: dict[str, dict[str, int]]
    dropped: dict[str, dict[str, int]]
    blocked: dict[str, dict[str, int]]
    unfinished: int = Field(ge=0)
    needed: JsonObject
    files: dict[str, JsonObject]
    audit: JsonObject | None = None
    """What the human audit of the run came to; None where no step was sampled."""
    judge: JsonObject | None = None
    """By which rules answers were judged, and what probes say of each judge; None where nothing was judged."""


class Manifest(Strict):
    """`manifest.json` of a release."""

    format: int = Field(1, ge=1, le=1)
    """Of this layout."""
    name: str = Field(min_length=1)
    version: str = Field(min_length=1)
    published: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    """The day."""
    creator: str
    """Who publishes it; may be empty."""
    url: str
    """Where it can be downloaded; may be empty."""
    license: str = Field(min_length=1)
    """Of the labels, by its SPDX name. `licenses` has those of the texts."""
    tiers: tuple[TierName, ...] = Field(min_length=2)
    """Cheapest first; the last is the strong one."""
    rows: int = Field(ge=0)
    instances: dict[str, int]
    """By benchmark."""
    labels: dict[str, dict[str, int]]
    """Rows by benchmark and tier name."""
    holdout: Holdout
    splits: dict[str, Split]
    partial: bool = False
    """Whether a run had instances left to do: they were left out, and the release is not all of its run."""
    left_out: dict[str, dict[str, int]]
    """Instances that the runs began with and the release has not, by benchmark and reason."""
    allowed_names: dict[str, int]
    """Names of pool models that were let through, each with the rows that hold it."""
    allowed_paths: tuple[str, ...]
    """Home folders that were let through: a benchmark's own texts name them."""
    licenses: dict[str, License]
    """By benchmark."""
    runs: tuple[RunManifest, ...] = Field(min_length=1)
    files: dict[str, ReleasedFile]
    """Every file of the release but the manifest itself and SHA256SUMS."""

    @property
    def tier_ids(self) -> dict[str, int]:
        return {tier.name: tier.id for tier in self.tiers}


def read_released_rows(release: Path) -> Iterator[Row]:
    """The rows of a release, one in memory at a time.

    Raises BadInput(file, line, field) at the first line that is no row of a release. Whether rows fit one another and
    the manifest is `verify`'s to say.
    """
    path = release / ROWS
    for number, data in read_json_lines(path):
        yield parse_released_row(data, path, number)


def parse_released_row(data: Any, path: Path, number: int) -> Row:
    """A row of a release from its JSON value. Raises BadInput, naming the field.

    A release is stricter than a run: group and split are there, numbers fit into Parquet, and nothing else stands in
    it.
    """
    row = parse_row(data, path, number)
    for name in ("group", "split"):
        if name not in data:
            raise BadInput("is missing", file=path, line=number, field=name)
    for name in ("step_index", "total_steps", "target_tier_id"):
        if not -(1 << 31) <= data[name] < 1 << 31:
            raise BadInput("too large a number", file=path, line=number, field=name)
    if "tools" in data and not row.tools:
        raise BadInput("must be a list of definitions, or not there", file=path, line=number, field="tools")
    if unknown := [name for name in data if name not in FIELDS and name not in OPTIONAL_FIELDS]:
        raise BadInput("no field of a row", file=path, line=number, field=unknown[0][:100])
    return row


def read_manifest(release: Path) -> Manifest:
    """The manifest of a release. Raises BadInput where it is missing or not one, naming the field."""
    path = release / MANIFEST
    return validated(Manifest, read_document(path), file=path)
