"""What an episode needs of a sandbox, whichever it is: a fresh workspace in which programs run and are ended."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from stepdown.builder.common.text import printable

_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    code: int | None
    """Its exit code; None where it was ended."""
    why: str = ""
    """Why it was ended, where it was."""
    output: bytes = b""
    """What it printed, its middle left out where it is long."""

    def told(self) -> str:
        """In a line: its exit code and the end of what it said."""
        how = self.why or f"exit code {self.code}"
        said = printable(self.output.decode(errors="replace").strip()[-_SHOWN:], _SHOWN)
        return f"{how}: {said}" if said else how


@dataclass(frozen=True, slots=True)
class Names:
    """What things are called where a program runs."""

    workspace: str
    home: str
    temporary: str
    program: str
    """The folder of the program's own files; empty where it has none."""
    python: str
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Names that differ from episode to episode, and how they are spelt to models."""


@dataclass(frozen=True, slots=True)
class Content:
    """Files that are put into a folder: a folder of the user's, then texts and copies of files by name."""

    folder: Path | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, Path] = field(default_factory=dict)


class Program(Protocol):
    """A program that runs."""

    def stop(self) -> None:
        """End it and all that it started; returns when nothing is left of it."""
        ...

    def ended(self) -> Ended | None:
        """How it ended; None while it runs."""
        ...


class ProgramSandbox(Protocol):
    """A sandbox of one episode: a workspace, a home, and what runs in it."""

    names: Names

    def listen(self) -> socket.socket | None:
        """A listening socket that programs in here can reach; None: one of this machine's loopback will do."""
        ...

    def put(self, folder: str, files: Mapping[str, str]) -> None:
        """Put files into the workspace or the home, beside what is there."""
        ...

    def start(self, command: Sequence[str], environment: Mapping[str, str], on_end: Callable[[], None]) -> Program:
        """Start a program in the workspace. `on_end` is called from another thread when it has ended by itself."""
        ...

    def grade(self, command: str, content: Content, transcript: str, seconds: float) -> Ended:
        """Run a grader's shell command in the workspace, as the program left it, apart from all that it left running.

        `{grader}` in it is a folder that holds `content`, `{transcript}` a file with this text.
        """
        ...

    def copied_out(self) -> AbstractContextManager[Path]:
        """The workspace as a folder of this machine. Its content is hostile: links may lead anywhere."""
        ...


class SandboxMaker(Protocol):
    """Makes sandboxes."""

    def open(self, workspace: Content, program: Path | None) -> AbstractContextManager[ProgramSandbox]:
        """A fresh sandbox; nothing of it is left after the block. Raises Technical."""
        ...
