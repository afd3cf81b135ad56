"""What only some of stepdown needs is installed as an extra, and asked for where it is used."""

from __future__ import annotations

from importlib.util import find_spec

from stepdown.builder.errors import BadInput


def require(extra: str, *modules: str, field: str | None = None) -> None:
    """Raises BadInput, naming the extra to install, where one of its modules is not there."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise BadInput(f"this needs {', '.join(missing)}: pip install 'stepdown[{extra}]'", field=field)
