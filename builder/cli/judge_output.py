"""What the judge commands print. Answers and reports are foreign text: no control character reaches a terminal."""

from __future__ import annotations

from collections.abc import Iterable

import click

from stepdown.builder.common.text import printable


def print_lines(lines: Iterable[str]) -> None:
    """Print each line."""
    for line in lines:
        click.echo(printable(line, longest=2000))
