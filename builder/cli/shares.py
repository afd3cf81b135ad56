"""An option that is a share of something."""

from __future__ import annotations

import math
from typing import Any

import click


class ShareOption(click.FloatRange):
    """A number from 0 to 1; 1 left out where `max_open`."""

    def __init__(self, max_open: bool = False) -> None:
        super().__init__(0, 1, max_open=max_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        share = float(super().convert(value, param, ctx))
        if math.isnan(share):  # it is not below 0 and not above 1
            self.fail(f"{value!r} is not a number", param, ctx)
        return share
