"""A model gets no more requests and tokens a minute than its endpoint allows, whoever asks, and no wait is deaf."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepdown.builder.common.tokens import of_request
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import Model
from stepdown.builder.errors import Interrupted
from stepdown.builder.models import Client
from stepdown.builder.models.provider import load_library
from stepdown.builder.models.rates import WINDOW, Admitted, RateLimits
from stepdown.builder.records import Prefix
from tests import workshop
from tests.conftest import Shop, stepdown
from tests.provider import FAULTS, Answer, Failing, Provider, Request

HELLO = Prefix.start([{"role": "user", "content": "hi"}])
MODEL = Model(name="m", model="openai/m")


class Clock(threading.Event):
    """Time that passes only where somebody waits; a `stop` event for a client, of which every wait ends at once."""

    def __init__(self) -> None:
        super().__init__()
        self._now, self._guard = 0.0, threading.Lock()

    def now(self) -> float:
        return self._now

    def pause(self, seconds: float) -> None:
        with self._guard:
            self._now += seconds

    def wait(self, timeout: float | None = None) -> bool:
        self.pause(timeout or 0.0)
        return self.is_set()


def most_in_a_minute(admitted: Sequence[Admitted], measure: Callable[[Admitted], int]) -> int:
    """The largest sum over any window of a minute."""
    return max(sum(measure(b) for b in admitted if a.at <= b.at < a.at + WINDOW) for a in admitted)


def operation(url: str, **endpoint: Any) -> OperationConfig:
    return OperationConfig.model_validate(
        {
            "endpoints": {"default": {"api_base": url, "timeout": 5, **endpoint}},
            "retries": {"attempts": 3, "first_wait": 0, "longest_wait": 0},
        }
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.lists(st.floats(0, 40), min_size=1, max_size=30))
def test_no_minute_has_more_requests_than_allowed(limit: int, gaps: list[float]) -> None:
    clock = Clock()
    rates, admitted = RateLimits(requests=limit, clock=clock.now), []
    for gap in gaps:
        clock.pause(gap)
        admitted.append(rates.admit(0, clock.pause))
    assert most_in_a_minute(admitted, lambda one: 1) <= limit


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 40), st.integers(1, 100), st.integers(0, 100)), min_size=1, max_size=30))
def test_no_minute_has_more_tokens_than_allowed_where_enough_was_set_aside(
    requests: list[tuple[float, int, int]],
) -> None:
    clock = Clock()
    rates, admitted = RateLimits(tokens=100, clock=clock.now), []
    for gap, expected, taken in requests:
        clock.pause(gap)
        admitted.append(rates.admit(expected, clock.pause))
        rates.settle(admitted[-1], min(expected, taken))
    assert most_in_a_minute(admitted, lambda one: one.tokens) <= 100


def test_no_request_waits_longer_than_it_must() -> None:
    clock = Clock()
    rates = RateLimits(requests=2, clock=clock.now)
    at = [rates.admit(0, clock.pause).at for _ in range(6)]
    assert at == pytest.approx([0, 0, 60, 60, 120, 120])


def test_tokens_that_were_set_aside_and_not_taken_are_free_again() -> None:
    clock = Clock()
    rates = RateLimits(tokens=100, clock=clock.now)
    rates.settle(rates.admit(90, clock.pause), 10)
    assert rates.admit(90, clock.pause).at == 0
    assert rates.admit(1, clock.pause).at == pytest.approx(60)


def test_tokens_that_were_taken_beyond_what_was_set_aside_are_waited_for() -> None:
    clock = Clock()
    rates = RateLimits(tokens=100, clock=clock.now)
    rates.settle(rates.admit(10, clock.pause), 150)
    assert rates.admit(10, clock.pause).at == pytest.approx(60)


def test_a_request_larger_than_a_minute_is_begun_alone() -> None:
    clock = Clock()
    rates = RateLimits(tokens=100, clock=clock.now)
    assert [rates.admit(tokens, clock.pause).at for tokens in (50, 500, 50)] == pytest.approx([0, 60, 120])


def test_threads_share_a_model_s_limits() -> None:
    clock = Clock()
    rates, admitted, adding = RateLimits(requests=10, tokens=100, clock=clock.now), [], threading.Lock()

    def work() -> None:
        for tokens in (5, 20, 11, 0, 30):
            one = rates.admit(tokens, clock.pause)
            rates.settle(one, tokens // 2)
            with adding:
                admitted.append(one)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 40
    assert most_in_a_minute(admitted, lambda one: 1) <= 10
    assert most_in_a_minute(admitted, lambda one: one.tokens) <= 100


def test_a_provider_sees_no_more_requests_a_minute_than_allowed() -> None:
    clock, seen = Clock(), []

    def ability(request: Request) -> Answer:
        seen.append(Admitted(clock.now(), 1))
        return Answer("x")

    with (
        Provider({"m": ability}) as provider,
        Client([MODEL], operation(provider.url, requests_per_minute=3), clock, clock=clock.now) as client,
    ):
        for _ in range(10):
            client.complete(MODEL, HELLO)
    assert [one.at for one in seen] == pytest.approx([0] * 3 + [60] * 3 + [120] * 3 + [180])


def test_a_retry_is_a_request_too() -> None:
    clock, seen = Clock(), []

    def ability(request: Request) -> Answer:
        seen.append(clock.now())
        return Answer("x")

    failing = Failing(1, FAULTS["server_500"], ability)
    with (
        Provider({"m": failing}) as provider,
        Client([MODEL], operation(provider.url, requests_per_minute=1), clock, clock=clock.now) as client,
    ):
        client.complete(MODEL, HELLO)
    assert seen == pytest.approx([60])


def test_a_provider_gives_no_more_tokens_a_minute_than_allowed() -> None:
    """An answer takes 100 tokens by the provider's own count; the first is set aside for as its `max_tokens` say."""
    clock, seen = Clock(), []
    used = {"prompt_tokens": 10, "completion_tokens": 90}

    def ability(request: Request) -> Answer:
        seen.append(Admitted(clock.now(), 100))
        return Answer("x", usage=used)

    model = Model(name="m", model="openai/m", parameters={"max_tokens": 4096})
    with (
        Provider({"m": ability}) as provider,
        Client([model], operation(provider.url, tokens_per_minute=350), clock, clock=clock.now) as client,
    ):
        for _ in range(9):
            client.complete(model, HELLO)
    assert most_in_a_minute(seen, lambda one: one.tokens) <= 350
    assert [one.at for one in seen] == pytest.approx([0] * 3 + [60] * 3 + [120] * 3)


@pytest.mark.parametrize("limit", [{"requests_per_minute": 5}, {"tokens_per_minute": 5 * 14}])
def test_callers_beyond_the_limit_wait_and_end_when_the_run_is_asked_to_stop(limit: dict[str, int]) -> None:
    """Eight threads in real time: within this minute five requests arrive, the rest end at once with `stop`."""
    stop, interrupted = threading.Event(), []
    model = Model(name="m", model="openai/m", parameters={"max_tokens": 3})
    prefix = Prefix.start([{"role": "user", "content": "hi hi hi hi hi"}])
    assert of_request(prefix.messages) + 3 == 14, "what is set aside is what the provider counts"

    def call(client: Client) -> None:
        try:
            client.complete(model, prefix)
        except Interrupted:
            interrupted.append(1)

    with Provider({"m": lambda request: Answer("x")}) as provider:
        with Client([model], operation(provider.url, **limit), stop) as client:
            threads = [threading.Thread(target=call, args=(client,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            deadline = time.monotonic() + 20
            while provider.count() < 5 and time.monotonic() < deadline:
                time.sleep(0.01)
            stop.set()
            for thread in threads:
                thread.join(10)
                assert not thread.is_alive()
        assert provider.count() == 5
    assert len(interrupted) == 3


def test_limits_are_a_model_s_own(shop: Shop) -> None:
    """One model's limit, waited for until the budget of time ends the run, holds up no other model."""
    load_library()  # importing it takes longer than this run may
    with Provider(workshop.ABILITIES) as provider:
        config = workshop.config(provider.url, [[0, 1]])
        config["operation"]["budget"] = {"wall_clock": 3}
        config["operation"]["endpoints"]["hand"] = {"api_base": provider.url, "requests_per_minute": 1}
        config["operation"]["endpoints"]["novice"] = {"api_base": provider.url, "requests_per_minute": 1}
        assert shop.build(config).code == 3
        assert provider.count("novice") == 1
        assert provider.count("master") == 3
        # Limits may change at a resume.
        del config["operation"]["endpoints"]["novice"], config["operation"]["budget"]
        assert shop.resume("--config", str(shop.write(config))).code == 0
    assert shop.labels() == [["low", "mid"]]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("requests_per_minute", 0, "Input should be greater than or equal to 1"),
        ("tokens_per_minute", -5, "Input should be greater than or equal to 1"),
        ("requests_per_hour", 5, "unknown key"),
    ],
)
def test_a_limit_that_is_none_is_refused(shop: Shop, name: str, value: int, words: str) -> None:
    config = workshop.config("http://127.0.0.1:9/v1", [[0]])
    config["operation"]["endpoints"]["default"][name] = value
    path = shop.write(config)
    result = stepdown("build", str(path), "--run", str(shop.run))
    assert result.code == 2
    (line,) = result.err.splitlines()
    number = 1 + next(n for n, text in enumerate(path.read_text().splitlines()) if f'"{name}"' in text)
    assert line.startswith(f"stepdown: {path}:{number}: operation.endpoints.default.{name}: {words}")
