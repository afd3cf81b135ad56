"""Which BFCL tasks an honest evaluation holds out together: those that have a function in common.

Single-turn tasks belong together where their accepted calls share a function, directly or through other tasks, over all
of upstream's categories; distractors do not count, since they are shared by nearly all. A task without accepted calls
goes with its first function. Multi-turn tasks offer whole APIs, and nearly all would be one group: they belong together
where they offer the same set, which the four multi-turn categories vary alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

Lines = Callable[[str], Iterator[dict[str, Any]]]


def api_family(entry: Mapping[str, Any]) -> str:
    """The family of a multi-turn task.

    >>> api_family({"involved_classes": ["TwitterAPI", "MathAPI"]})
    'MathAPI+TwitterAPI'
    """
    return "+".join(sorted(entry["involved_classes"]))


def functions_of(entry: Mapping[str, Any], accepted: Iterable[Mapping[str, Any]] | None) -> list[str]:
    """The functions that a single-turn task is about: those of its accepted calls, else the first that it offers.

    >>> functions_of({"function": [{"name": "f"}, {"name": "g"}]}, [{"g": {}}])
    ['g']
    >>> functions_of({"function": [{"name": "f"}, {"name": "g"}]}, None)
    ['f']
    """
    called = sorted({name for call in accepted or () for name in call})
    return called or [function["name"] for function in entry["function"][:1]]


def families(tasks: Iterable[list[str]]) -> dict[str, str]:
    """The family of each function, named by its first one: functions of one task are of one family.

    >>> families([["b", "a"], ["c"], ["b", "d"]])
    {'b': 'a', 'a': 'a', 'c': 'c', 'd': 'a'}
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for functions in tasks:
        for name in functions:
            first, second = root(functions[0]), root(name)
            parent[max(first, second)] = min(first, second)
    return {name: root(name) for name in parent}


@cache
def all_families(lines: Lines, single_turn: tuple[str, ...], others: tuple[str, ...]) -> Mapping[str, str]:
    """Families over all of upstream's single-turn categories: the same whatever a run selects.

    `lines` reads a file of upstream's data; categories in `others` have no accepted calls.
    """

    def tasks() -> Iterator[list[str]]:
        for category in single_turn:
            accepted = {answer["id"]: answer["ground_truth"] for answer in lines(answers_file(category))}
            for entry in lines(tasks_file(category)):
                yield functions_of(entry, accepted.get(entry["id"]))
        for category in others:
            for entry in lines(tasks_file(category)):
                yield functions_of(entry, None)

    return families(tasks())


def tasks_file(category: str) -> str:
    return f"BFCL_v4_{category}.json"


def answers_file(category: str) -> str:
    return f"possible_answer/{tasks_file(category)}"
