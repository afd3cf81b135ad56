"""`stepdown seeds convert`."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepdown.builder.cli import console
from stepdown.builder.common.files import write_text
from stepdown.builder.common.text import is_id, nearest, printable
from stepdown.builder.errors import BadInput

if TYPE_CHECKING:
    from stepdown.builder.traces.convert import ConvertOptions
    from stepdown.builder.traces.matching import Tasks
    from stepdown.harnesses.base import Harness

_TELLING = 5.0
"""Seconds."""


@click.group("seeds")
def command() -> None:
    """Make seed files of what other tools recorded."""


@command.command()
@click.argument("trajectories", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The seed file to write.")
@click.option("--model", help="The pool's name of the model that made them; else the name that the files give it.")
@click.option("--made-by", metavar="NAME", help="Only trajectories of the model that the files call so.")
@click.option("--from", "name", metavar="FORMAT", help="What the files are, where that is not to be found out.")
@click.option("--id-field", metavar="FIELD", help="Where a record names its task, as metadata.task or attributes.x.y.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Keep only trajectories of this config's tasks, found by how they begin.",
)
def convert(
    trajectories: Path,
    out: Path,
    model: str | None,
    made_by: str | None,
    name: str | None,
    id_field: str | None,
    config: Path | None,
) -> None:
    """Write a seed file of trajectories that another tool recorded: the file PATH, or all of them in the folder PATH.

    \b
    FORMAT    files
    openai    chat logs of proxies and gateways, a request and its response a line; `stepdown route serve --log`
    otel      OpenTelemetry spans of models (GenAI conventions), as OTLP's JSON
    langfuse  exports of Langfuse: traces with observations, or observations
    langsmith exports of LangSmith: runs, as JSON lines or JSON
    inspect   logs of inspect_ai, .eval or .json
    WORKLOAD  trajectories as a workload's own agent writes them, by the workload's name (.traj.json)

    Calls are put together by their growing prefixes: a call goes on from the one whose messages and answer it begins
    with. A trajectory is a line. Its instance id is what the trace names as `instance_id` or `task_id` in its metadata
    (or at --id-field), else the id of the trace; with --config it is that of the task which begins with the same words.

    Trajectories that can be no seed, such as those that did not come to their end, are left out and counted by reason.
    A broken file ends it with exit code 2, and nothing is written. Whether a trajectory solves its task is not asked
    here: a build replays every seed to its verdict.

    \b
    stepdown seeds convert proxy.jsonl --model strong --config run.yaml --out seeds.jsonl
    stepdown seeds convert logs/ --from inspect --made-by openai/gpt-5 --model strong --out seeds.jsonl

    A config takes the result as `seeds: {source: import, file: OUT}`.
    """
    if not trajectories.exists():
        raise BadInput("no such file or folder", file=trajectories)
    reader = _recording_reader(trajectories, name)
    if reader is not None:
        _of_recordings(reader, trajectories, out, model)
    else:
        from stepdown.builder.traces.convert import ConvertOptions

        wanted = ConvertOptions(model, made_by, id_field, _tasks(config, model))
        _of_traces(trajectories, name, wanted, out)


def _of_traces(path: Path, name: str | None, wanted: ConvertOptions, out: Path) -> None:
    """Seeds of files that hold calls of models, or logs."""
    from stepdown.builder.traces.convert import convert as seeds_of
    from stepdown.builder.traces.convert import trace_files

    files = trace_files(path)
    if not files:
        from stepdown.builder.traces.formats import ENDINGS

        readers = ", ".join(f"*{reader.recordings}" for reader in _readers())
        raise BadInput(f"there is no file {readers}, *{', *'.join(ENDINGS)}", file=path)
    done = seeds_of(files, name or _format(files), wanted, _ticker())
    _finish(path, out, done.seeds, done.left_out)


def _format(files: list[Path]) -> str:
    """The one format of all files. Raises BadInput."""
    from stepdown.builder.traces.convert import format_of
    from stepdown.builder.traces.formats import NAMES

    found: dict[str, Path] = {}
    for file in files:
        one = format_of(file)
        if one is None:
            raise BadInput(f"none of the formats that are known ({', '.join(NAMES)}): say which with --from", file=file)
        found.setdefault(one, file)
    if len(found) > 1:
        first, second, *_ = found.items()
        raise BadInput(f"{first[0]}, while {second[1]} is {second[0]}: convert them one after another", file=first[1])
    return next(iter(found))


def _tasks(config: Path | None, model: str | None) -> Tasks | None:
    """The tasks of a config. Raises BadInput, and where its pool has no such strong model."""
    if config is None:
        return None
    from stepdown.builder.config.loading import load_config
    from stepdown.builder.traces.matching import tasks_of

    loaded = load_config(config, has_seeds=False)
    strong = [one.name for one in loaded.protocol.pool.tiers[-1].models]
    if model is not None and model not in strong:
        raise BadInput(f"{model!r} is no model of the pool's strong tier ({', '.join(strong)})", field="--model")
    console.name_foreign_code(loaded.protocol)
    return tasks_of(loaded)


def _ticker() -> Callable[[str], None]:
    """Shows how far it is, now and then."""
    last = time.monotonic()

    def tell(line: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _TELLING:
            last = time.monotonic()
            console.notify(line)

    return tell


# Recordings that a workload reads itself


def _of_recordings(reader: type[Harness], path: Path, out: Path, model: str | None) -> None:
    """Seeds of files each of which is one trajectory of a workload."""
    from stepdown.builder.traces.formats import NAMES
    from stepdown.harnesses.base import NotASeed

    files = sorted(path.rglob(f"*{reader.recordings}")) if path.is_dir() else [path]
    if not files:
        raise BadInput(f"there is no file *{reader.recordings}", file=path)
    seeds, passed_over = [], Counter[str]()
    for file in files:
        try:
            seed = reader.seed_of(file, model)
        except NotASeed as reason:
            passed_over[str(reason)] += 1
            continue
        except BadInput as error:
            if file.name.endswith(reader.recordings):
                raise
            others = f"nor any other format that is known ({', '.join(NAMES)})"
            raise BadInput(f"{error.problem}; {others}", file=error.file, line=error.line, field=error.field) from None
        if not is_id(seed["instance_id"]):
            raise BadInput("not 1 to 200 printable characters", file=file, field="instance_id")
        seeds.append(seed)
    _finish(path, out, seeds, passed_over)


def _recording_reader(path: Path, name: str | None) -> type[Harness] | None:
    """The workload that reads files of this kind, each a trajectory; None where they hold traces.

    Raises BadInput for an unknown format, and where it is not clear whose files they are.
    """
    from stepdown.builder.traces.convert import format_of
    from stepdown.builder.traces.formats import NAMES

    readers = {reader.name: reader for reader in _readers()}
    if name is not None:
        if name not in (*NAMES, *readers):
            near = nearest(name, (*NAMES, *readers))
            meant = f"did you mean {near!r}? " if near else ""
            raise BadInput(f"no such format {name!r}: {meant}known are {', '.join((*NAMES, *readers))}", field="--from")
        return readers.get(name)
    if path.is_dir():
        there = [reader for reader in readers.values() if next(path.rglob(f"*{reader.recordings}"), None)]
    else:
        there = [reader for reader in readers.values() if path.name.endswith(reader.recordings)]
        if not there and format_of(path) is None:
            there = list(readers.values())  # a file may have been renamed
    if len(there) > 1:
        known = ", ".join(f"*{reader.recordings}" for reader in there)
        raise BadInput(f"files of several workloads {known}: say which with --from", file=path)
    return there[0] if there else None


def _readers() -> list[type[Harness]]:
    from stepdown.harnesses.registry import harness_class, installed

    return [found for name in installed() if (found := harness_class(name)).recordings]


# The file


def _finish(path: Path, out: Path, seeds: list[dict[str, Any]], left_out: Mapping[str, int]) -> None:
    """Write the seeds, and say what was left out."""
    for why, count in sorted(left_out.items()):
        console.stderr().print(f"passed over: {count}, {printable(why, longest=80)}", markup=False)
    if not seeds:
        raise BadInput("no trajectory in it can be a seed", file=path)
    text = "".join(json.dumps(seed, ensure_ascii=False) + "\n" for seed in seeds)
    try:
        write_text(out, text)
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=out) from None
    instances = {seed["instance_id"] for seed in seeds}
    models = Counter(seed["model"] for seed in seeds)
    by = ", ".join(f"{count} by {printable(name)}" for name, count in models.most_common())
    console.stdout().print(f"{len(seeds)} seeds of {len(instances)} instances in {out}: {by}", markup=False)
