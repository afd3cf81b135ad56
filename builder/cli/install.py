"""`stepdown install`."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib.util import find_spec

import click

from stepdown.builder.common.extras import pinned_files
from stepdown.builder.errors import BadInput


@click.command("install")
@click.argument("part")
@click.option("--dry-run", is_flag=True, help="Only print pip's command.")
def command(part: str, dry_run: bool) -> None:
    """Install what PART of stepdown needs, at the tested versions, into the environment of this Python.

    \b
    PART is one of:
      local      the runtime of small local models, and the weights of two of them (400 MB)
      bfcl       BFCL's tasks and checkers
      swebench   SWE-bench's grader, mini-swe-agent and Docker's SDK; Docker itself is not installed

    Every package is pinned and checked by its digest, and nothing beside the pinned ones is installed.
    """
    files = [str(file) for file in pinned_files(part)]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
    words = [*pip, *(word for file in files for word in ("-r", file))]
    if dry_run:
        click.echo(shlex.join(words))
        return
    if find_spec("pip") is None:
        raise BadInput(f"this environment has no pip; another installer takes the same files: {', '.join(files)}")
    click.echo(f"installing what {part} needs into {sys.prefix}: {shlex.join(words)}", err=True)
    done = subprocess.run(words)  # noqa: S603 - our own interpreter and files
    if done.returncode:
        raise BadInput(f"pip did not install {part}: it ended with exit code {done.returncode}")
