"""`stepdown seeds convert`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import click

from stepdown.builder.cli import console
from stepdown.builder.common.files import write_text
from stepdown.builder.common.text import is_id, printable
from stepdown.builder.errors import BadInput


@click.group("seeds")
def command() -> None:
    """Make seed files of what other tools recorded."""


@command.command()
@click.argument("trajectories", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The seed file to write.")
@click.option("--model", help="The pool's name of the model that made them; else the name that the files give it.")
def convert(trajectories: Path, out: Path, model: str | None) -> None:
    """Write a seed file of mini-swe-agent's trajectories: the file PATH, or all *.traj.json in the folder PATH.

    Files of mini-swe-agent 1 and 2 are read. Trajectories that did not submit, and those in which a person took part,
    are passed over and counted; a broken file ends it with exit code 2, and nothing is written. Whether a trajectory
    solves its task is not asked here: a build replays every seed and grades what it submits.

    A config takes the result as `seeds: {source: import, file: OUT}`.
    """
    from stepdown.harnesses.swebench.trajectories import NotASeed, seed_of, trajectory_files

    lines, passed_over, instances = [], Counter[str](), set()
    for path in trajectory_files(trajectories):
        try:
            seed = seed_of(path, model)
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


def _write(path: Path, text: str) -> None:
    """The file whole, or as it was. Raises BadInput where it cannot be written."""
    try:
        write_text(path, text)
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=path) from None
