"""What a reviewer gets for a step: the prefix as it stands in the row, and no model's name."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from stepdown.audit.cases import open_cases
from stepdown.builder.artifacts.queue import NameMask
from stepdown.builder.config.pool import Model
from stepdown.builder.errors import BadInput
from tests import workshop
from tests.conftest import Shop
from tests.provider import Provider


def test_a_case_shows_the_row_and_what_one_tier_lower_answered(shop: Shop, provider: Callable[..., Provider]) -> None:
    assert shop.build(workshop.config(provider().url, [[0, 1, 5]])).code == 0
    rows = shop.read("question_bank.jsonl")
    with open_cases(shop.run) as cases:
        low, mid, high = (cases.read("workshop", "job-0", step) for step in (1, 2, 3))
    assert [list(case.messages) for case in (low, mid, high)] == [row["messages"] for row in rows]
    assert [(case.tier, case.below) for case in (low, mid, high)] == [("low", None), ("mid", "low"), ("high", "mid")]
    assert low.lower == ()
    assert [(one.number, one.verdict.value, one.reason) for one in mid.lower] == [(1, "fail", "a piece is spoilt")]
    assert str(mid.response["content"]).startswith("made 1 with skill 1")
    assert str(mid.lower[0].response["content"]).startswith("spoilt with skill 0")  # type: ignore[index]
    assert (high.id, high.total_steps) == ("workshop/job-0/3", 3)
    assert len({case.prefix_digest for case in (low, mid, high)}) == 3


def test_a_row_that_is_not_there_is_refused(shop: Shop, provider: Callable[..., Provider]) -> None:
    assert shop.build(workshop.config(provider().url, [[0]])).code == 0
    with open_cases(shop.run) as cases:
        for place in (("workshop", "job-0", 2), ("workshop", "job-0", 0), ("workshop", "job-9", 1)):
            with pytest.raises(BadInput, match="no row"):
                cases.read(*place)


def test_names_of_models_are_masked_in_reasons_only_as_whole_words() -> None:
    mask = NameMask([Model(name="v3", model="openai/deepseek-v3"), Model(name="nano", model="openai/gpt-nano-2")])
    assert mask("openai/gpt-nano-2 said no") == "[model] said no"
    assert mask("Deepseek-V3: too long; v3 again, nanometre") == "[model]: too long; [model] again, nanometre"
    assert "deepseek" not in json.dumps(mask("route openai/deepseek-v3/x"))
