"""The address of an episode, asked by the real client of OpenAI and by others that misbehave."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from openai import APIStatusError, OpenAI

from stepdown.builder.records import Response, Stop, ToolCall, Usage
from stepdown.harnesses.agent.address import LARGEST_BODY, EpisodeServers, ProgramAddress
from stepdown.harnesses.agent.exchange import MOST_WAITING, Exchange, Next, PendingRequest, Recognises
from stepdown.harnesses.agent.reply import Reply
from stepdown.harnesses.agent.request import ChatRequest

ADDRESS = EpisodeServers()
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


@dataclass
class Got:
    """An HTTP answer."""

    status: int
    text: str


def got(
    place: ProgramAddress, method: str, path: str, raw: bytes, headers: Mapping[str, str], timeout: float = 20
) -> Got:
    """Ask by the plainest client there is, which sends what it is told."""
    connection = http.client.HTTPConnection(place.url.split("/")[2], timeout=timeout)
    try:
        sent = {"authorization": f"Bearer {place.key}", **headers}
        connection.request(method, path, raw, {name: value for name, value in sent.items() if value})
        answer = connection.getresponse()
        return Got(answer.status, answer.read().decode())
    finally:
        connection.close()


@dataclass
class Served:
    """An open address with its exchange."""

    place: ProgramAddress
    exchange: Exchange

    def client(self, **settings: Any) -> OpenAI:
        return OpenAI(base_url=self.place.url, api_key=self.place.key, **{"max_retries": 0, "timeout": 20, **settings})

    def post(self, body: Any, timeout: float = 20, **headers: str) -> Got:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return got(self.place, "POST", "/v1/chat/completions", raw, named, timeout)

    def take(self, recorded: Recognises | None = None) -> PendingRequest:
        """Take the next step."""
        assert self.exchange.wait(20, recorded) is Next.STEP
        held = self.exchange.take(recorded)
        assert held is not None
        return held

    def answer(self, text: str = "yes", recorded: Recognises | None = None) -> ChatRequest:
        """Take the next step and answer it."""
        held = self.take(recorded)
        self.exchange.answer(held, Reply(Response(text), 1, 1))
        return held.request


@contextmanager
def served(is_side: Recognises = lambda request: False) -> Iterator[Served]:
    exchange = Exchange(is_side)
    with ADDRESS.open(exchange, "m1") as place:
        yield Served(place, exchange)


def asking(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "m1", "messages": [{"role": "user", "content": text}], **fields}


@contextmanager
def alongside(work: Callable[[], Any]) -> Iterator[Any]:
    """Something that a program does while the engine answers it."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(work)


# Answers as the client reads them

CALLS = Response(
    "I look.",
    (ToolCall("f", '{"a": "é\\n"}'), ToolCall("g", "{}")),
    usage=Usage(prompt=11, cache_read=4, completion=3),
)


def replied(site: Served, response: Response, work: Callable[[], Any]) -> Any:
    with alongside(work) as result:
        held = site.take()
        site.exchange.answer(held, Reply(response, 7, 5))
        return result.result()


def test_a_plain_answer_is_what_the_client_expects() -> None:
    with served() as site:
        client = site.client()
        answer = replied(site, CALLS, lambda: client.chat.completions.create(**asking("hi", tools=[TOOL])))
    message = answer.choices[0].message
    assert (message.content, answer.choices[0].finish_reason) == ("I look.", "tool_calls")
    assert [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls] == [
        ("call_5", "f", '{"a": "é\\n"}'),
        ("call_6", "g", "{}"),
    ]
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (11, 14)
    assert answer.usage.prompt_tokens_details.cached_tokens == 4


def test_a_stream_adds_up_to_the_same_with_usage_at_its_end() -> None:
    def read() -> list[Any]:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        return list(site.client().chat.completions.create(**asking("hi", **options)))

    with served() as site:
        events = replied(site, CALLS, read)
    deltas = [event.choices[0].delta for event in events if event.choices]
    calls = [call for delta in deltas for call in delta.tool_calls or ()]
    assert "".join(delta.content or "" for delta in deltas) == "I look."
    assert "".join(call.function.arguments for call in calls if call.index == 0) == '{"a": "é\\n"}'
    assert [call.id for call in calls if call.id] == ["call_5", "call_6"]
    assert events[-1].usage.total_tokens == 14
    assert [event.choices[0].finish_reason for event in events if event.choices][-1] == "tool_calls"


def test_an_answer_that_was_cut_off_says_so_and_tokens_are_estimated_where_nobody_counted() -> None:
    with served() as site:
        client = site.client()
        answer = replied(
            site, Response("long", stop=Stop.LENGTH), lambda: client.chat.completions.create(**asking("hi"))
        )
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.total_tokens > 0


def test_the_model_is_listed() -> None:
    with served() as site:
        assert [model.id for model in site.client().models.list()] == ["m1"]
        assert site.client().models.retrieve("m1").owned_by == "stepdown"


# What is refused, and how

BROKEN: dict[str, tuple[Any, int, str]] = {
    "no JSON": (b"{", 400, "the body is not JSON"),
    "a list": (b"[]", 400, "the body must be an object"),
    "deep JSON": (b"[" * 100_000, 400, "the body is not JSON"),
    "no messages": ({"model": "m1"}, 400, "messages: must be a list of at least one message"),
    "two choices": (asking("x", n=2), 400, "n: only one choice can be given"),
    "a role": ({"model": "m1", "messages": [{"role": "judge", "content": "x"}]}, 400, "messages.0.role: no such role"),
    "an image": (
        {"model": "m1", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        400,
        "messages.0.content.0.type: a part of type 'image_url': only text can be answered",
    ),
    "a tool": (asking("x", tools=[{"type": "web_search"}]), 400, "tools.0: only tools of type `function`"),
    "a call": (
        {"model": "m1", "messages": [{"role": "assistant", "tool_calls": [{"id": 1}]}]},
        400,
        "messages.0.tool_calls.0: must be an object with a `function`",
    ),
    "too much": (b" " * (LARGEST_BODY + 1), 413, "Request Entity Too Large"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_request_that_no_server_takes_is_told_in_the_api_s_form(name: str) -> None:
    body, status, problem = BROKEN[name]
    with served() as site:
        answer = site.post(body)
        assert not site.exchange.waiting
    assert answer.status == status
    assert json.loads(answer.text)["error"]["message"].startswith(problem)
    assert site.exchange.refused


def test_nobody_gets_in_without_the_episodes_own_key() -> None:
    with served() as one, served() as other:
        for given in ("", "Bearer ", "Bearer wrong", f"Bearer {other.place.key}"):
            assert one.post(asking("x"), authorization=given).status == 401
        assert one.post(asking("x"), origin="https://evil.example").status == 403
        assert one.post(asking("x"), host="evil.example").status == 403
        with pytest.raises(APIStatusError) as refused:
            OpenAI(base_url=one.place.url, api_key="wrong", max_retries=0).models.list()
        assert refused.value.code == "invalid_api_key"
        assert got(one.place, "GET", "/v1/files", b"", {}).status == 404
        assert not one.exchange.waiting


def test_after_the_end_nothing_is_taken() -> None:
    with served() as site:
        site.exchange.end()
        assert site.post(asking("x")).status == 503
    with pytest.raises(ConnectionRefusedError):
        site.post(asking("x"))


# What is a step


def test_a_client_that_loses_patience_and_asks_again_makes_one_step() -> None:
    with served() as site:
        client = site.client(timeout=0.4, max_retries=5)
        with alongside(lambda: client.chat.completions.create(**asking("slow"))) as result:
            held = site.take()
            time.sleep(1.0)  # the model thinks longer than the client waits
            site.exchange.answer(held, Reply(Response("at last"), 1, 1))
            assert result.result().choices[0].message.content == "at last"
        assert not site.exchange.waiting


def test_a_stream_that_is_hung_up_on_is_answered_when_it_is_asked_for_again() -> None:
    with served() as site:
        connection = http.client.HTTPConnection(site.place.url.split("/")[2])
        headers = {"authorization": f"Bearer {site.place.key}"}
        connection.request("POST", "/v1/chat/completions", json.dumps(asking("s", stream=True)), headers)
        held = site.take()
        connection.close()
        while held.waiters:
            time.sleep(0.01)
        site.exchange.answer(held, Reply(Response("kept"), 1, 1))
        assert "kept" in site.post(asking("s", stream=True)).text
        assert not site.exchange.waiting


def test_a_request_that_was_given_up_before_anybody_took_it_is_no_step() -> None:
    with served() as site:
        with pytest.raises(TimeoutError):
            site.post(asking("never mind"), timeout=0.3)
        while site.exchange.waiting:
            time.sleep(0.01)
        with alongside(lambda: site.post(asking("this one"))):
            assert site.answer().messages[0]["content"] == "this one"


def test_the_same_question_asked_again_after_its_answer_is_another_step() -> None:
    """Whoever ignores an answer makes steps, until there are too many."""
    with served() as site:
        for text in ("one", "two"):
            with alongside(lambda: site.post(asking("again"))) as result:
                site.answer(text)
                assert text in result.result().text


def test_a_client_that_says_it_asks_again_has_the_answer_that_was_given() -> None:
    with served() as site:
        with alongside(lambda: site.post(asking("q"))):
            site.answer("given")
        assert "given" in site.post(asking("q"), x_stainless_retry_count="1").text
        assert not site.exchange.waiting


def test_requests_made_together_have_an_order_that_is_not_who_was_first() -> None:
    orders = []
    for texts in (["a", "b", "c", "d"], ["d", "c", "b", "a"]):
        with served() as site, ThreadPoolExecutor(4) as pool:
            asked = []
            for number, text in enumerate(texts, 1):  # they come in this order, and wait together
                asked.append(pool.submit(site.post, asking(text)))
                while site.exchange.waiting < number:
                    time.sleep(0.01)
            orders.append([site.answer(f"to {n}").messages[0]["content"] for n in range(4)])
            assert all(answer.result().status == 200 for answer in asked)
    assert orders[0] == orders[1]


def test_a_replayed_step_takes_the_request_that_was_recorded() -> None:
    with served() as site, ThreadPoolExecutor(2) as pool:
        first = pool.submit(site.post, asking("other"))
        while not site.exchange.waiting:
            time.sleep(0.01)
        late = threading.Timer(0.3, lambda: pool.submit(site.post, asking("recorded")))
        late.start()
        taken = site.answer(recorded=lambda request: request.messages[0]["content"] == "recorded")
        assert taken.messages[0]["content"] == "recorded"
        assert site.answer().messages[0]["content"] == "other"
        assert first.result().status == 200
        late.join()


def test_a_flood_of_requests_is_bounded() -> None:
    with ThreadPoolExecutor(MOST_WAITING + 6) as pool, served() as site:
        asked = [pool.submit(site.post, asking(f"{n}")) for n in range(MOST_WAITING + 6)]
        refused = 0
        while refused < 6:
            refused = sum(one.done() and one.result().status == 429 for one in asked)
            time.sleep(0.02)
        assert site.exchange.waiting == MOST_WAITING
    assert refused == 6


def test_side_calls_come_before_steps() -> None:
    with served(lambda request: not request.tools) as site, ThreadPoolExecutor(2) as pool:
        step = pool.submit(site.post, asking("step", tools=[TOOL]))
        while not site.exchange.waiting:
            time.sleep(0.01)
        side = pool.submit(site.post, asking("a title"))
        while site.exchange.waiting < 2:
            time.sleep(0.01)
        assert site.exchange.wait(20) is Next.SIDE
        held = site.exchange.take_side()
        site.exchange.answer(held, Reply(Response("Title"), 1, 1))
        assert "Title" in side.result().text
        assert site.answer().tools
        assert step.result().status == 200


# How a request is read


def test_messages_are_what_a_router_sees_whatever_the_client_s_form() -> None:
    body = {
        "model": "m1",
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "user", "content": "nul \x00 and \ud800", "timestamp": 3},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "hm",
                "tool_calls": [{"id": "toolu_x9", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "toolu_x9", "content": "done"},
        ],
        "tools": [{**TOOL, "function": {**TOOL["function"], "strict": True}}],  # type: ignore[dict-item]
        "temperature": 0.2,
    }
    with served() as site, alongside(lambda: site.post(body)):
        asked = site.answer()
    assert asked.messages == (
        {"role": "system", "content": "a\nb"},
        {"role": "user", "content": "nul \ufffd and \ufffd"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "done", "tool_call_id": "call_1"},
    )
    assert asked.tools == (TOOL,)
