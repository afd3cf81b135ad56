"""BFCL's questions, function documents and accepted answers, and which of them a config selects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import Field

from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Instance
from stepdown.harnesses.bfcl.families import all_families, answers_file, api_family, functions_of, tasks_file
from stepdown.harnesses.bfcl.upstream import backend, package_folder
from stepdown.harnesses.selection import Take, taken

BENCHMARK = "bfcl"

SINGLE_TURN = (
    "simple_python",
    "simple_java",
    "simple_javascript",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
"""Categories with accepted calls, graded by the AST checker."""
RELEVANCE = ("irrelevance", "live_irrelevance", "live_relevance")
"""Single-turn categories without accepted calls: what counts is whether a call was made."""
MULTI_TURN = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")
CATEGORIES = (*SINGLE_TURN, *RELEVANCE, *MULTI_TURN)


class Source(Strict):
    """Which instances a run takes, by category."""

    categories: dict[str, Take] = Field(min_length=1)
    """Per category the first n, `all`, or a list of BFCL's own ids."""


def select(source: Mapping[str, Any]) -> Iterator[Instance]:
    """The instances that `source` names, in BFCL's own order whatever the order of the config.

    Raises BadInput, naming the field, before the first instance is yielded.
    """
    wanted = validated(Source, dict(source), field="source").categories
    for category in wanted:
        if category not in CATEGORIES:
            known = ", ".join(CATEGORIES)
            raise BadInput(f"no such category; there are {known}", field=f"source.categories.{category}")
    chosen = {category: _ids(category, wanted[category]) for category in CATEGORIES if category in wanted}
    return (instance for category, ids in chosen.items() for instance in _instances(category, ids))


def _ids(category: str, wanted: Take) -> frozenset[str]:
    """The ids selected from a category. Raises BadInput for one that is not there, or a count that is too high."""
    there = [entry["id"] for entry in _lines(tasks_file(category))]
    return taken(there, wanted, field=f"source.categories.{category}")


def _instances(category: str, ids: frozenset[str]) -> Iterator[Instance]:
    """The selected instances. A task holds `category`, BFCL's `entry`, and `accepted`, the accepted answers or None."""
    accepted: dict[str, Any] = {}
    if category not in RELEVANCE:
        for answer in _lines(answers_file(category)):
            if answer["id"] in ids:
                accepted[answer["id"]] = answer["ground_truth"]
    for entry in _lines(tasks_file(category)):
        if entry["id"] in ids:
            task = {"category": category, "entry": entry, "accepted": accepted.get(entry["id"])}
            yield Instance(BENCHMARK, entry["id"], task, group=group_of(task))


def group_of(task: Mapping[str, Any]) -> str:
    """The function family of a task; of a multi-turn one, its set of APIs."""
    if task["category"] in MULTI_TURN:
        return api_family(task["entry"])
    known = all_families(_lines, SINGLE_TURN, RELEVANCE)
    functions = functions_of(task["entry"], task["accepted"])
    return known[functions[0]] if functions else ""


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with (package_folder() / "data" / name).open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


@cache
def api_documents(api: str) -> tuple[dict[str, Any], ...]:
    """The function documents of a simulated API. Shared: never change one."""
    return tuple(_lines(f"multi_turn_func_doc/{backend().MULTI_TURN_FUNC_DOC_FILE_MAPPING[api]}"))
