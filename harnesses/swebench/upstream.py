"""The official grader of the package swebench, imported when first needed, and what of it is replaced."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from functools import cache
from typing import Any

from stepdown.builder.common.extras import how_to_install
from stepdown.builder.errors import BadInput


def pinned_version() -> str:
    """The package's version, which names the grader and its log parsers. Raises BadInput where it is not installed."""
    try:
        return importlib.metadata.version("swebench")
    except importlib.metadata.PackageNotFoundError:
        raise _missing() from None


@cache
def log_parsers() -> Mapping[str, Any]:
    """The grader's log parsers by name. Raises BadInput, saying what to install, where the package is missing."""
    try:
        from swebench.harness.log_parsers import PARSER_REGISTRY
    except ImportError as error:
        raise _missing() from error
    parsers: Mapping[str, Any] = PARSER_REGISTRY
    return parsers


@cache
def grader() -> Any:
    """The module of `run_instance`, with two of its habits taken away for the whole process.

    It prints every error, into what may be a pipe of ours; the error is in its log as well. It stops and removes
    containers by calling the `docker` command, which waits for a process that never listens; containers are removed by
    whoever lent it the client.
    """
    log_parsers()
    from swebench.harness import run_evaluation

    run_evaluation.print = lambda *_: None
    run_evaluation.cleanup_container = lambda *_: None
    return run_evaluation


def _missing() -> BadInput:
    return BadInput(f"swebench is not installed: {how_to_install('swebench')}")
