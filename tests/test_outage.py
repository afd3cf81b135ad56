"""An endpoint that is down is asked less and less often, a person is told at once, and nothing is lost."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from stepdown.builder.config.pool import Model
from stepdown.builder.engine.progress import RunProgress, progress_line
from stepdown.builder.models.outage import EQUAL_FAILURES, Outage
from stepdown.builder.records import Instance, Response
from tests.conftest import Shop, stepdown
from tests.provider import FAULTS, Failing, Fault, Provider, error
from tests.workshop import ABILITIES, as_yaml, config

Start = Callable[..., Provider]


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_equal_failures_in_a_row_pause_an_endpoint_longer_each_time_until_an_answer_comes() -> None:
    clock = Clock()
    outage = Outage(5.0, clock)
    text = "HTTP 503: request {}: busy"
    assert [outage.note_failure(text.format(n)) for n in range(EQUAL_FAILURES)] == [None] * 9 + [1.0]
    assert outage.note_failure(text.format(99)) is None, "what was under way when the pause began makes it no longer"
    pauses = []
    for _ in range(4):
        clock.now += 10
        pauses.append(outage.note_failure(text.format(clock.now)))
    assert pauses == [2.0, 4.0, 5.0, 5.0]
    assert outage.note_answer()
    assert not outage.note_answer()
    assert [outage.note_failure(text.format(n)) for n in range(9)] == [None] * 9


def test_failures_of_different_kinds_or_with_answers_between_pause_nothing() -> None:
    outage = Outage(5.0, Clock())
    assert {outage.note_failure(text) for _ in range(50) for text in ("HTTP 503: busy", "time-out")} == {None}
    for _ in range(50):
        assert outage.note_failure("time-out") is None
        outage.note_answer()


def test_during_an_outage_one_request_is_made_at_a_time() -> None:
    outage = Outage(0.01)
    for _ in range(EQUAL_FAILURES):
        outage.note_failure("down")
    at_once, most, guard = 0, 0, threading.Lock()

    def request() -> None:
        nonlocal at_once, most
        with outage.turn(time.sleep):
            with guard:
                at_once += 1
                most = max(most, at_once)
            time.sleep(0.01)
            with guard:
                at_once -= 1
            outage.note_failure("down")

    threads = [threading.Thread(target=request) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_dead_address_is_named_at_once_and_slows_the_run_down(shop: Shop) -> None:
    with socket.socket() as taken:  # bound and never listening: every connection is refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        settings = config(url, [[0, 1]] * 6)
        settings["operation"]["retries"] = {"attempts": 3, "first_wait": 0, "longest_wait": 0.05}
        told = shop.build(settings)
    assert told.code == 3
    lines = told.err.splitlines()
    pauses = [
        line for line in lines if f"master at {url} pauses for 0.05 s: 10 or more equal failures in a row" in line
    ]
    assert len(pauses) == 9, "18 requests: from the tenth on each is followed by a pause"
    assert "connection refused" in pauses[0]
    assert [line for line in lines if line.startswith("blocked: ")] == [
        f"blocked: workshop/job-0: master: connection refused: {url}"
    ], "the others are blocked for the same reason, and counted"
    assert "18 errors · 6 blocked" in told.err


def test_an_endpoint_that_comes_back_costs_no_instance(shop: Shop, provider: Start) -> None:
    abilities = {**ABILITIES, "master": Failing(14, FAULTS["server_503"], ABILITIES["master"])}
    settings = config(provider(abilities).url, [[0, 1]] * 3)
    settings["operation"]["retries"] = {"attempts": 20, "first_wait": 0, "longest_wait": 0.02}
    told = shop.build(settings)
    assert told.code == 0
    assert told.err.count("pauses for") == 5
    assert told.err.count("answers again") == 1
    assert "14 errors" in told.err
    assert "blocked" not in told.err


def test_a_parameter_that_never_does_stops_the_run_before_anything_else_is_paid(shop: Shop, provider: Start) -> None:
    fault = error(400, "Unsupported parameter: 'max_tokens' is not supported with this model.", "unsupported_parameter")
    loopback = provider({**ABILITIES, "master": lambda request: fault})
    settings = config(loopback.url, [[0, 1]] * 5)
    settings["protocol"]["pool"]["tiers"][2]["models"][0]["parameters"] = {"max_tokens": 9}
    told = shop.build(settings)
    assert told.code == 2
    assert loopback.count() == 1
    assert "change or leave out `max_tokens` in its `parameters`" in told.err.splitlines()[-1]


def test_after_an_unknown_model_the_way_that_is_named_works(shop: Shop, provider: Start) -> None:
    loopback = provider(ABILITIES)
    settings = config(loopback.url, [[0, 1]] * 2)
    right = as_yaml(settings)
    settings["protocol"]["pool"]["tiers"][1]["models"][0]["model"] = "openai/hnad"
    told = shop.build(settings)
    assert told.code == 2
    asked = loopback.count("master")
    (shop.folder / "config.yaml").write_text(right)
    assert f"stepdown relabel {shop.run} --config CONFIG --run NEW" in told.err
    assert "stepdown resume" not in told.err
    new = shop.folder / "new"
    told = stepdown("relabel", str(shop.run), "--config", str(shop.folder / "config.yaml"), "--run", str(new))
    assert told.code == 0, told.err
    fresh = Shop(shop.folder)
    fresh.run = new
    assert fresh.labels() == [["low", "mid"], ["low", "mid"]]
    assert asked >= 1
    seeds = [seen.digest for seen in loopback.requests if seen.model == "master"]
    assert len(seeds) == len(set(seeds)), "no answer of the stopped run is paid for again"


def test_after_a_wrong_path_a_resume_with_the_right_one_works(shop: Shop, provider: Start) -> None:
    nowhere = provider(dict.fromkeys(ABILITIES, lambda request: Fault(404, {"detail": "Not Found"})))
    told = shop.build(config(nowhere.url, [[0, 1]] * 3))
    assert (told.code, nowhere.count()) == (2, 1)
    assert f"no chat completions at {nowhere.url}/chat/completions, look at its `api_base`" in told.err
    assert f"stepdown resume {shop.run} (with --config CONFIG" in told.err
    right = shop.write(config(provider(ABILITIES).url, [[0, 1]] * 3), "right.yaml")
    assert shop.resume("--config", str(right)).code == 0


def test_the_time_left_is_counted_from_the_first_finished_call() -> None:
    clock = Clock()
    progress = RunProgress(total=4, clock=clock)
    clock.now = 1_000  # loading, collecting
    progress.on_call(Model(name="m", model="openai/m"), Response("x"), fresh=True)
    assert progress.seconds_left() is None
    clock.now += 10
    progress.on_instance()
    assert progress.seconds_left() == 30
    assert progress_line(progress).endswith("0:00:30 left")


def test_blocked_instances_are_told_once_for_each_reason() -> None:
    progress, told = RunProgress(total=4), list[str]()
    progress.notify = told.append
    for number in range(3):
        progress.on_blocked(Instance("qa", str(number), {}), f"HTTP 500: request {number}")
    progress.on_blocked(Instance("qa", "9", {}), "replay diverged")
    assert told == ["blocked: qa/0: HTTP 500: request 0", "blocked: qa/9: replay diverged"]
    assert "4 blocked" in progress_line(progress)
