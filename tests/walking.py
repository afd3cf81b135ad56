"""A page gone through from top to bottom, as its reader does: files are written, commands typed, what is said is read.

A block of code is a file: the paragraph before it names it and ends with a colon. A block of text after commands is
what they say, times apart: lines may be left out, and the end of each. Where another machine, or another moment to be
killed at, comes to other figures, the page is walked with `other_figures`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT, stepdown

StandIns = Mapping[str, Callable[[], str]]
"""What is done in place of a command that no test can type, by the command. It returns what was said."""

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+\.\w+)`")


@dataclass(frozen=True)
class Block:
    """A block of a page, and the file that it is."""

    language: str
    text: str
    file: str | None


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page of the repository, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        paragraph = text[: found.start()].rstrip().rpartition("\n\n")[2]
        names = _FILE.findall(paragraph) if paragraph.endswith(":") else []
        is_file = found[1] not in ("sh", "text")
        yield Block(found[1], found[2], names[-1] if is_file and names else None)


def walk(page: str, stand_ins: StandIns, *, other_figures: bool = False) -> None:
    """Go through a page in the working folder."""
    unused, said = set(stand_ins), ""
    for block in blocks(page):
        if block.language == "sh":
            said = ""
            for line in block.text.splitlines():
                command = shlex.join(shlex.split(line, comments=True))
                unused.discard(command)
                said += _typed(line, command, stand_ins)
        elif block.language == "text":
            plain = _without_figures if other_figures else _without_times
            assert _unseen(block.text, said, plain) == [], f"{page} shows what was not said:\n{said}"
        else:
            assert block.file, f"{page}: which file is this?\n{block.text}"
            Path(block.file).write_text(block.text, encoding="utf-8")
    assert unused == set(), f"{page} does not show these"


def _typed(line: str, command: str, stand_ins: StandIns) -> str:
    """What a command says. It must end with 0, or with the exit code that its comment names."""
    if command in stand_ins:
        return stand_ins[command]()
    program, *words = shlex.split(command)
    expected = re.search(r"# exit code (\d)", line)
    if program == "cd":
        os.chdir(words[0])
        return ""
    if program == "stepdown":
        done = stepdown(*words)
        code, said = done.code, done.out + done.err
    else:
        program = sys.executable if program == "python" else program
        run = subprocess.run([program, *words], capture_output=True, text=True, env=environment())
        code, said = run.returncode, run.stdout + run.stderr
    assert code == (int(expected[1]) if expected else 0), f"{command}\n{said}"
    return said


def environment() -> dict[str, str]:
    """In which a process started in any folder imports this checkout's stepdown."""
    return {**os.environ, "PYTHONPATH": str(ROOT / ".install")}


def _unseen(shown: str, said: str, plain: Callable[[str], str]) -> list[str]:
    """The shown lines that no line of what was said begins with, each made plain."""
    lines = [plain(line) for line in said.splitlines()]
    return [line for line in shown.splitlines() if not any(one.startswith(plain(line)) for one in lines)]


def _without_figures(line: str) -> str:
    return re.sub(r"\d+", "0", line).strip()


def _without_times(line: str) -> str:
    return re.sub(r"\d[\d.:]*(?= ?(s|ms|seconds|minutes|min)\b)", "0", line).strip()
