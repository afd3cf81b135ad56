"""What the judge commands print. Answers and reports are foreign text: no control character reaches a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from stepdown.builder.common.text import printable


def print_lines(lines: Iterable[str]) -> None:
    """Print each line."""
    for line in lines:
        click.echo(printable(line, longest=2000))


def print_json(value: dict[str, Any]) -> None:
    """Print JSON; ASCII only, so that nothing in it moves a cursor."""
    click.echo(json.dumps(value, indent=1))
