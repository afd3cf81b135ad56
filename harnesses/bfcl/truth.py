"""What a multi-turn instance's accepted calls lead to: per turn their results and the state of the simulated APIs.

It depends on the instance alone, so it is computed once and shared by all episodes, which only compare with it.
"""

from __future__ import annotations

import ast
import copy
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from stepdown.builder.errors import Technical
from stepdown.builder.records import Instance
from stepdown.harnesses.bfcl.decoding import DecodedCall
from stepdown.harnesses.bfcl.simulation import Simulation, owners, signature

_KEPT = 32
"""How many instances are kept: more than are worked on at once."""


@dataclass(frozen=True, slots=True)
class TrueTurn:
    """One turn's accepted calls, their results, and the state after them. Read only."""

    calls: tuple[DecodedCall, ...]
    results: tuple[str, ...]
    apis: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Truth:
    """The turns of one instance."""

    turns: tuple[TrueTurn, ...]
    owners: Mapping[str, str]
    """The API of each function."""

    def completed(self, name: str, arguments: Any) -> tuple[str, str] | None:
        """A call in a form that is equal for equal calls: defaults filled in, keys in order. None for no such call."""
        if name not in self.owners or not isinstance(arguments, dict):
            return None
        defaults = {
            parameter.name: parameter.default
            for parameter in signature(self.owners[name], name).parameters.values()
            if parameter.default is not parameter.empty
        }
        try:
            return name, json.dumps(_plain({**defaults, **arguments}), sort_keys=True)
        except RecursionError:
            return None


def _plain(value: Any) -> Any:
    """The value with 2.0 as 2: a model may write either."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


class Truths:
    """The truths of recently used instances. Safe for threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Mapping[str, Any], Truth]] = OrderedDict()
        self._lock = Lock()

    def of(self, instance: Instance) -> Truth:
        """The truth of a multi-turn instance. Raises Technical where upstream's own calls cannot be read or run."""
        with self._lock:
            known = self._kept.get(instance.id)
            if known is not None and (known[0] is instance.task or known[0] == instance.task):
                self._kept.move_to_end(instance.id)
                return known[1]
        truth = _worked_out(instance)
        with self._lock:
            self._kept[instance.id] = (instance.task, truth)
            self._kept.move_to_end(instance.id)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return truth


def _worked_out(instance: Instance) -> Truth:
    simulation = Simulation.of(instance.task["entry"])
    names = owners(tuple(simulation.apis))
    turns = []
    for texts in instance.task["accepted"]:
        calls = tuple(_read(text, names) for text in texts)
        # A method may keep a list that it is given, and change it later: the calls stay as they were read.
        results = tuple(simulation.call(call.name, copy.deepcopy(call.arguments)) for call in calls)
        turns.append(TrueTurn(calls, results, simulation.copy().apis))
    return Truth(tuple(turns), names)


def _read(text: str, names: Mapping[str, str]) -> DecodedCall:
    """A call that upstream wrote as Python source, read without being evaluated. Raises Technical for anything else."""
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("not a call of a function by its name")
        name = call.func.id
        parameters: Sequence[str] = list(signature(names[name], name).parameters)
        values = dict(zip(parameters, map(ast.literal_eval, call.args), strict=False))
        for keyword in call.keywords:
            if keyword.arg is None:
                raise ValueError("unpacked arguments")
            values[keyword.arg] = ast.literal_eval(keyword.value)
        return DecodedCall(name, json.loads(json.dumps(values)))
    except (ValueError, SyntaxError, KeyError, TypeError) as error:
        raise Technical(f"the accepted call {text[:80]!r} cannot be read: {error}") from None
