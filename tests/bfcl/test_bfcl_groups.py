"""Groups of BFCL tasks: what shares a function that has to be called is held out together."""

from __future__ import annotations

from collections import Counter

import pytest

from stepdown.builder.common.text import is_id
from stepdown.harnesses.bfcl.data import CATEGORIES, MULTI_TURN, RELEVANCE, SINGLE_TURN, select
from stepdown.harnesses.bfcl.families import functions_of


@pytest.fixture(scope="module")
def groups() -> dict[str, dict[str, str]]:
    """The group of every task, by category."""
    found: dict[str, dict[str, str]] = {category: {} for category in CATEGORIES}
    for instance in select({"categories": dict.fromkeys(CATEGORIES, "all")}):
        found[instance.task["category"]][instance.id] = instance.group
    return found


def test_a_task_without_a_group_offers_no_function() -> None:
    tasks = list(select({"categories": dict.fromkeys(CATEGORIES, "all")}))
    assert all(is_id(task.group) or not task.task["entry"]["function"] for task in tasks)


def test_there_are_many_groups_and_no_group_has_a_tenth_of_all_single_turn_tasks(
    groups: dict[str, dict[str, str]],
) -> None:
    counts = Counter(group for category in (*SINGLE_TURN, *RELEVANCE) for group in groups[category].values())
    assert len(counts) > 1000
    assert max(counts.values()) < counts.total() / 10


def test_two_single_turn_tasks_that_call_one_function_are_of_one_group(groups: dict[str, dict[str, str]]) -> None:
    seen: dict[str, str] = {}
    for instance in select({"categories": dict.fromkeys(SINGLE_TURN, "all")}):
        for function in functions_of(instance.task["entry"], instance.task["accepted"]):
            assert seen.setdefault(function, instance.group) == instance.group


def test_a_group_does_not_depend_on_what_is_selected(groups: dict[str, dict[str, str]]) -> None:
    few = select({"categories": {"live_multiple": 3, "parallel": 2, "multi_turn_base": 2}})
    assert all(instance.group == groups[instance.task["category"]][instance.id] for instance in few)


def test_variants_of_one_multi_turn_task_are_of_one_group(groups: dict[str, dict[str, str]]) -> None:
    base, *others = MULTI_TURN
    for category in others:
        for name, group in groups[category].items():
            assert groups[base][name.replace(category, base)] == group
