"""Numbers in bulk need numpy, which building labels does not: it is asked for where it is used."""

from __future__ import annotations

from importlib.util import find_spec

from builder.errors import BadInput


def require(*modules: str) -> None:
    """Raises BadInput, naming what to install, where one of the modules is not there."""
    for module in modules:
        if find_spec(module) is None:
            raise BadInput(f"this needs {module}: pip install 'stepdown[release]'")
