from __future__ import annotations

import importlib.util
import sys
from typing import Any

import pytest

from stepdown.builder.errors import BadInput
from stepdown.harnesses.base import Harness
from stepdown.harnesses.bfcl import BFCL
from stepdown.harnesses.bfcl.data import CATEGORIES


def chosen(harness: BFCL, **categories: Any) -> list[str]:
    return [instance.id for instance in harness.instances({"categories": categories})]


def test_a_count_takes_the_first_entries(bfcl: BFCL) -> None:
    assert chosen(bfcl, simple_python=2) == ["simple_python_0", "simple_python_1"]


def test_a_list_takes_its_entries_in_the_benchmarks_order(bfcl: BFCL) -> None:
    ids = ["multi_turn_base_7", "multi_turn_base_3"]
    assert chosen(bfcl, multi_turn_base=ids) == ["multi_turn_base_3", "multi_turn_base_7"]


def test_all_takes_every_entry(bfcl: BFCL) -> None:
    assert len(chosen(bfcl, live_relevance="all")) == 16


def test_the_order_of_a_config_does_not_matter(bfcl: BFCL) -> None:
    assert chosen(bfcl, multiple=1, simple_java=1) == chosen(bfcl, simple_java=1, multiple=1)


def test_every_category_has_entries_with_unique_ids(bfcl: BFCL) -> None:
    ids = chosen(bfcl, **dict.fromkeys(CATEGORIES, "all"))
    assert len(ids) == len(set(ids)) == 3641 + 800


@pytest.mark.parametrize(
    ("source", "field", "problem"),
    [
        ({}, "source.categories", "required"),
        ({"categories": {}}, "source.categories", "at least 1"),
        ({"categories": {"simple_pythn": 1}}, "source.categories.simple_pythn", "no such category"),
        ({"categories": {"multiple": 0}}, "source.categories.multiple", "at least 1"),
        ({"categories": {"multiple": True}}, "source.categories.multiple", "count"),
        ({"categories": {"multiple": "some"}}, "source.categories.multiple", "count"),
        ({"categories": {"multiple": 201}}, "source.categories.multiple", "only 200"),
        ({"categories": {"multiple": ["multiple_999"]}}, "source.categories.multiple", "'multiple_999'"),
        ({"categories": {"multiple": ["multiple_1", "multiple_1"]}}, "source.categories.multiple", "twice"),
        ({"categories": {"multiple": []}}, "source.categories.multiple", "list of ids"),
        ({"categories": [1]}, "source.categories", "dictionary"),
        ({"categories": {"multiple": 1}, "split": "x"}, "source.split", "unknown key"),
    ],
)
def test_a_wrong_source_is_one_line_that_names_the_field(
    bfcl: BFCL, source: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(BadInput) as caught:
        list(bfcl.instances(source))
    line = str(caught.value)
    assert line.startswith(f"{field}: ")
    assert problem in line
    assert "\n" not in line


@pytest.mark.parametrize("options", [{"max_steps_per_turn": 0}, {"max_steps_per_turn": "many"}])
def test_a_wrong_option_names_its_field(options: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"^options\.max_steps_per_turn: "):
        BFCL(**options)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^options\.max_step: unknown key: did you mean `max_steps"):
        BFCL(max_step=3)


def test_the_version_names_the_upstream_pin_and_changes_with_an_option() -> None:
    assert "bfcl-eval.2026" in BFCL().version
    assert BFCL().version == BFCL(max_steps_per_turn=20).version != BFCL(max_steps_per_turn=5).version


def test_it_satisfies_the_harness_contract(bfcl: BFCL) -> None:
    harness: Harness = bfcl
    assert (harness.name, harness.multi_step) == ("bfcl", True)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> Any:
        return None if name == "bfcl_eval" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    with pytest.raises(BadInput, match="stepdown install bfcl"):
        BFCL()


def test_no_providers_sdk_is_imported(bfcl: BFCL) -> None:
    assert "bfcl_eval.constants.model_config" not in sys.modules
