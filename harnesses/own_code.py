"""Modules of somebody's own: looked for beside the config, then where one works, then among what is installed.

Only the module that a config names is taken from such a folder before an installed one of its name. What it imports
itself comes from there last, so that a file beside a config never stands in for a library; and a module of Python's
own name, or of stepdown's, is never replaced.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

from stepdown.builder.errors import BadInput

_RESERVED = sys.stdlib_module_names | {__name__.partition(".")[0]}


@dataclass(frozen=True, slots=True)
class OwnModule:
    """A module's file in a folder of somebody's own."""

    file: Path
    folder: Path
    """What its dotted name begins in."""

    @property
    def top(self) -> str:
        """The first part of its dotted name."""
        return self.file.relative_to(self.folder).parts[0].removesuffix(".py")

    @property
    def is_passed_over(self) -> bool:
        """Whether Python or stepdown has a module of this name, which is loaded in its place."""
        return self.top in _RESERVED


def find_own(module: str, folder: Path | None) -> OwnModule | None:
    """The module's file beside the config, whose `folder` it is, else where one works; None: it is in neither."""
    *packages, last = module.split(".")
    if not all(part.isidentifier() for part in (*packages, last)):
        return None
    for home in _folders(folder):
        place = home.joinpath(*packages)
        for file in (place / last / "__init__.py", place / f"{last}.py"):
            if file.is_file():
                return OwnModule(file, home)
    return None


def load_own(module: str, folder: Path | None) -> ModuleType:
    """The module, its code run. Raises BadInput where another one of its name is loaded, ImportError where there is
    none, and whatever its code raises.
    """
    own = find_own(module, folder)
    for home in [own.folder] if own else _folders(folder):
        if str(home) not in sys.path:
            sys.path.append(str(home))
    if own is not None and not own.is_passed_over:
        _load_top(module.partition(".")[0], own)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it is there, and imports something that is not
        places = ", ".join(str(home) for home in _folders(folder))
        raise ModuleNotFoundError(f"{error}: looked for in {places}, and among what is installed") from None


def told_of(module: str, folder: Path | None) -> str:
    """Where a module would be loaded from, in a few words, without loading it; empty where that is not known."""
    own = find_own(module, folder)
    top = module.partition(".")[0]
    if own is None:
        return ""
    installed = _installed(top, own.folder)
    if own.is_passed_over:
        return f"{installed or top}, and not {shown(own.file)}: its name is taken"
    return f"{shown(own.file)}{f', and not the installed {installed}' if installed else ''}"


def told_where(module: ModuleType, folder: Path | None) -> str:
    """Which file a loaded module is, and which file of somebody's own was passed over for it."""
    own = find_own(module.__name__, folder)
    place = getattr(module, "__file__", None)
    file = shown(Path(place)) if place else "built in"
    passed = f"; {shown(own.file)} is not loaded: give it another name" if own and own.is_passed_over else ""
    return f"({file}{passed})"


def shown(file: Path) -> str:
    """A file as seen from where one works, where it lies there."""
    here = Path.cwd()
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)


def _folders(folder: Path | None) -> Sequence[Path]:
    """Folders of somebody's own, in the order in which a module is looked for."""
    return list(dict.fromkeys([*([folder] if folder else []), Path.cwd()]))


def _load_top(top: str, own: OwnModule) -> None:
    """Load what a dotted name begins with, unless it is loaded. Raises BadInput where what is loaded is another one."""
    loaded = sys.modules.get(top)
    if loaded is not None:
        if own.folder.resolve() not in _homes(loaded):
            other = getattr(loaded, "__file__", None) or "built in"
            problem = f"another module {top!r} is loaded already, {other}: give {shown(own.file)} another name"
            raise BadInput(problem)
        return
    spec = PathFinder.find_spec(top, [str(own.folder)])
    if spec is None or spec.loader is None:
        raise ImportError(f"no module {top!r} in {own.folder}")
    sys.modules[top] = made = module_from_spec(spec)
    try:
        spec.loader.exec_module(made)
    except BaseException:
        sys.modules.pop(top, None)
        raise


def _homes(module: ModuleType) -> set[Path]:
    """The folders that a top-level module lies in: one, but for a package without a file of its own."""
    packages = [Path(path).resolve().parent for path in getattr(module, "__path__", ())]
    file = getattr(module, "__file__", None)
    return set(packages) or ({Path(file).resolve().parent} if file else set())


def _installed(top: str, folder: Path) -> str:
    """The file of another module of this name, which lies on Python's own path; empty: there is none."""
    known = sys.modules.get(top)
    elsewhere = [path for path in sys.path if path and Path(path).resolve() != folder.resolve()]
    spec = PathFinder.find_spec(top, elsewhere)
    found = spec.origin if spec else getattr(known, "__file__", None)
    return str(found) if found and _home_of(Path(found).resolve()) != folder.resolve() else ""


def _home_of(file: Path) -> Path:
    """The folder that a top-level module lies in, a package's being the one above its own."""
    return file.parent.parent if file.name == "__init__.py" else file.parent
