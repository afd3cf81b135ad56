"""Finds workloads by name: plug-ins, which any installed package may bring, and classes of one's own.

A plug-in is an entry point in the group `stepdown.harnesses`: its name is the benchmark's, its value `module:Class`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from inspect import Parameter, signature
from pathlib import Path
from types import FunctionType
from typing import Any

from stepdown.builder.common.faults import Place, class_place, place_of, said
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.harnesses.base import Harness, Terms
from stepdown.harnesses.own_code import load_own, shown, told_where

GROUP = "stepdown.harnesses"


def installed() -> Mapping[str, tuple[str, ...]]:
    """The installed workloads by name, in order, each as `module:Class`: two where two packages claim one name."""
    found: dict[str, dict[str, None]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        found.setdefault(point.name, {})[point.value] = None
    return {name: tuple(values) for name, values in found.items()}


def harness_class(name: str, folder: Path | None = None) -> type[Harness]:
    """The class of an installed workload, or of one's own. Raises BadInput, with file and line where its code breaks,
    and where two packages install a workload of this name.

    Loading it runs its code. One's own is looked for in `folder`, the config's, first: see `own_code`.
    """
    if ":" in name:
        return _load(name, name, folder)
    plug_ins = installed()
    if name not in plug_ins:
        meant = "".join(f"did you mean {near!r}? " for near in get_close_matches(name, plug_ins, n=1))
        known = ", ".join(plug_ins) or "none"
        raise BadInput(f"no such workload {name!r}: {meant}installed are {known}; or `module:Class` of your own")
    if len(plug_ins[name]) > 1:
        raise BadInput(f"two packages install a workload {name!r}: {' and '.join(plug_ins[name])}; uninstall one")
    return _load(name, plug_ins[name][0])


def facts_of(benchmark: str) -> type[Harness]:
    """The class to ask for a workload's own facts: where none of this name is installed, one that knows nothing.

    Raises BadInput where it is installed and broken.
    """
    return harness_class(benchmark) if benchmark in installed() else Harness


def _load(name: str, place: str, folder: Path | None = None) -> type[Harness]:
    module, _, attribute = place.partition(":")
    if not attribute or not all(part.isidentifier() for part in module.split(".")):
        raise BadInput(f"{name!r} is no workload: `module:Class` is needed")
    try:
        found = load_own(module, folder) if ":" in name else importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever a module of anybody's raises
        raise _broken(f"{name!r} can not be loaded: {_words(error)}", place_of(error, module)) from None
    try:
        made = getattr(found, attribute)
    except AttributeError:
        near = get_close_matches(attribute, vars(found), n=1)
        meant = f": did you mean {near[0]!r}?" if near else ""
        raise BadInput(f"module {module!r} has no class {attribute!r}{meant} {told_where(found, folder)}") from None
    if not isinstance(made, type) or not issubclass(made, Harness):
        problem = f"{name!r} is no workload: it is no class made of `stepdown.Harness`"
        raise BadInput(f"{problem} {told_where(found, folder)}")
    if lacking := ", ".join(f"`{part}`" for part in sorted(made.__abstractmethods__)):
        raise _broken(f"{name!r} is no workload yet: it has no {lacking}", class_place(made))
    return made


def make_harness(made: type[Harness], options: Mapping[str, Any]) -> Harness:
    """A harness of a class, checked as far as it can be before it is used. Raises BadInput, with the line of its code
    that broke or is wrong.
    """
    try:
        harness = made(**options)
    except StepdownError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, TypeError) and error.__traceback__ and error.__traceback__.tb_next is None:
            raise BadInput(f"options: {error}{_meant(made, error, options)}") from None  # no line of its own was run
        problem = f"{made.__qualname__} can not be made: {said(error)}{_meant(made, error, options)}"
        raise _broken(problem, place_of(error, made.__module__)) from None
    for part in ("name", "version"):
        _check_text(harness, part)
    harness.refuse_misspelt(vars(harness))
    return harness


def own_facts(harness: Harness) -> dict[str, Any]:
    """What a workload says of itself, as JSON: terms, and known limits where it has some. Raises BadInput."""
    made, terms, limits = type(harness), harness.terms, harness.known_limits
    if not isinstance(terms, Terms) or not all(isinstance(word, str) for word in terms):
        raise _broken(f"{made.__qualname__}: `terms` must be stepdown.Terms(license, note)", class_place(made))
    if isinstance(limits, str) or not all(isinstance(sentence, str) for sentence in limits):
        raise _broken(f"{made.__qualname__}: `known_limits` must be a tuple of sentences", class_place(made))
    return {"terms": terms._asdict(), **({"known_limits": list(limits)} if limits else {})}


def _meant(made: type[Harness], error: BaseException, options: Mapping[str, Any]) -> str:
    """Which option was meant by one that the class, or a class it derives from, does not take; empty: another error."""
    unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error)) if isinstance(error, TypeError) else None
    if unknown is None or unknown[1] not in options:
        return ""
    known = _options(made) - options.keys()
    near = get_close_matches(unknown[1], known, n=1)
    return f": did you mean `{near[0]}`?" if near else f" (options are {', '.join(sorted(known))})" if known else ""


def _options(made: type[Harness]) -> set[str]:
    """What a class and those it derives from can be made with."""
    named = {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    found: set[str] = set()
    for base in made.__mro__:
        if isinstance(init := vars(base).get("__init__"), FunctionType):
            found |= {one.name for one in list(signature(init).parameters.values())[1:] if one.kind in named}
    return found


def _check_text(harness: Harness, part: str) -> None:
    made = type(harness)
    try:
        value = getattr(harness, part, None)
    except (Exception, SystemExit) as error:  # a property is code too
        problem = f"{made.__qualname__}: `{part}` raised {said(error)}"
        raise _broken(problem, place_of(error, made.__module__)) from None
    if not isinstance(value, str):
        raise _broken(f"{made.__qualname__} has no `{part}`, a text", class_place(made))


def _words(error: BaseException) -> str:
    """An import's error: its text alone where the class of the error says no more."""
    return str(error) if isinstance(error, BadInput | ImportError) and str(error) else said(error)


def _broken(problem: str, place: Place | None) -> BadInput:
    """The error, at the line of somebody's code where there is one."""
    return BadInput(problem) if place is None else BadInput(problem, file=shown(place.file), line=place.line)
