"""What is installed with stepdown beside its code: configs, sample data, pinned requirements."""

from __future__ import annotations

import os
from pathlib import Path

from stepdown.builder.common.text import nearest
from stepdown.builder.errors import BadInput

PACKAGE = Path(__file__).parents[2]
"""The folder of the installed package `stepdown`."""
CONFIGS = PACKAGE / "configs"
PINS = PACKAGE / "requirements"


def bundled_configs() -> list[str]:
    """The names of the configs that come with stepdown."""
    return sorted(file.stem for file in CONFIGS.glob("*.yaml"))


def config_file(named: Path) -> Path:
    """The file that a command's CONFIG means: the file of this name or, where there is none, the bundled config.

    Only a bare name can be a bundled config's: one with neither a folder nor a suffix.

    Raises BadInput where it can be neither.

    >>> config_file(Path("quickstart")).name, str(config_file(Path("my/quickstart")))
    ('quickstart.yaml', 'my/quickstart')
    """
    is_bare = len(named.parts) == 1 and not named.suffix
    if not is_bare or os.path.lexists(named):
        return named
    if named.name not in bundled_configs():
        near = nearest(named.name, bundled_configs())
        meant = f": did you mean {near!r}?" if near else ""
        known = ", ".join(bundled_configs())
        raise BadInput(f"no such file, and no config of this name comes with stepdown{meant} ({known})", file=named)
    return CONFIGS / f"{named.name}.yaml"
