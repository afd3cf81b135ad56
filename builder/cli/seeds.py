"""`stepdown seeds convert`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepdown.builder.cli import console
from stepdown.builder.common.files import write_text
from stepdown.builder.common.text import is_id, printable
from stepdown.builder.errors import BadInput

if TYPE_CHECKING:
    from stepdown.harnesses.base import Harness


@click.group("seeds")
def command() -> None:
    """Make seed files of what other tools recorded."""


@command.command()
@click.argument("trajectories", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The seed file to write.")
@click.option("--model", help="The pool's name of the model that made them; else the name that the files give it.")
def convert(trajectories: Path, out: Path, model: str | None) -> None:
    """Write a seed file of trajectories that another tool recorded: the file PATH, or all of them in the folder PATH.

    Which files are read is for the installed workloads to say; docs/workloads.md names them. Trajectories that can be
    no seed, such as those that did not come to their end or in which a person took part, are passed over and counted; a
    broken file ends it with exit code 2, and nothing is written. Whether a trajectory solves its task is not asked
    here: a build replays every seed to its verdict.

    A config takes the result as `seeds: {source: import, file: OUT}`.
    """
    from stepdown.harnesses.base import NotASeed

    reader, files = _recordings(trajectories)
    lines, passed_over, instances = [], Counter[str](), set()
    for path in files:
        try:
            seed = reader.seed_of(path, model)
        except NotASeed as reason:
            passed_over[printable(str(reason), longest=80)] += 1
            continue
        if not is_id(seed["instance_id"]):
            raise BadInput("not 1 to 200 printable characters", file=path, field="instance_id")
        instances.add(seed["instance_id"])
        lines.append(json.dumps(seed, ensure_ascii=False) + "\n")
    for why, count in sorted(passed_over.items()):
        console.stderr().print(f"passed over: {count}, {why}", markup=False)
    if not lines:
        raise BadInput("no trajectory in it can be a seed", file=trajectories)
    _write(out, "".join(lines))
    console.stdout().print(f"{len(lines)} seeds of {len(instances)} instances in {out}", markup=False)


def _recordings(path: Path) -> tuple[type[Harness], list[Path]]:
    """The recorded file, or all of a folder at any depth, and the workload that reads such files.

    Raises BadInput where there is none, or where it is not clear whose they are.
    """
    from stepdown.harnesses.registry import harness_class, installed

    readers = [found for name in installed() if (found := harness_class(name)).recordings]
    if path.is_dir():
        held = [(reader, sorted(path.rglob(f"*{reader.recordings}"))) for reader in readers]
        there = [(reader, files) for reader, files in held if files]
    elif path.is_file():
        own = [reader for reader in readers if path.name.endswith(reader.recordings)]
        there = [(reader, [path]) for reader in own or readers]  # a file may have been renamed
    else:
        raise BadInput("no such file or folder", file=path)
    if len(there) != 1:
        known = ", ".join(f"*{reader.recordings}" for reader in readers)
        raise BadInput(f"{'files of several workloads' if there else 'there is no file'} {known}", file=path)
    return there[0]


def _write(path: Path, text: str) -> None:
    """The file whole, or as it was. Raises BadInput where it cannot be written."""
    try:
        write_text(path, text)
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=path) from None
