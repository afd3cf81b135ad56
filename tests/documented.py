"""The commands that README and docs show: what stands in their `sh` blocks, and what running prose quotes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

PAGES = tuple(
    sorted(
        {
            ROOT / "README.md",
            ROOT / "CONTRIBUTING.md",
            ROOT / "SECURITY.md",
            ROOT / "CHANGELOG.md",
            ROOT / "judges" / "README.md",
            *(ROOT / "docs").rglob("*.md"),
        }
    )
)
WALKED = ("docs/tutorial.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "uses").glob("*.md")))
"""Pages whose commands build on one another: tests/test_walked_pages.py goes through each from top to bottom."""
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_YAML = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_FOLDERS = "audit|benchmarks|builder|configs|data|docs|harnesses|judges|reports|requirements|scoring|stepdown|tests"
_PATH = re.compile(rf"(?<=[`\s])((?:{_FOLDERS})/[\w./-]*[\w/])(?=[`\s])")
_QUOTED = re.compile(r"`(stepdown [^`]+)`")


@dataclass(frozen=True)
class Command:
    """One command line as a page shows it, without its comment."""

    page: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)


@dataclass(frozen=True)
class Example:
    """A block of YAML or Python on a page, and where it begins."""

    page: str
    line: int
    text: str


def commands() -> Iterator[Command]:
    """The lines of every `sh` block of every page, in order."""
    for page in PAGES:
        for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                if words := shlex.split(line, comments=True):
                    yield Command(name(page), shlex.join(words).replace("'>'", ">"))


def examples() -> Iterator[Example]:
    """The YAML blocks of every page, in order."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in _YAML.finditer(text):
            yield Example(name(page), text.count("\n", 0, block.start()) + 1, block[1])


def programs() -> Iterator[Example]:
    """The Python blocks of every page, in order."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in _PYTHON.finditer(text):
            yield Example(name(page), text.count("\n", 0, block.start()) + 1, block[1])


def quoted() -> Iterator[Command]:
    """The calls of the command that the prose of the pages quotes."""
    for page in PAGES:
        for text in _QUOTED.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
            yield Command(name(page), " ".join(text.split()))


def paths() -> Iterator[tuple[str, Path]]:
    """The files and folders of the repository that the prose of the pages names: page and place."""
    for page in PAGES:
        for path in _PATH.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
            yield name(page), ROOT / path


def links() -> Iterator[tuple[str, Path, str]]:
    """Every link of a page to another file of the repository: page, target, anchor."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", _FENCED.sub("", page.read_text(encoding="utf-8"))):
            if "://" not in target:
                file, _, anchor = target.partition("#")
                yield name(page), (page.parent / file).resolve() if file else page, anchor


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))
