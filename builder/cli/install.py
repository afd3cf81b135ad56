"""`stepdown install`."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib.util import find_spec

import click

from stepdown.builder.common.extras import parts, pinned_files
from stepdown.builder.errors import BadInput


def _help() -> str:
    listed = "\n".join(f"  {name:<10} {part.brings}" for name, part in parts().items())
    return f"""Install what PART of stepdown needs, at the tested versions, into the environment of this Python.

\b
PART is one of:
{listed}

Every package is pinned and checked by its digest, and nothing beside the pinned ones is installed.
"""


@click.command("install", help=_help())
@click.argument("part")
@click.option("--dry-run", is_flag=True, help="Only print pip's command.")
def command(part: str, dry_run: bool) -> None:
    files = [str(file) for file in pinned_files(part)]
    words = _pip(files)
    if dry_run:
        click.echo(shlex.join(words))
        return
    _run(part, words, files)


def install_part(part: str) -> None:
    """Have pip install what a part needs. Raises BadInput."""
    files = [str(file) for file in pinned_files(part)]
    _run(part, _pip(files), files)


def _pip(files: list[str]) -> list[str]:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
    return [*pip, *(word for file in files for word in ("-r", file))]


def _run(part: str, words: list[str], files: list[str]) -> None:
    if find_spec("pip") is None:
        raise BadInput(f"this environment has no pip; another installer takes the same files: {', '.join(files)}")
    click.echo(f"installing what {part} needs into {sys.prefix}: {shlex.join(words)}", err=True)
    done = subprocess.run(words)  # noqa: S603 - our own interpreter and files
    if done.returncode:
        raise BadInput(f"pip did not install {part}: it ended with exit code {done.returncode}")
