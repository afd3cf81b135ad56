"""Where a run stands is seen at a glance: what is held back is grouped by reason, in the checker's own words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import stepdown as page
from tests.conftest import Shop, stepdown
from tests.provider import FAULTS, Provider
from tests.workshop import ABILITIES, config

Start = Callable[..., Provider]


def told(shop: Shop) -> list[str]:
    result = stepdown("status", str(shop.run))
    assert result.code == 0, result.err
    return result.out.splitlines()


def test_an_outage_is_one_line_for_its_reason_before_all_else(shop: Shop, provider: Start) -> None:
    one = provider({**ABILITIES, "novice": lambda request: FAULTS["server_503"]})
    assert shop.build(config(one.url, [[0]] * 6)).code == 3
    lines = told(shop)
    assert lines[1] == "instances: 0 open, 0 done, 6 blocked, 0 dropped"
    assert lines[2].startswith("blocked: 6 of workshop; a resume tries again: ")
    assert "novice" in lines[2]
    assert lines[3] == "  workshop/job-0, workshop/job-1, workshop/job-2 and 3 more"
    assert [line for line in lines if "blocked: " in line] == [lines[2]]


def test_dropped_instances_stand_with_the_checker_s_own_words(shop: Shop, provider: Start) -> None:
    assert shop.build(config(provider().url, [[99], [0], [99], [99]])).code == 0
    lines = told(shop)
    at = lines.index("dropped: 3 of workshop: no seed passed: fail")
    assert lines[at + 1 : at + 3] == [
        "  workshop/job-0, workshop/job-2, workshop/job-3",
        "  3 of them: a piece is spoilt",
    ]


@pytest.mark.parametrize(
    ("reasons", "sizes"),
    [
        (["step 3 took 12.5 s", "step 14 took 3 s"], [2]),
        (["recorded 'a', now 'b'", "recorded 'c', now 'd'"], [2]),
        (["dead", "down", "dead"], [2, 1]),
    ],
)
def test_reasons_that_differ_only_in_numbers_and_quotes_are_one(
    shop: Shop, provider: Start, reasons: list[str], sizes: list[int]
) -> None:
    shop.build(config(provider().url, [[99]] * len(reasons)))
    status = page.open_run(shop.run).status()
    held = tuple(replace(one, reason=reason) for one, reason in zip(status.held_back, reasons, strict=True))
    groups = replace(status, held_back=held).held_back_groups
    assert [len(group.instances) for group in groups] == sizes
    assert groups[0].reason == reasons[0]
