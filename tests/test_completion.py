"""The shell completes subcommands, options and files, as README says how to set up."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


def asked(instruction: str, **variables: str) -> list[str]:
    """What the command prints to a shell that asks it."""
    done = subprocess.run(
        [sys.executable, "-m", "stepdown"],
        env={**os.environ, "_STEPDOWN_COMPLETE": instruction, **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("stepdown aud", ["plain,audit"]),
        ("stepdown audit su", ["plain,summary"]),
        ("stepdown build --r", ["plain,--run"]),
        ("stepdown build conf", ["file,conf"]),
    ],
)
def test_what_is_typed_is_completed(line: str, offered: list[str]) -> None:
    assert asked("bash_complete", COMP_WORDS=line, COMP_CWORD=str(line.count(" "))) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_documented_shell_is_printed(shell: str) -> None:
    script = "\n".join(asked(f"{shell}_source"))
    assert f"_STEPDOWN_COMPLETE={shell}_complete" in script
