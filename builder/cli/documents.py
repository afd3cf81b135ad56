"""What commands found as one JSON document, for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import Any

import click

from stepdown.builder.common.secrets import SECRETS

as_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


def print_document(value: Any) -> None:
    """Print records as JSON, their fields by name. It is ASCII: nothing in it can rewrite what a terminal shows. A
    figure that does not exist is null: JSON has no NaN.
    """
    click.echo(json.dumps(_plain(value), indent=1, allow_nan=False))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (str, Path)):
        return SECRETS.hidden(str(value))
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
