"""What only some of stepdown needs is installed as an extra, and asked for where it is used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from stepdown.builder.common.bundled import PINS
from stepdown.builder.errors import BadInput


class Part(NamedTuple):
    """What `stepdown install` knows of a part."""

    files: list[str]
    """Of its pins, in the folder of `parts.json`."""
    brings: str


@cache
def parts() -> Mapping[str, Part]:
    """The extras that are installed by `stepdown install`. What some of their packages declare is gigabytes that
    stepdown does not use: they are installed without it, which pip does not do for an extra.
    """
    listed = json.loads((PINS / "parts.json").read_text(encoding="utf-8"))
    return {name: Part(**part) for name, part in listed.items()}


def require(extra: str, *modules: str, field: str | None = None) -> None:
    """Raises BadInput, naming the extra to install, where one of its modules is not there."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise BadInput(f"this needs {', '.join(missing)}: {how_to_install(extra)}", field=field)


def how_to_install(extra: str) -> str:
    """The command that installs an extra.

    >>> how_to_install("local"), how_to_install("release")
    ('stepdown install local', "pip install 'stepdown[release]'")
    """
    return f"stepdown install {extra}" if extra in parts() else f"pip install 'stepdown[{extra}]'"


def pinned_files(extra: str) -> list[Path]:
    """The requirement files, exact and hashed, that install an extra. Raises BadInput where it has none."""
    if extra not in parts():
        raise BadInput(f"no such part {extra!r}: {', '.join(parts())}")
    return [PINS / name for name in parts()[extra].files]


def require_package(package: str, how: str | None = None) -> None:
    """Raises BadInput, saying `how` to install it, where a package is not there: one that no extra of stepdown has."""
    if find_spec(package) is None:
        raise BadInput(f"this needs {package}: {how or f'pip install {package}'}")
