"""BFCL's simulated APIs with a dispatcher of our own: a model's call is a name looked up and literals passed, no code.

Upstream's executor evaluates the call's text and keeps instances in module globals; neither is used here. Results are
rendered as it renders them, with differences that make a result depend on the episode alone: an instance shares nothing
with upstream's modules (long-context scenarios put the module's own dictionaries into it, `post_tweet` hands out its
default lists); where a method reports a set, its words are sorted; and a call that would occupy the host is an error.
A function that is documented but not offered yet is executed, as upstream does.
"""

from __future__ import annotations

import copy
import decimal
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import RLock
from typing import Any

from stepdown.harnesses.bfcl import bounds
from stepdown.harnesses.bfcl.data import api_documents
from stepdown.harnesses.bfcl.upstream import api_class, backend

# What upstream keeps in its modules or libraries, not in the instance: mpmath's precision, which rendering reads too,
# and the weather report of long-context scenarios, which the method fills in and returns. One call at a time.
_SHARED = RLock()
_USES_SHARED = frozenset({"logarithm", "square_root", "get_outside_temperature_from_google"})

# Sets that upstream writes into a message; their order differs between processes.
_SET_IN_BRACES = re.compile(r"(?<=Must be one of )\{[^{}]*\}$")
_SET_AFTER_COLON = "Invalid fields for update: "


@cache
def owners(apis: tuple[str, ...]) -> Mapping[str, str]:
    """The API that answers to each function name: upstream lets the last of several win."""
    return {document["name"]: api for api in apis for document in api_documents(api)}


@cache
def signature(api: str, name: str) -> inspect.Signature:
    """The parameters of an API's function, without `self`."""
    full = inspect.signature(getattr(api_class(api), name))
    return full.replace(parameters=list(full.parameters.values())[1:])


class Simulation:
    """The simulated APIs of one entry, in one state. Not shared between episodes."""

    def __init__(self, apis: Mapping[str, Any]) -> None:
        self.apis = apis
        """The instances by class name. To be looked at, not changed, by others."""
        self._owners = owners(tuple(apis))

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Simulation:
        """The entry's initial state, loaded as upstream loads it."""
        long_context = "long_context" in entry["id"]
        apis = {}
        for name in entry["involved_classes"]:
            api = api_class(name)()
            if name not in backend().STATELESS_CLASSES:
                scenario = entry["initial_config"].get(name, {})
                api._load_scenario(copy.deepcopy(scenario), long_context=long_context)
            apis[name] = api
        return cls(apis).copy()

    def copy(self) -> Simulation:
        """The same state, sharing nothing that can change. Raises RecursionError where the state nests too deep."""
        return Simulation(copy.deepcopy(dict(self.apis)))

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The text of a call's result. Every failure is a text too, as upstream renders it.

        Raises bounds.Overgrown where the state has become larger than any honest use makes it.
        """
        api = self._owners.get(name)
        if api is None:
            return f"Error during execution: name {bounds.excerpt(name)!r} is not defined"
        try:
            bounds.check(api, name, arguments)
            with _as_if_alone(name):
                text = _rendered(getattr(self.apis[api], name)(**_with_own_defaults(api, name, arguments)))
            text = bounds.check_result(_sorted_sets(text))
        except Exception as error:  # whatever a method raises is an observation
            text = f"Error during execution: {error}"
        bounds.check_state(api, self.apis[api])
        return text


def _with_own_defaults(api: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with a fresh copy of every default that a method could keep and change."""
    fresh = {
        parameter.name: copy.copy(parameter.default)
        for parameter in signature(api, name).parameters.values()
        if isinstance(parameter.default, (list, dict, set))
    }
    return {**fresh, **arguments}


@contextmanager
def _as_if_alone(name: str) -> Iterator[None]:
    """Gives a function that uses shared state that state to itself, and puts it back."""
    with ExitStack() as stack:
        if name in _USES_SHARED:
            import mpmath

            stack.enter_context(_SHARED)
            stack.enter_context(decimal.localcontext())
            stack.enter_context(mpmath.workprec(mpmath.mp.prec))
        yield


def _rendered(result: Any) -> str:
    if type(result) is str:
        return result
    if type(result) is not dict:
        return str(result)
    try:
        return json.dumps(result)
    except Exception:  # a result that holds no JSON values, such as a Decimal
        return str(result)


def _sorted_sets(text: str) -> str:
    if text.startswith('{"error": "' + _SET_AFTER_COLON):
        words = json.loads(text)["error"].removeprefix(_SET_AFTER_COLON).split(", ")
        return json.dumps({"error": _SET_AFTER_COLON + ", ".join(sorted(words))})
    if "Must be one of {" not in text:
        return text
    try:
        result = json.loads(text)
        result["error"] = _SET_IN_BRACES.sub(_sorted_braces, result["error"])
        return json.dumps(result)
    except (ValueError, TypeError, KeyError):
        return text


def _sorted_braces(match: re.Match[str]) -> str:
    words: Sequence[str] = sorted(match.group()[1:-1].split(", "))
    return "{" + ", ".join(words) + "}"
