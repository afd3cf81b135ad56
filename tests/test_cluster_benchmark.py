"""The plan of a large cluster on paper keeps to the laws of queues, and its costs are of the head's own code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cluster_plan import MEASURED, HeadMachine, planned, reached
from benchmarks.cost_bank import STEPS
from benchmarks.head_costs import head_figures

demands = st.dictionaries(st.sampled_from("abcd"), st.floats(1e-5, 0.1), min_size=1)


@given(demands, st.floats(0.1, 60), st.integers(1, 300))
def test_no_head_is_faster_than_its_slowest_part_or_than_its_instances(
    busy: dict[str, float], thinking: float, in_hand: int
) -> None:
    found = reached(busy, thinking, in_hand)
    fastest = min(1 / max(busy.values()), in_hand / (thinking + sum(busy.values())))
    assert found.calls_per_second <= fastest * 1.001 + 0.01
    # Balanced job bounds, from below: everybody waits for everybody else at every part.
    slowest = in_hand / (thinking + in_hand * sum(busy.values()))
    assert found.calls_per_second >= slowest * 0.999 - 0.01
    assert all(share <= 1.0001 for share in found.busy.values())


def test_an_instance_alone_waits_for_nobody() -> None:
    found = reached({"disk": 0.25, "network": 0.25}, 1.5, 1)
    assert found.calls_per_second == 0.5
    assert found.added_ms == 500


def test_the_first_bottleneck_is_the_part_that_is_full_first() -> None:
    made = planned(MEASURED, HeadMachine(network_bytes_per_second=1e5), 100, 2000, 10.0)
    assert made["first_bottleneck"]["part"] == "network"
    full = made["full_at_calls_per_second"]
    assert made["first_bottleneck"]["calls_per_second"] == min(full.values()) == full["network"]
    crowd = made["reached"][-1]
    assert crowd["in_hand"] == 20_000
    assert crowd["calls_per_second"] == pytest.approx(full["network"], rel=0.01)
    assert crowd["busy"]["network"] == pytest.approx(1, rel=0.01)


def test_costs_are_those_of_a_real_builds_requests() -> None:
    figures = head_figures(1)
    assert figures.trials > STEPS
    # A look and an answer for each call; a record for each trial; and what an instance asks once.
    assert 2 * figures.calls + figures.trials <= figures.answered <= 2 * figures.calls + figures.trials + 8
    assert set(figures.ms_by_kind) >= {"FindAnswer", "KeepAnswer", "WriteTrial"}
    assert figures.ms_per_call > 0
    assert figures.bytes_stored > 0
