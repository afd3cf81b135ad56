"""`stepdown init`."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from stepdown.builder.common.bundled import CONFIGS, PACKAGE
from stepdown.builder.common.files import write_text
from stepdown.builder.config.validation import read_yaml
from stepdown.builder.errors import BadInput

CONFIG, POOL = "run.yaml", "pool.yaml"


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a folder of one kind begins with. The config's values are those of a bundled one."""

    short: str
    """For `--help`."""
    what: str
    """The config's first line."""
    config: str
    parts: Sequence[str] = ()
    """What `stepdown install` installs for it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files of a sample, and where they lie in the package."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """What the config's `source` becomes."""
    comments: Mapping[str, str] = field(default_factory=dict)
    """What the harness's own keys mean."""
    harness: str | None = None
    """What is named in place of the bundled config's harness."""
    lacking: str = ""
    """What somebody writes first, where there is no sample."""


KINDS = {name: _Kind(**kind) for name, kind in read_yaml(Path(__file__).with_name("init_kinds.yaml")).items()}
_SOURCE = {"bills": [[3, 12, 4], [25, 8]]}
_TEST = f'''"""The workload keeps to the contract: run it with `pytest`, or type `stepdown harness check mine:Till`."""

from mine import Till
from stepdown.testing import check_harness


def test_it_keeps_to_the_contract():
    check_harness(Till, source={_SOURCE}, models=["hasty"])
'''


_HELP = f"""Write a commented config into FOLDER, by default the one you are in, with all that it names.

\b
{chr(10).join(f"{name:<10}{kind.short}" for name, kind in KINDS.items())}

No file is ever overwritten. From an empty folder to the first labels:

\b
stepdown init --kind qa --sample --install
stepdown build run.yaml --run runs/first
"""


@click.command("init", help=_HELP)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--kind", required=True, type=click.Choice(list(KINDS)), help="What is to be labelled.")
@click.option("--sample", is_flag=True, help="Write sample tasks too, so that the config runs as it is.")
@click.option("--install", is_flag=True, help="Install what the config needs, as `stepdown install` does.")
def command(folder: Path, kind: str, sample: bool, install: bool) -> None:
    chosen = KINDS[kind]
    written = _write(folder, dict(_files(chosen, sample or kind == "harness")))
    for file in written:
        click.echo(str(file))
    if install:
        _install(chosen.parts)
    _say_next(chosen, folder, sample or not chosen.lacking, install)


def _files(kind: _Kind, sample: bool) -> Iterator[tuple[str, str]]:
    """The files of a folder, by their names in it."""
    from stepdown.builder.config.commented import commented

    data = read_yaml(CONFIGS / f"{kind.config}.yaml")
    protocol = data["protocol"]
    [workload] = protocol["workloads"]
    workload |= {"source": {**workload["source"], **kind.source}, "harness": kind.harness or workload["harness"]}
    pool = protocol["pool"] if isinstance(protocol["pool"], str) else "pools/quickstart.yaml"
    protocol["pool"] = POOL
    heading = f"{kind.what}\n  stepdown build {CONFIG} --run runs/first\nEvery key: stepdown schema --reference"
    yield CONFIG, commented(data, kind.comments, heading)
    yield POOL, (CONFIGS / pool).read_text("utf-8")
    if sample:
        for name, place in kind.files.items():
            yield name, (PACKAGE / place).read_text("utf-8")
    if kind.harness:
        yield "test_mine.py", _TEST


def _write(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write all files or none. Raises BadInput where one is there already."""
    places = {folder / name: text for name, text in files.items()}
    if there := [str(place) for place in places if os.path.lexists(place)]:
        raise BadInput(
            f"is there already, and nothing is overwritten: name another folder than {folder}", file=there[0]
        )
    try:
        for place, text in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            write_text(place, text)
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=error.filename or folder) from None
    return list(places)


def _install(parts: Sequence[str]) -> None:
    from stepdown.builder.cli.install import install_part

    for part in parts:
        install_part(part)


def _say_next(kind: _Kind, folder: Path, is_whole: bool, is_installed: bool) -> None:
    """What comes next, on standard error: files alone can be piped."""
    config = shlex.quote(str(folder / CONFIG))
    steps = [] if is_whole else [f"write {kind.lacking}"]
    steps += [] if is_installed else [f"stepdown install {part}" for part in kind.parts]
    data = read_yaml(folder / POOL)
    if any(str(model["model"]).startswith("openrouter/") for tier in data["tiers"] for model in tier["models"]):
        steps.append("export OPENROUTER_API_KEY=...")
    if kind.harness:
        inside = f"cd {shlex.quote(str(folder))} && " if folder != Path() else ""
        steps.append(f"{inside}stepdown harness check {kind.harness} --source '{json.dumps(_SOURCE)}'")
    runs = shlex.quote(str(folder / "runs" / "first"))
    steps += [f"stepdown doctor {config}", f"stepdown build {config} --run {runs}", f"stepdown status {runs}"]
    click.echo("next:", err=True)
    for step in steps:
        click.echo(f"  {step}", err=True)
