"""Where somebody else's code broke: the place of an exception in their files, in one line, and its whole traceback."""

from __future__ import annotations

import inspect
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stepdown.builder.common.secrets import SECRETS

LONGEST_TRACEBACK = 8000
"""Characters; of a longer one the beginning and the end are kept."""
TRACEBACK = "Traceback (most recent call last):"
"""How each begins."""
_PROJECT = Path(__file__).resolve().parents[2]
_LIBRARIES = tuple(str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "purelib", "platlib"))
_OURS = frozenset({"builder", "stepdown", "judges"})
"""Folders of this project in which no workload is."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file."""

    file: Path
    line: int

    def __str__(self) -> str:
        """The file's own name, which is the same on every machine, and the line."""
        return f"{self.file.name}:{self.line}"


def place_of(error: BaseException, module: str = "") -> Place | None:
    """Where an exception came from: the innermost line of the module's package, else of anybody's own code.

    None where no such code took part.
    """
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Place(Path(error.filename), error.lineno)
    places = list(_places(error))
    home = _home(module)
    of_module = [place for place in places if home is not None and place.file.is_relative_to(home)]
    own = [place for place in places if not _is_foreign(place.file)]
    return next(reversed(of_module or own), None)


def class_place(made: type) -> Place | None:
    """Where a class is written; None where that is not known."""
    try:
        file = inspect.getsourcefile(made)
        return Place(Path(file), inspect.getsourcelines(made)[1]) if file else None
    except (OSError, TypeError):
        return None


def part_place(made: type, name: str) -> Place | None:
    """Where a part of a class is written; the class itself where that is not known."""
    part = getattr(made, name, None)
    if not callable(part):
        return class_place(made)
    try:
        file = inspect.getsourcefile(inspect.unwrap(part))
        return Place(Path(file), inspect.getsourcelines(part)[1]) if file else class_place(made)
    except (OSError, TypeError):
        return class_place(made)


def said(error: BaseException) -> str:
    """An exception in one line, without keys: its class and its own words.

    >>> said(KeyError("x")), said(RuntimeError())
    ("KeyError: 'x'", 'RuntimeError')
    """
    name = type(error).__name__
    if isinstance(error, SyntaxError):
        return SECRETS.hidden(f"{name}: {error.msg}")
    try:
        words = " ".join(str(error).split())
    except Exception:  # its own words are anybody's code too
        words = ""
    return SECRETS.hidden(f"{name}: {words}") if words else name


def whole_traceback(error: BaseException) -> str:
    """The traceback as Python prints it, without keys, cut in the middle where it is very long."""
    text = SECRETS.hidden("".join(traceback.format_exception(error)).rstrip())
    if not is_traceback(text):  # that of a group, or of a cause that was never raised
        text = f"{TRACEBACK}\n{text}"
    if len(text) <= LONGEST_TRACEBACK:
        return text
    half = LONGEST_TRACEBACK // 2
    return f"{text[:half]}\n...\n{text[-half:]}"


def is_traceback(text: str) -> bool:
    """Whether a text is one of `whole_traceback`."""
    return text.startswith(TRACEBACK)


def _places(error: BaseException) -> Iterator[Place]:
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if not name.startswith("<"):
            yield Place(Path(name).resolve(), line)


def _home(module: str) -> Path | None:
    """The folder of a module's package; the file of one that is in no package."""
    top = module.partition(".")[0]
    is_ours = top == __name__.partition(".")[0]  # one package holds all: there the folder of the module itself
    file = getattr(sys.modules.get(module if is_ours else top), "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    return path.parent if is_ours or path.name == "__init__.py" else path


def _is_foreign(file: Path) -> bool:
    """Whether a file is Python's, an installed library's, or stepdown's own and no workload."""
    if file.is_relative_to(_PROJECT):
        folder, *rest = file.relative_to(_PROJECT).parts
        if folder in _OURS or (folder == "harnesses" and len(rest) == 1):  # the contract, which is no workload
            return True
    return any(file.is_relative_to(library) for library in _LIBRARIES)
