"""Finds workloads by name: plug-ins, which any installed package may bring, and classes of one's own.

A plug-in is an entry point in the group `stepdown.harnesses`: its name is the benchmark's, its value `module:Class`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from stepdown.builder.errors import BadInput
from stepdown.harnesses.base import Harness

GROUP = "stepdown.harnesses"


def installed() -> Mapping[str, EntryPoint]:
    """The installed workloads by name, in order. Raises BadInput where two packages give one name to different ones."""
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        before = found.setdefault(point.name, point)
        if before.value != point.value:
            raise BadInput(f"two packages install a workload {point.name!r}: {before.value} and {point.value}")
    return found


def harness_class(name: str) -> type[Harness]:
    """The class of an installed workload, or of one's own. Raises BadInput. Loading it runs its code."""
    if ":" in name:
        if (here := str(Path.cwd())) not in sys.path:
            sys.path.append(here)  # it may lie in the folder one works in
        return _load(name, name)
    plug_ins = installed()
    if name not in plug_ins:
        meant = "".join(f"did you mean {near!r}? " for near in get_close_matches(name, plug_ins, n=1))
        known = ", ".join(plug_ins) or "none"
        raise BadInput(f"no such workload {name!r}: {meant}installed are {known}; or `module:Class` of your own")
    return _load(name, plug_ins[name].value)


def facts_of(benchmark: str) -> type[Harness]:
    """The class to ask for a workload's own facts: where none of this name is installed, one that knows nothing.

    Raises BadInput where it is installed and broken.
    """
    return harness_class(benchmark) if benchmark in installed() else Harness


def _load(name: str, place: str) -> type[Harness]:
    module, _, attribute = place.partition(":")
    if not module or not attribute:
        raise BadInput(f"{name!r} is no workload: `module:Class` is needed")
    try:
        made = getattr(importlib.import_module(module), attribute)
    except (BadInput, ImportError) as error:
        raise BadInput(f"{name!r} can not be loaded: {error}") from None
    except AttributeError:
        raise BadInput(f"module {module!r} has no class {attribute!r}") from None
    if not isinstance(made, type) or not issubclass(made, Harness):
        raise BadInput(f"{name!r} is no workload: it is no class made of `stepdown.Harness`")
    if lacking := ", ".join(f"`{part}`" for part in sorted(made.__abstractmethods__)):
        raise BadInput(f"{name!r} is no workload yet: it has no {lacking}")
    return made
