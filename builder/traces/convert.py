"""Makes lines of a seed file of files that other tools wrote, and counts what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepdown.builder.common.text import is_id, printable
from stepdown.builder.errors import BadInput
from stepdown.builder.traces import inspect_ai
from stepdown.builder.traces.calls import ChatCall, LeftOut
from stepdown.builder.traces.chains import Chains, Link, Trajectory, link_of
from stepdown.builder.traces.documents import Record, TruncatedRecord, at, opened_text, records
from stepdown.builder.traces.formats import ENDINGS, FORMATS, INSPECT
from stepdown.builder.traces.matching import Tasks

_IDS = ("instance_id", "task_id")
"""What names a task in the metadata of a call, unless somebody says otherwise."""
_METADATA: tuple[tuple[str, ...], ...] = (
    ("metadata",),
    ("request", "metadata"),
    ("extra", "metadata"),
    ("custom_metadata",),
    ("trace", "metadata"),
    ("attributes",),
    (),
)


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """What somebody asks for, beside the files."""

    model: str | None = None
    """The pool's name of the model that made them."""
    made_by: str | None = None
    """Only trajectories of the model that the files call so."""
    id_field: str | None = None
    """Where a record names its task: names joined by dots."""
    tasks: Tasks | None = None
    """The tasks to find the trajectories' own among."""


@dataclass(slots=True)
class Converted:
    """Lines of a seed file, and how many things were left out, by reason."""

    seeds: list[dict[str, Any]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def format_of(path: Path) -> str | None:
    """The format of a file, by its first record; None where it is none that is known. Raises BadInput: unreadable."""
    if path.name.endswith(inspect_ai.SUFFIX):
        return INSPECT
    try:
        first = next(iter(records(path)), None)
    except TruncatedRecord:
        return None
    if first is None:
        return None
    if inspect_ai.is_one(first.value):
        return INSPECT
    return next((name for name, one in FORMATS.items() if one.is_one(first.value)), None)


def trace_files(path: Path) -> list[Path]:
    """The file, or those of a folder at any depth that may hold traces, in order."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file() and file.name.endswith(ENDINGS))


def convert(files: Iterable[Path], name: str, wanted: ConvertOptions, tell: Callable[[str], None]) -> Converted:
    """The seeds of files of one format. `tell` is told how far it is. Raises BadInput."""
    done = Converted()
    found = list(_of_inspect(files, done) if name == INSPECT else _of_calls(files, name, wanted, done, tell))
    _refuse_mixed(found, wanted)
    for trajectory in found:
        try:
            done.seeds.append(_seed(trajectory, wanted))
        except LeftOut as reason:
            done.left_out[str(reason)] += 1
    return done


def _of_inspect(files: Iterable[Path], done: Converted) -> Iterator[Trajectory]:
    for path in files:
        if path.name.endswith(inspect_ai.SUFFIX):
            samples = inspect_ai.packed_trajectories(path)
        else:
            samples = (one for record in records(path) for one in inspect_ai.trajectories(_log(record)))
        for one in samples:
            if isinstance(one, LeftOut):
                done.left_out[str(one)] += 1
            else:
                yield one


def _log(record: Record) -> Record:
    if not inspect_ai.is_one(record.value):
        raise BadInput("no log of inspect_ai", file=record.file, line=record.line)
    return record


def _of_calls(
    files: Iterable[Path], name: str, wanted: ConvertOptions, done: Converted, tell: Callable[[str], None]
) -> Iterator[Trajectory]:
    links: list[Link] = []
    for path in files:
        for call in _calls(path, name, done):
            try:
                links.append(link_of(call, len(links), _task(call, wanted.id_field)))
            except LeftOut as reason:
                done.left_out[str(reason)] += 1
            tell(f"{len(links)} calls read")
    if not links and not done.left_out:
        raise BadInput(f"no call of a model in it, read as {FORMATS[name].what}", file=path)
    # Where tasks are known, each trajectory is looked up among them: none need be told from calls beside it by length.
    chains = Chains(done.left_out)
    yield from chains.of(links, one_of_a_trace=wanted.tasks is None)


def _calls(path: Path, name: str, done: Converted) -> Iterator[ChatCall]:
    try:
        for record in records(path):
            try:
                for call in FORMATS[name].calls(record):
                    if isinstance(call, LeftOut):
                        done.left_out[str(call)] += 1
                    else:
                        yield call
            except LeftOut as reason:
                done.left_out[str(reason)] += 1
    except TruncatedRecord:
        done.left_out["last lines that were cut off"] += 1


def _task(call: ChatCall, field: str | None) -> str:
    """The id of a call's task, where its record names one."""
    if field is not None:
        return _as_id(_found(call.record, field))
    for place in _METADATA:
        metadata = opened_text(at(call.record, *place))
        if isinstance(metadata, Mapping):
            for name in _IDS:
                if metadata.get(name) is not None:
                    return _as_id(metadata[name])
    return ""


def _found(value: Any, field: str) -> Any:
    """What stands at a place named by names joined by dots; names may hold dots themselves.

    >>> _found({"attributes": {"app.task": "a"}}, "attributes.app.task")
    'a'
    """
    value = opened_text(value)
    if not isinstance(value, Mapping):
        return None
    if field in value:
        return value[field]
    parts = field.split(".")
    for length in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:length])
        if name in value and (found := _found(value[name], ".".join(parts[length:]))) is not None:
            return found
    return None


def _as_id(value: Any) -> str:
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _refuse_mixed(found: list[Trajectory], wanted: ConvertOptions) -> None:
    """Raises BadInput where one name would be given to trajectories of several models."""
    models = sorted({trajectory.models[0] for trajectory in found if len(trajectory.models) == 1})
    if wanted.made_by is not None and wanted.made_by not in models:
        known = ", ".join(printable(repr(name)) for name in models) or "none"
        raise BadInput(f"no trajectory was made by {wanted.made_by!r} alone: models are {known}", field="--made-by")
    if wanted.model is not None and wanted.made_by is None and len(models) > 1:
        known = ", ".join(printable(repr(name)) for name in models)
        raise BadInput(f"several models made them ({known}): say which one is {wanted.model!r}", field="--made-by")


def _seed(trajectory: Trajectory, wanted: ConvertOptions) -> dict[str, Any]:
    """The line of a trajectory. Raises LeftOut, and BadInput where nobody says which model made it."""
    if len(trajectory.models) > 1:
        raise LeftOut("trajectories whose steps were made by several models")
    [made_by] = trajectory.models
    if wanted.made_by not in (None, made_by):
        raise LeftOut("trajectories of another model")
    model = wanted.model or made_by
    if not model:
        raise BadInput("the model is not named: say which of the pool's strong models it was", field="--model")
    seed: dict[str, Any] = {
        "instance_id": trajectory.task or trajectory.trace or f"chat-{trajectory.opening.hex()[:16]}"
    }
    if wanted.tasks is not None:
        task = wanted.tasks.of(trajectory)
        if task is None:
            raise LeftOut("trajectories of no task of the config")
        seed = {"benchmark": task[0], "instance_id": task[1]}
    if not is_id(seed["instance_id"]):
        raise LeftOut("trajectories whose task has an id that is not 1 to 200 printable characters")
    return {**seed, "model": model, "steps": list(trajectory.steps)}
