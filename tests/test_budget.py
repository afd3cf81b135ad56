"""A run stops where its budget ends: no call is begun beyond it, nothing paid is lost, and a raised budget goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.config.operation import Budget
from stepdown.builder.config.pool import Model
from stepdown.builder.config.price import Price
from stepdown.builder.errors import BudgetReached, Interrupted
from stepdown.builder.records import Usage
from stepdown.builder.run.budget import BudgetGuard
from stepdown.builder.run.spent import FILE_NAME
from tests import workshop
from tests.conftest import Result, Shop, started, stepdown
from tests.provider import Answer, Provider, spawned
from tests.test_interruption import asked, wait_for_requests

Start = Callable[..., Provider]
NEEDS = [[0, 1, 2, 0], [2, 0, 1], [1, 1], [2, 2], [0, 1, 0]]
DOLLAR = {"input": 1e6 / 14, "output": 1e6 / 14}
"""The provider says 11 and 3 tokens of every call: one US dollar."""
MODEL = Model(name="m", model="openai/m", price=Price(**DOLLAR))
CALL = Usage(prompt=11, completion=3)


def settings(url: str, budget: dict[str, Any] | None = None, workers: int = 1, **changes: Any) -> dict[str, Any]:
    """A workshop in which every call costs a dollar."""
    made = workshop.config(url, NEEDS, **changes)
    for tier in made["protocol"]["pool"]["tiers"]:
        for model in tier["models"]:
            model["price"] = DOLLAR
    made["operation"] |= {"workers": workers, **({"budget": budget} if budget else {})}
    return made


def said(result: Result) -> str:
    """The one line that the command ends with."""
    (line,) = [line for line in result.err.splitlines() if line.startswith("stepdown: ")]
    return line


@pytest.fixture(scope="module")
def unlimited(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], int]:
    """The files of a run without a budget, and its number of calls."""
    shop = Shop(tmp_path_factory.mktemp("unlimited"))
    with Provider(workshop.ABILITIES) as provider:
        assert shop.build(settings(provider.url)).code == 0
        return shop.files(), provider.count()


@pytest.mark.parametrize("workers", [1, 4])
def test_no_more_calls_than_budgeted_are_made_and_a_raised_budget_goes_on(
    shop: Shop, provider: Start, unlimited: tuple[dict[str, bytes], int], workers: int
) -> None:
    one = provider(latency=0.005)
    stopped = shop.build(settings(one.url, {"calls": 20}, workers))
    assert stopped.code == 3
    assert said(stopped) == (
        "stepdown: the run's budget of calls is reached (20 of 20 calls); to go on, raise `operation.budget.calls` "
        f"and: stepdown resume {shop.run} --config CONFIG"
    )
    assert one.count() == 20
    spent = shop.read_json("spend.json")
    assert spent["calls"] + spent["unbooked"]["calls"] == 20
    assert "paid: 20 of 20 calls, $20.0000" in stepdown("status", str(shop.run)).out
    # With the budget as it was, nothing more is begun.
    assert shop.resume().code == 3
    assert one.count() == 20
    more = shop.write(settings(one.url, {"calls": 1000}, workers), "more.yaml")
    assert shop.resume("--config", str(more)).code == 0
    assert shop.files() == unlimited[0]
    assert one.count() == unlimited[1], "no call was paid twice"
    assert shop.read_json("spend.json")["unbooked"] == {"usd": 0, "calls": 0}


def test_a_budget_in_dollars_is_exceeded_by_the_calls_in_hand_at_most(
    shop: Shop, provider: Start, unlimited: tuple[dict[str, bytes], int]
) -> None:
    one, workers = provider(latency=0.01), 4
    stopped = shop.build(settings(one.url, {"usd": 20}, workers))
    assert stopped.code == 3
    assert "budget of usd is reached" in said(stopped)
    assert 20 <= one.count() <= 20 + workers - 1
    spent = shop.read_json("spend.json")
    assert spent["usd"] + spent["unbooked"]["usd"] == pytest.approx(one.count())
    assert f"${one.count():.4f} of $20.0000" in stepdown("status", str(shop.run)).out
    more = shop.write(settings(one.url, {"usd": 1000}, workers), "more.yaml")
    assert shop.resume("--config", str(more)).code == 0
    assert shop.files() == unlimited[0]
    assert one.count() == unlimited[1]


def test_a_budget_that_is_just_enough_stops_nothing(
    shop: Shop, provider: Start, unlimited: tuple[dict[str, bytes], int]
) -> None:
    one = provider()
    assert shop.build(settings(one.url, {"calls": unlimited[1], "usd": unlimited[1]})).code == 0
    assert shop.files() == unlimited[0]
    # Going on with a finished run, or with what the cache holds, needs no budget.
    assert shop.resume().code == 0


def test_answers_from_the_cache_need_no_budget(shop: Shop, provider: Start, tmp_path: Path) -> None:
    one = provider()
    shared: dict[str, Any] = {"operation": {"cache": str(tmp_path / "shared")}}
    assert shop.build(settings(one.url, **shared)).code == 0
    before = one.count()
    again = Shop(tmp_path / "again")
    again.folder.mkdir()
    assert again.build(settings(one.url, {"calls": 1}, **shared)).code == 0
    assert one.count() == before


def test_what_is_finished_is_released_whole_and_the_rest_counted(shop: Shop, provider: Start) -> None:
    one = provider()
    shop.build(settings(one.url, {"calls": 20}))
    manifest = shop.manifest()
    done = manifest["instances"]["workshop"]
    assert 0 < done < len(NEEDS)
    assert manifest["unfinished"] == len(NEEDS) - done
    assert [len(labels) for labels in shop.labels()] == [len(needs) for needs in NEEDS[:done]]


def test_a_process_works_no_longer_than_its_wall_clock(
    shop: Shop, provider: Start, unlimited: tuple[dict[str, bytes], int]
) -> None:
    one = provider(latency=0.05)
    stopped = shop.build(settings(one.url, {"wall_clock": 0.4}))
    assert stopped.code == 3
    assert said(stopped).endswith(f"(0.4 seconds); go on with: stepdown resume {shop.run}")
    assert one.count() < unlimited[1]
    assert shop.resume("--config", str(shop.write(settings(one.url), "more.yaml"))).code == 0
    assert shop.files() == unlimited[0]
    assert one.count() == unlimited[1], "the call in hand was kept"


def test_time_that_is_up_ends_a_wait_for_the_provider(shop: Shop, provider: Start) -> None:
    """A minute of waiting between retries is not waited out."""
    one = provider({})  # it knows no model: were it asked, the run would stop with exit code 2
    endless = settings(one.url, {"wall_clock": 0.3})
    endless["operation"]["endpoints"] = {"default": {"api_base": "http://127.0.0.1:9/v1", "timeout": 5}}
    endless["operation"]["retries"] = {"attempts": 9, "first_wait": 60, "longest_wait": 60}
    assert shop.build(endless).code == 3


def test_what_a_killed_process_paid_and_did_not_book_counts(shop: Shop, tmp_path: Path) -> None:
    log, workers, budget = tmp_path / "requests.jsonl", 2, 25
    with spawned("tests.workshop:ABILITIES", log, latency=0.02) as url:
        process = started("build", str(shop.write(settings(url, workers=workers))), "--run", str(shop.run))
        wait_for_requests(log, 12, process)
        process.kill()
        process.communicate()
        killed_at = sum(asked(log).values())
        kept = int(stepdown("status", str(shop.run)).out.split("paid: ")[1].split()[0])
        assert killed_at - workers <= kept <= killed_at
        tight = shop.write(settings(url, {"calls": budget}, workers), "tight.yaml")
        assert shop.resume("--config", str(tight)).code == 3
    # What was in flight when the process was killed has been paid, and no record of it could be made.
    assert budget <= sum(asked(log).values()) <= budget + workers


def test_a_lost_total_is_taken_from_the_ledger(shop: Shop, provider: Start) -> None:
    one = provider()
    assert shop.build(settings(one.url, {"calls": 20})).code == 3
    booked = shop.read_json("spend.json")["calls"]
    assert 0 < booked <= 20
    (shop.run / FILE_NAME).unlink()
    assert f"paid: {booked} of 20 calls" in stepdown("status", str(shop.run)).out
    numbers = ('{"calls": 1e999, "usd": 0}', '{"calls": 99, "usd": NaN}', '{"calls": 99, "usd": Infinity}')
    for rubbish in ("{" * 100, "[" * 100_000, '{"calls": -5, "usd": 0}', *numbers):
        (shop.run / FILE_NAME).write_text(rubbish)
        assert f"paid: {booked} of 20 calls" in stepdown("status", str(shop.run)).out
    assert shop.resume().code == 3
    assert "paid: 20 of 20 calls" in stepdown("status", str(shop.run)).out


def test_a_call_that_might_be_one_too_many_waits_for_those_in_hand() -> None:
    """One call is in hand, one is left: where the first ends unpaid, the second may begin."""
    guard, begun = BudgetGuard(Budget(calls=1)), threading.Event()

    def second() -> None:
        with guard.call(MODEL) as pay:
            begun.set()
            pay(CALL)

    waiting = threading.Thread(target=second)
    with guard.call(MODEL):
        waiting.start()
        assert not begun.wait(0.3)
    waiting.join(5)
    assert guard.spent.calls == 1
    assert guard.spent.usd == pytest.approx(1.0)
    with pytest.raises(BudgetReached), guard.call(MODEL):
        pass


def test_a_call_that_waits_for_the_budget_ends_with_the_run() -> None:
    stop = threading.Event()
    guard = BudgetGuard(Budget(calls=1), stop=stop)
    with guard.call(MODEL):
        threading.Timer(0.05, stop.set).start()
        with pytest.raises(Interrupted) as raised, guard.call(MODEL):
            pass
    assert not isinstance(raised.value, BudgetReached)


def test_many_threads_never_begin_a_call_too_many(tmp_path: Path) -> None:
    guard, limit = BudgetGuard(Budget(calls=300), folder=tmp_path), 300
    made: list[int] = []

    def work() -> None:
        for _ in range(100):
            try:
                with guard.call(MODEL) as pay:
                    made.append(1)
                    pay(CALL)
            except BudgetReached:
                return

    with guard:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(made) == guard.spent.calls == limit


def test_a_model_that_gives_hints_is_paid_for_too(shop: Shop, provider: Start) -> None:
    one = provider({**workshop.ABILITIES, "adviser": lambda request: Answer('{"tier": "mid"}')})
    adviser = {"name": "adviser", "model": "openai/adviser", "price": DOLLAR}
    asking = settings(one.url, {"usd": 6}, protocol={"hints": {"source": "model", "model": adviser}})
    assert shop.build(asking).code == 3
    assert one.count() == 6
    assert one.count("adviser") > 0
    spent = shop.read_json("spend.json")
    assert spent["usd"] + spent["unbooked"]["usd"] == pytest.approx(6)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"usd": -1}, "operation.budget.usd: Input should be greater than 0"),
        ({"calls": 0}, "operation.budget.calls: Input should be greater than or equal to 1"),
        ({"calls": 1.5}, "operation.budget.calls: "),
        ({"wall_clock": -3}, "operation.budget.wall_clock: Input should be greater than 0"),
        ({"usd": float("nan")}, "operation.budget.usd: "),
        ({"euro": 3}, "operation.budget.euro: unknown key"),
    ],
)
def test_a_budget_that_is_none_is_refused(shop: Shop, budget: dict[str, Any], words: str) -> None:
    config = shop.write(settings("http://127.0.0.1:9/v1", budget))
    result = stepdown("build", str(config), "--run", str(shop.run))
    assert result.code == 2
    (line,) = result.err.splitlines()
    number = 1 + next(n for n, text in enumerate(config.read_text().splitlines()) if f'"{next(iter(budget))}"' in text)
    assert line.startswith(f"stepdown: {config}:{number}: {words}")
    assert not shop.run.exists()


def test_a_budget_in_dollars_needs_prices(shop: Shop) -> None:
    """Calls of a model without a price would not be counted; one that is free says so."""
    unpriced = settings("http://127.0.0.1:9/v1", {"usd": 5})
    del unpriced["protocol"]["pool"]["tiers"][1]["models"][0]["price"]
    result = shop.build(unpriced)
    assert result.code == 2
    assert "operation.budget.usd: model 'hand' has no price" in result.err
    assert len(result.err.splitlines()) == 1


def test_the_time_of_a_process_goes_on_between_its_labels_and_its_probes() -> None:
    now, stop = [0.0], threading.Event()
    guard = BudgetGuard(Budget(wall_clock=1000), stop=stop, clock=lambda: now[0])
    with guard:
        guard.check()
    now[0] = 1001
    with guard:
        assert stop.wait(60)
        with pytest.raises(BudgetReached, match="1000 seconds"):
            guard.check()
