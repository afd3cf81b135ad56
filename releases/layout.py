"""The shape of a release: the names of its files, its row, its manifest, and how they are read.

A release is a folder that anybody may have made, so everything here reads hostile data: one line at a time, of bounded
length, and what is wrong is named by file, line and field. `publish` writes this layout, `verify` checks it, `score`
and `report` read it. Whether a release may be trusted is the business of `releases.checks`; whether it can be read, of
this file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from stepdown.builder.config.validation import JsonObject, Strict, validated
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Message, Tool

ROWS = "question_bank.jsonl"
"""Every row, a JSON object per line: all of `train`, then all of `test`."""
DATA = "data"
"""The folder of the Parquet shards: the same rows in the same order, `messages` and `tools` as JSON text."""
MANIFEST, CARD, CROISSANT, LICENSES, SUMS = "manifest.json", "README.md", "croissant.json", "LICENSE.md", "SHA256SUMS"
TRAIN, TEST = "train", "test"
SPLITS = (TRAIN, TEST)
ANY = "*"
"""The benchmark under which a manifest counts instances of which only the number is known."""

FIELDS: Mapping[str, type] = {
    "id": str,
    "benchmark": str,
    "instance_id": str,
    "step_index": int,
    "total_steps": int,
    "messages": list,
    "target_tier": str,
    "target_tier_id": int,
    "group": str,
    "split": str,
}
"""A row's fields and what JSON value each holds. `tools`, a list, stands where the prefix has tool definitions."""

LONGEST_LINE = 64 << 20
"""Bytes of a row, at most: the longest prefixes that models take are a hundredth of this."""
LARGEST_DOCUMENT = 64 << 20
"""Bytes of a manifest or Croissant file, at most."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled step: the prefix that a router sees, and the cheapest tier that was accepted for it."""

    id: str
    """`benchmark/instance_id/step_index`."""
    benchmark: str
    instance_id: str
    step_index: int
    """From 1."""
    total_steps: int
    """Length of the final mixed trajectory."""
    messages: list[Message]
    target_tier: str
    target_tier_id: int
    group: str
    """What honest evaluation holds out whole, within the benchmark: repository, conversation, function family."""
    split: str
    """`train` or `test`; all rows of a group are in the same one."""
    tools: list[Tool] | None = None


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


class Manifest(Strict):
    """`manifest.json` of a release."""

    format: int = Field(1, ge=1, le=1)
    """Of this layout."""
    name: str = Field(min_length=1)
    version: str = Field(min_length=1)
    published: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    """The day."""
    creator: str
    """Who answers for it; may be empty."""
    url: str
    """Where it is to be had; may be empty."""
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


def rows(release: Path, file: str = ROWS) -> Iterator[Row]:
    """The rows of a release, one in memory at a time.

    Raises BadInput(file, line, field) at the first line that is no row. Whether rows fit one another and the manifest
    is `verify`'s to say.
    """
    path = release / file
    for number, data in json_lines(path):
        yield row_of(data, path, number)


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a JSONL file with their line numbers, from 1. Raises BadInput at a bad line or for no such file."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                yield number, parsed(line, path, number)
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=path) from None


def parsed(line: bytes, path: Path, number: int) -> Any:
    """A line's JSON value. Raises BadInput: too long, not ended, blank, not UTF-8, not JSON as the standard has it."""
    if len(line) > LONGEST_LINE:
        raise BadInput(f"the line is longer than {LONGEST_LINE} bytes", file=path, line=number)
    if not line.endswith(b"\n"):
        raise BadInput("the line is cut off: no line end", file=path, line=number)
    return parsed_json(line, path, number)


def parsed_json(data: bytes, path: Path, number: int | None = None) -> Any:
    """The JSON value of some bytes. A key given twice, NaN, Infinity and huge numbers are not JSON here."""
    try:
        return _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8: {error.reason} at byte {error.start}", file=path, line=number) from None
    except RecursionError:
        raise BadInput("not JSON: nested too deeply", file=path, line=number) from None
    except ValueError as error:
        raise BadInput(f"not JSON: {getattr(error, 'msg', error)}", file=path, line=number) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice[:100]!r} is given twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def row_of(data: Any, path: Path, number: int) -> Row:
    """A row from its JSON value: just the fields of the format, each of its type. Raises BadInput, naming the field."""
    if not isinstance(data, dict):
        raise BadInput("a row must be an object", file=path, line=number)
    for name, kind in FIELDS.items():
        if type(data.get(name)) is not kind:
            problem = f"must be {_WORDS[kind]}" if name in data else "is missing"
            raise BadInput(problem, file=path, line=number, field=name)
    for name in ("step_index", "total_steps", "target_tier_id"):
        if not -(1 << 31) <= data[name] < 1 << 31:
            raise BadInput("too large a number", file=path, line=number, field=name)
    tools = data.get("tools")
    if "tools" in data and (type(tools) is not list or not tools):
        raise BadInput("must be a list of definitions, or not there", file=path, line=number, field="tools")
    if len(data) > len(FIELDS) + ("tools" in data):
        unknown = next(key for key in data if key not in FIELDS and key != "tools")
        raise BadInput("no field of a row", file=path, line=number, field=unknown[:100])
    for name in ("messages", "tools"):
        for index, item in enumerate(data.get(name) or ()):
            if type(item) is not dict:
                raise BadInput("must be an object", file=path, line=number, field=f"{name}.{index}")
    return Row(**data)


_WORDS = {str: "text", int: "a whole number", list: "a list"}


def read_manifest(release: Path) -> Manifest:
    """The manifest of a release. Raises BadInput where it is missing or not one, naming the field."""
    path = release / MANIFEST
    return validated(Manifest, read_document(path), file=path)


def read_document(path: Path) -> Any:
    """The value of a JSON file of bounded size. Raises BadInput."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_DOCUMENT + 1)
    except (OSError, ValueError) as error:
        raise BadInput(getattr(error, "strerror", None) or str(error), file=path) from None
    if len(data) > LARGEST_DOCUMENT:
        raise BadInput(f"larger than {LARGEST_DOCUMENT} bytes", file=path)
    return parsed_json(data, path)
