"""SWE-bench's instances in the format of swebench 5: read from a file or a Hugging Face data set, checked, selected."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from stepdown.builder.common.extras import require
from stepdown.builder.config.validation import Strict, read_jsonl, read_text, validated
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Instance
from stepdown.harnesses.swebench.upstream import log_parsers

BENCHMARK = "swebench"

ASSETS = "its tests need files that the grader would fetch from the network (image_assets)"
"""Why an instance is dropped whose `image_assets` make the grader's host fetch URLs."""


class Source(Strict):
    """Which instances a run takes: from one file or one data set, all of them, some ids, or the first few."""

    file: Path | None = None
    """JSON (a list), JSONL or Parquet. A relative path starts at the folder that the command is called in."""
    dataset: str | None = Field(None, min_length=1)
    """A data set's name on the Hugging Face Hub, for example SWE-bench/SWE-bench_Verified."""
    split: str = Field("test", min_length=1)
    """The data set's split."""
    revision: str | None = None
    """The data set's revision; None: the newest."""
    ids: tuple[str, ...] | None = Field(None, min_length=1)
    limit: int | None = Field(None, ge=1)
    """At most so many, the first ones in the source's order."""

    @model_validator(mode="after")
    def _one_place(self) -> Source:
        if (self.file is None) == (self.dataset is None):
            raise ValueError("one of `file` and `dataset` is needed")
        if self.ids is not None and len(set(self.ids)) < len(self.ids):
            raise ValueError("an id is given twice")
        return self


def _unpacked(value: Any) -> Any:
    """Lists and mappings come as JSON text from the Hub and as they are from local files."""
    return json.loads(value) if isinstance(value, str) and value.strip() else value


def _known_parser(name: Any) -> Any:
    if isinstance(name, str) and name not in log_parsers():
        raise ValueError(f"swebench has no log parser {name!r}")
    return name


Tests = Annotated[tuple[str, ...], BeforeValidator(_unpacked)]


class Task(BaseModel):
    """What is used of an instance: what the agent is told, and what the official grader needs. No solution is in it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    instance_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")
    """It names folders: no slash, no leading dot."""
    repo: str = Field(min_length=1)
    version: str
    problem_statement: str = Field(min_length=1)
    image: str = Field(pattern=r"^[a-z0-9][A-Za-z0-9./:@_-]*$")
    """The image's name: work tree at /testbed, environment ready."""
    eval_script: str = Field(min_length=1)
    log_parser: Annotated[str, BeforeValidator(_known_parser)]
    eval_type: Literal["pass_and_fail", "fail_only"]
    FAIL_TO_PASS: Tests = Field(min_length=1)
    PASS_TO_PASS: Tests = ()

    @classmethod
    def of(cls, instance: Instance) -> Task:
        """The task that an instance of this workload holds."""
        return cls.model_validate(instance.task)


class _Row(Task):
    image_assets: Annotated[dict[str, list[dict[str, Any]]] | None, BeforeValidator(_unpacked)] = None
    patch: Any = None
    """The reference patch: no part of a task."""

    @model_validator(mode="before")
    @classmethod
    def _of_swebench_5(cls, data: Any) -> Any:
        """Says so in one line where the row is of the older format: with nothing to run its tests by."""
        if isinstance(data, dict) and "instance_id" in data and not {"eval_script", "image"} & set(data):
            raise ValueError("a row without `image` and `eval_script` is older than swebench 5: take a newer revision")
        return data

    def instance(self) -> Instance:
        fetched = any(asset.get("path") for assets in (self.image_assets or {}).values() for asset in assets or ())
        task = self.model_dump(mode="json", exclude={"image_assets", "patch"})
        return Instance(BENCHMARK, self.instance_id, task, ASSETS if fetched else None, group=self.repo)


def select(source: Mapping[str, Any]) -> Iterator[Instance]:
    """The instances that `source` names, in its own order. Raises BadInput, naming file, line and field."""
    return (row.instance() for row in _selected(source))


def reference_patches(source: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """The ids of the instances that `source` names, and their reference patches where the rows have one."""
    for row in _selected(source):
        if isinstance(row.patch, str):
            yield row.instance_id, row.patch.encode(errors="replace")


def _selected(source: Mapping[str, Any]) -> Iterator[_Row]:
    wanted = validated(Source, dict(source), field="source")
    left, taken = set(wanted.ids or ()), 0
    for place, row in _rows(wanted):
        if not isinstance(row, dict):
            raise BadInput("must be a mapping of fields to values", **place)
        if wanted.ids is not None and row.get("instance_id") not in left:
            continue
        if wanted.limit is not None and taken == wanted.limit:
            return
        read = validated(_Row, row, **place)
        left.discard(read.instance_id)
        taken += 1
        yield read
    if left:
        raise BadInput(f"no such id: {min(left)!r}", field="source.ids")
    if not taken:
        raise BadInput("holds no instance", field="source.file" if wanted.file else "source.dataset")


def _rows(source: Source) -> Iterator[tuple[dict[str, Any], Any]]:
    """Every row with its place, as BadInput takes it."""
    if source.dataset is not None:
        yield from _of_hub(source)
    elif source.file is not None:
        readers = {".json": _of_json, ".jsonl": _of_jsonl, ".parquet": _of_parquet}
        if source.file.suffix not in readers:
            raise BadInput(f"{str(source.file)!r} is none of {', '.join(readers)}", field="source.file")
        yield from readers[source.file.suffix](source.file)


def _of_json(path: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    try:
        rows = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}", file=path) from None
    if not isinstance(rows, list):
        raise BadInput("must be a list of instances", file=path)
    for number, row in enumerate(rows, 1):
        yield {"file": f"{path} instance {number}"}, row


def _of_jsonl(path: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    for number, row in read_jsonl(path):
        yield {"file": path, "line": number}, row


def _of_parquet(path: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    require("swebench", "pyarrow", field="source.file")
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    number = 0
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=64):
                for row in batch.to_pylist():
                    number += 1
                    yield {"file": f"{path} row {number}"}, row
    except (OSError, ArrowException) as error:
        raise BadInput(f"not a readable Parquet file: {error}", file=path) from None


def _of_hub(source: Source) -> Iterator[tuple[dict[str, Any], Any]]:
    require("swebench", "datasets", field="source.dataset")
    from datasets import load_dataset
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()  # else every retry without a network is a warning
    try:
        rows = load_dataset(source.dataset, split=source.split, revision=source.revision)
    except Exception as error:  # whatever the Hub's client and the network come up with
        problem = str(error).split("\n")[0]
        raise BadInput(
            f"{source.dataset!r} can not be loaded ({type(error).__name__}: {problem}); name a local copy as `file`",
            field="source.dataset",
        ) from None
    for number, row in enumerate(rows, 1):
        yield {"file": f"{source.dataset} row {number}"}, dict(row)
