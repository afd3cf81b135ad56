"""Limits on a model's calls of the simulated APIs, so that no call computes for ever or fills the host's memory.

What could: `power` and `round_number` on integers; `logarithm` and `square_root` with a high precision or on text
(mpmath parses 1e1000000000 digit by digit); and directories of the file system, which `cp` and `mv` share or put into
themselves, so that `find`, `du` and comparisons walk exponentially many paths, or endless ones. Nothing in the eight
classes evaluates text, opens a file or reaches the network. Web search and memory, which do, are no categories here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

LIMITS = {
    "calls": 128,  # that one response may have executed; the longest accepted turn has 34
    "arguments": 65_536,  # characters of one call's arguments; the longest accepted call has 6,839
    "depth": 32,  # of nesting in one call's arguments
    "precision": 1_000,  # digits
    "result_bits": 20_000,  # of an integer power; upstream cannot print more than 4,300 digits
    "result": 1_000_000,  # characters; the longest accepted one has 31,706
    "paths": 2_000,  # files and directories, counted once per path that leads to them; scenarios have up to 124
    "path_depth": 32,
    "path_characters": 4_000_000,  # of paths and contents, counted likewise; scenarios have up to 20,000
}
_PLAIN_NUMBER = re.compile(r"[+-]?\d{1,300}(\.\d{1,300})?", re.ASCII)


class Overgrown(Exception):
    """The simulated state is larger than any honest use makes it."""


def excerpt(text: str) -> str:
    """A name shortened so that it is safe to quote."""
    return text if len(text) <= 80 else text[:80] + "…"


def check(api: str, name: str, arguments: Mapping[str, Any]) -> None:
    """Raises ValueError or OverflowError for arguments that a call must not be given."""
    for value in arguments.values():
        _check_value(value, LIMITS["depth"])
    if len(json.dumps(dict(arguments))) > LIMITS["arguments"]:
        raise ValueError("the arguments are too large")
    if api == "MathAPI":
        _check_math(name, arguments)


def _check_value(value: Any, depth: int) -> None:
    if depth == 0:
        raise ValueError("the arguments nest too deep")
    if isinstance(value, float) and not math.isfinite(value):
        # Upstream writes the call as source text, where these are names that do not exist.
        raise ValueError(f"name {str(value).lstrip('-')!r} is not defined")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_value(item, depth - 1)


def _check_math(name: str, arguments: Mapping[str, Any]) -> None:
    if name in ("logarithm", "square_root"):
        for key, value in arguments.items():
            if isinstance(value, str) and not _PLAIN_NUMBER.fullmatch(value):
                raise ValueError(f"{key} must be a number")
        _check_size(arguments.get("precision"), LIMITS["precision"])
    if name == "round_number":
        _check_size(arguments.get("decimal_places"), LIMITS["precision"])
    if name == "power":
        base, exponent = arguments.get("base"), arguments.get("exponent")
        if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1 and exponent > 0:
            _check_size(exponent * abs(base).bit_length(), LIMITS["result_bits"])


def _check_size(value: Any, limit: int) -> None:
    """Raises OverflowError for a number, or a text that is read as one, that is too large or too small."""
    try:
        size = abs(float(value))
    except (TypeError, ValueError):
        return
    if size > limit:
        raise OverflowError("the result is too large to be computed")


def check_result(text: str) -> str:
    """The text of a result. Raises ValueError where it is too long to be shown."""
    if len(text) > LIMITS["result"]:
        raise ValueError("the result is too large")
    return text


def check_state(api: str, instance: Any) -> None:
    """Raises Overgrown for a file system with too many, too deep or endless paths, or too much text."""
    if api == "GorillaFileSystem":
        _walk(instance.root, 0, LIMITS["path_depth"], [LIMITS["paths"], LIMITS["path_characters"]])


def _walk(directory: Any, above: int, depth: int, left: list[int]) -> None:
    """Subtract every path below a directory from the budget that is left. Its own path has `above` characters."""
    if depth == 0:
        raise Overgrown("the simulated directories nest too deep")
    for name, item in directory.contents.items():
        path = above + len(name) + 1
        left[0] -= 1
        left[1] -= path
        if hasattr(item, "contents"):
            _walk(item, path, depth - 1, left)
        elif isinstance(item.content, str):
            left[1] -= len(item.content)
        if min(left) < 0:
            raise Overgrown("the simulated file system is too large")
