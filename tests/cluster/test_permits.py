"""One set of limits over many processes, and a line that many threads use at once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from stepdown.builder.cluster.messages import AskPermit, HeadReply, PauseModel, Permit, RequestEnded
from stepdown.builder.cluster.permits import Permits, RemoteLimits
from stepdown.builder.cluster.request_queue import BATCH, AttemptRequests, RequestQueue
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import Model

MODEL = Model(name="m", model="openai/m")


def permits(**endpoint: Any) -> Permits:
    return Permits({"m": MODEL}, OperationConfig.model_validate({"endpoints": {"m": endpoint}}))


def number_of(answer: Permit | float) -> int:
    assert isinstance(answer, Permit)
    return answer.number


def test_a_slot_is_free_again_once_its_request_has_ended_or_its_process_has() -> None:
    limits = permits(concurrency=2)
    first = number_of(limits.admit("a", AskPermit("m", 0), 2))
    number_of(limits.admit("b", AskPermit("m", 0), 2))
    assert isinstance(limits.admit("b", AskPermit("m", 0), 2), float)
    limits.end(RequestEnded(first, None))
    number_of(limits.admit("b", AskPermit("m", 0), 2))
    limits.end_all("b")
    for _ in range(2):
        number_of(limits.admit("c", AskPermit("m", 0), 1))
    limits.end(RequestEnded(first, None))  # told twice
    assert isinstance(limits.admit("c", AskPermit("m", 0), 1), float)


def test_requests_and_tokens_of_a_minute_are_those_of_all_processes() -> None:
    by_requests, by_tokens = permits(requests_per_minute=3), permits(tokens_per_minute=100)
    for process in "abc":
        number_of(by_requests.admit(process, AskPermit("m", 0), 3))
    assert isinstance(by_requests.admit("d", AskPermit("m", 0), 4), float)
    first = number_of(by_tokens.admit("a", AskPermit("m", 90), 2))
    assert isinstance(by_tokens.admit("b", AskPermit("m", 90), 2), float)
    by_tokens.end(RequestEnded(first, 10))  # it used less than was expected
    number_of(by_tokens.admit("b", AskPermit("m", 90), 2))


def test_the_more_processes_wait_the_less_often_each_of_them_asks() -> None:
    limits = permits(concurrency=1)
    limits.admit("a", AskPermit("m", 0), 1)
    few, many = (limits.admit("b", AskPermit("m", 0), processes) for processes in (2, 200))
    assert isinstance(few, float)
    assert isinstance(many, float)
    assert few < many


def test_a_pause_that_one_process_hears_of_is_told_to_all() -> None:
    limits = permits()
    assert limits.pauses() == {}
    limits.pause(PauseModel("m", 60))
    told: Mapping[str, float] = limits.pauses()
    assert 50 < told["m"] <= 60
    remote, waited = RemoteLimits(AttemptRequests(RequestQueue(), 0), MODEL, OperationConfig()), []
    remote.note_pause(told["m"])

    class Stopped(Exception):
        pass

    def wait(seconds: float) -> None:
        waited.append(seconds)
        raise Stopped

    with pytest.raises(Stopped), remote.request(lambda: 0, wait):
        pass
    assert waited


def test_every_thread_gets_the_answer_to_its_own_question() -> None:
    """Hundreds of threads at once; no batch is larger than one that keeps others waiting for long."""
    line, threads, answers = RequestQueue(), 300, {}

    def ask(number: int) -> None:
        answers[number] = [line.ask(number, place) for place in range(5)]

    running = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    replies: list[HeadReply] = []
    left = 5 * threads
    while left or replies:
        asked = line.exchange(replies, 0.05)
        assert len(asked) <= BATCH
        left -= len(asked)
        replies = [HeadReply(one.number, (one.attempt, one.request)) for one in asked]
    for thread in running:
        thread.join()
    assert answers == {number: [(number, place) for place in range(5)] for number in range(threads)}


def test_what_a_question_comes_to_at_the_head_is_raised_where_it_was_asked() -> None:
    line, raised = RequestQueue(), []

    def ask() -> None:
        try:
            line.ask(1, "?")
        except KeyError as error:
            raised.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    (asked,) = line.exchange((), 10)
    line.exchange([HeadReply(asked.number, None, KeyError("nothing"))], 0)
    asking.join()
    assert len(raised) == 1
