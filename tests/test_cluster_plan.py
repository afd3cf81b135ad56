"""What a run takes on so many nodes: the plan's arithmetic, and a pace that is read from an earlier run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.config.operation import Endpoint, OperationConfig
from stepdown.builder.estimate.arithmetic import Work
from stepdown.builder.estimate.cluster_plan import HOUR, ClusterSize, plan_cluster
from stepdown.builder.estimate.pace import PAUSED, Pace
from stepdown.builder.estimate.run_estimate import CaseWork, ModelEstimate, RunEstimate, WorkloadAssumptions
from stepdown.builder.run.spent import Spent
from stepdown.harnesses.base import NodeNeeds
from tests import workshop
from tests.conftest import Result, Shop, stepdown
from tests.test_estimate import SKILLED, Start, settings

PACE = Pace(10.0, 60.0, "said")


def estimate_of(instances: list[Work]) -> RunEstimate:
    """An estimate in which every case is these instances."""
    work = CaseWork()
    for one in instances:
        work.add(one)
    spent = Spent(round(work.total.calls), work.total.calls * 0.01)
    model = ModelEstimate("high", "master", spent, spent, spent, None)
    workload = WorkloadAssumptions("w", len(instances), 1, 0, {}, None, [1.0], False, 0.0, 7, 0.5)
    return RunEstimate((workload,), (model,), Spent(), (work, work, work), {})


def scheduled(seconds: list[float], places: int) -> float:
    """When the last instance ends, each free place taking the next."""
    free = [0.0] * places
    for each in seconds:
        free[free.index(min(free))] += each
    return max(free)


works = st.lists(st.builds(Work, st.integers(1, 300), st.integers(0, 50)), min_size=1, max_size=40)


@given(works, st.integers(1, 9), st.integers(1, 5))
def test_no_order_of_instances_takes_longer_than_the_plan(instances: list[Work], nodes: int, per_node: int) -> None:
    longest = max(instances, key=lambda work: work.calls)
    alike = [Work(work.calls, work.calls / longest.calls * longest.executions) for work in instances]
    plan = plan_cluster(estimate_of(alike), OperationConfig(), ClusterSize(nodes, per_node), PACE)
    taken = [work.calls * PACE.call + work.executions * PACE.execution for work in alike]
    real = scheduled(taken, plan.in_hand)
    planned = plan.cases["expected"].hours * HOUR
    assert real <= planned + 1e-6
    assert planned <= 2 * real + 1e-6, "the bound is at most twice what the best order takes"


def test_one_node_with_one_instance_in_hand_takes_the_sum() -> None:
    plan = plan_cluster(estimate_of([Work(3, 2), Work(5, 1)]), OperationConfig(), ClusterSize(1, 1), PACE)
    assert plan.cases["worst"].hours * HOUR == pytest.approx(8 * 10 + 3 * 60)
    assert plan.cases["worst"].node_hours == pytest.approx(plan.cases["worst"].hours)


def test_more_nodes_than_instances_help_nobody() -> None:
    instances = [Work(10, 1)] * 3
    few, many = (
        plan_cluster(estimate_of(instances), OperationConfig(), ClusterSize(nodes, 4), PACE) for nodes in (1, 50)
    )
    assert few.in_hand == many.in_hand == 3
    assert few.cases["best"].hours == many.cases["best"].hours
    assert many.cases["best"].node_hours == pytest.approx(50 * few.cases["best"].node_hours)


def test_a_providers_limit_may_be_what_a_run_waits_for() -> None:
    limited = OperationConfig(endpoints={"master": Endpoint(requests_per_minute=6)})
    plan = plan_cluster(estimate_of([Work(600, 0)] * 10), limited, ClusterSize(10, 1), PACE)
    case = plan.cases["expected"]
    assert case.limited_by == "master"
    assert case.hours == pytest.approx(6000 / 6 / 60)
    assert case.calls_per_second == pytest.approx(0.1)


def test_a_node_holds_all_images_or_those_of_its_share() -> None:
    (images,) = plan_cluster(estimate_of([Work(1, 1)] * 7), OperationConfig(), ClusterSize(3, 1), PACE).images
    assert (images.images, images.gib, images.share, images.share_gib) == (7, 3.5, 3, 1.5)
    (said,) = plan_cluster(estimate_of([Work(1, 1)]), OperationConfig(), ClusterSize(3, 1), PACE, image_gib=2.0).images
    assert said.gib == 14.0


# The command


def planned(shop: Shop, config: Mapping[str, Any], *options: str) -> dict[str, Any]:
    result = stepdown("estimate", str(shop.write(dict(config), "planned.yaml")), "--json", *options)
    assert result.code == 0, result.err
    made: dict[str, Any] = json.loads(result.out)
    return made


def cache_times(shop: Shop, seconds: Iterator[float]) -> None:
    """Give every response in the run's cache, in the order in which they were stored, another time."""
    with sqlite3.connect(shop.run / "cache" / "responses.sqlite") as db:
        for (number,) in db.execute("SELECT id FROM responses ORDER BY id").fetchall():
            db.execute("UPDATE responses SET stored = ? WHERE id = ?", (next(seconds), number))


def test_the_pace_of_a_run_is_the_time_between_answers_but_for_pauses(shop: Shop, provider: Start) -> None:
    one = provider(SKILLED)
    config = settings(one.url, [[0, 0, 0, 0]])
    assert shop.build(config).code == 0
    number = one.count()

    def times() -> Iterator[float]:
        """An answer every two seconds, and once the run lay for a night."""
        for place in range(number):
            yield 1e9 + 2.0 * place + (10 * PAUSED if place >= number // 2 else 0.0)

    cache_times(shop, times())
    cluster = planned(shop, config, "--nodes", "1", "--per-node", "1", "--run", str(shop.run))["cluster"]
    assert cluster["pace"]["call"] == pytest.approx(2.0)
    assert cluster["pace"]["execution"] == 0.0
    assert cluster["cases"]["best"]["hours"] * HOUR == pytest.approx(2.0 * number)
    slower = planned(shop, config, "--nodes", "1", "--run", str(shop.run), "--call-seconds", "3")["cluster"]
    assert slower["pace"]["call"] == 3.0


def test_a_plan_says_what_it_assumes_and_how_many_workers_it_needs(shop: Shop) -> None:
    config = settings("http://127.0.0.1:9/v1", [[0, 0]] * 9)
    made = planned(shop, config, "--nodes", "2", "--per-node", "3", "--call-seconds", "5")
    assert made["cluster"]["in_hand"] == 6
    assert made["cluster"]["cases"]["worst"]["spent"] == made["total"]["worst"]
    told = "\n".join(made["assumptions"])
    assert "5 s a call, with what is done upon its answer (as said), and 0 s a trial" in told
    assert "(assumed)" in told
    assert "say `operation.workers: 6`" in told
    assert "cluster" not in planned(shop, config)


@pytest.mark.parametrize("option", ["--per-node", "--call-seconds", "--trial-seconds", "--image-gib"])
def test_what_speaks_of_nodes_goes_with_nodes(shop: Shop, option: str) -> None:
    config = settings("http://127.0.0.1:9/v1", [[0]])
    result: Result = stepdown("estimate", str(shop.write(config)), option, "1")
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines()[-1] == f"stepdown: {option}: goes with --nodes: it says what each of them does"


class Imaged(workshop.Workshop):
    """A workshop whose jobs need container images, or that breaks where it is asked for them."""

    def node_needs(self, source: Mapping[str, Any]) -> NodeNeeds:
        return NodeNeeds({"docker": 1}, ("a", "b"), 2.0)


class Broken(workshop.Workshop):
    def node_needs(self, source: Mapping[str, Any]) -> NodeNeeds:
        raise ValueError("no list")


def test_images_of_nodes_are_planned(shop: Shop) -> None:
    config = settings("http://127.0.0.1:9/v1", [[0]])
    config["protocol"]["workloads"][0]["harness"] = "tests.test_cluster_plan:Imaged"
    cluster = planned(shop, config, "--nodes", "4")["cluster"]
    assert cluster["pace"]["execution"] == 60, "what runs in containers takes longer"
    (images,) = cluster["images"]
    assert (images["images"], images["gib"], images["share"]) == (2, 4.0, 1)


def test_a_workload_that_can_not_say_what_it_needs_is_said_to(shop: Shop) -> None:
    config = settings("http://127.0.0.1:9/v1", [[0]])
    config["protocol"]["workloads"][0]["harness"] = "tests.test_cluster_plan:Broken"
    result = stepdown("estimate", str(shop.write(config)))
    assert result.code == 2
    assert "protocol.workloads.0.harness: the workload can not say what it needs of a node" in result.err
    assert "ValueError: no list" in result.err
    assert Path(__file__).name in result.err
