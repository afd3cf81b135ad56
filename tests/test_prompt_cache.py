"""Provider prompt caching: what is asked of a provider, on the wire, and what it then bills."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.actions import Actions, rendered
from stepdown.builder.cache.question import Question
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import Model
from stepdown.builder.errors import Technical
from stepdown.builder.models import Client
from stepdown.builder.models.prompt_cache import MOST_BREAKPOINTS, marked, unmarked
from stepdown.builder.models.warming import PromptWarming
from stepdown.builder.records import Instance, Message, Prefix, Response, Ruling, Sample, ToolCall, Verdict
from stepdown.harnesses.base import Episode, Harness
from tests.conftest import Shop, stepdown
from tests.messages_provider import ANSWER_TOKENS, MessagesProvider
from tests.prompt_billing import LIFE, blocks
from tests.provider import Answer, Fault, Provider, error
from tests.test_actions import prefix_of

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a shelf.",
        "parameters": {"type": "object", "properties": {"skill": {"type": "string"}}},
    },
}
RULES = "Look at the shelves in order. " * 150
"""More than 1,024 tokens, the least that is kept."""
MARK = {"type": "ephemeral"}
PRICE = {"input": 5.0, "cache_read": 0.5, "cache_write": 6.25, "output": 25.0}


class Walk(Episode):
    """Along some shelves, each of which needs a skill; what a shelf shows is long, and says who looked."""

    def __init__(self, name: str, needs: Sequence[int]) -> None:
        task = {"role": "user", "content": f"{name} has {len(needs)} shelves."}
        self._prefix = Prefix.start([{"role": "system", "content": RULES}, task], [LOOK])
        self._needs, self._seen, self._lost = needs, 0, ""

    def prefix(self) -> Prefix:
        return self._prefix

    def advance(self, response: Response) -> bool:
        skill = json.loads(response.tool_calls[0].arguments)["skill"]
        if int(skill) < self._needs[self._seen]:
            self._lost = f"shelf {self._seen + 1} was not seen"
        self._seen += 1
        after = self._prefix.respond(response)
        call = after.messages[-1]["tool_calls"][0]["id"]
        self._prefix = after.extend([shelf(call, f"Skill {skill} sees shelf {self._seen}. " * 40)])
        return self._seen < len(self._needs)

    def verdict(self) -> Ruling:
        return Ruling(Verdict.FAIL, self._lost) if self._lost else Ruling(Verdict.PASS)


class Library(Harness):
    """The workload. `source` is `{needs: [[skill, ...], ...]}`, an instance each."""

    name, version = "library", "1"

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        for number, needs in enumerate(source["needs"]):
            yield Instance(self.name, f"walk-{number}", {"needs": needs})

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Walk]:
        yield Walk(instance.id, instance.task["needs"])


def shelf(call: str, shown: str) -> Message:
    return {"role": "tool", "tool_call_id": call, "content": shown}


def looker(skill: int) -> Callable[[Mapping[str, Any]], list[dict[str, Any]]]:
    """A model that looks with a skill, whatever it is shown."""
    return lambda body: [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"skill": str(skill)}}]


LOOKERS = {"claude-haiku-4-5": looker(0), "claude-opus-4-6": looker(9), "claude-sonnet-4-5": looker(0)}


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def anthropic(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., MessagesProvider]]:
    """Starts loopback Messages servers that end with the test."""
    monkeypatch.setenv("LOOPBACK_KEY", "key")
    started: list[MessagesProvider] = []

    def start(clock: Callable[[], float] | None = None) -> MessagesProvider:
        started.append(MessagesProvider(LOOKERS, clock or Clock()).__enter__())
        return started[-1]

    yield start
    for one in started:
        one.__exit__()


SHELVES = 5


def config(url: str, prompt_cache: str = "auto", needs: Sequence[Sequence[int]] = ((0, 1, 0, 1, 0),)) -> dict[str, Any]:
    """Two cheap models that are alike, and a strong one."""
    tiers = [("low", ["claude-haiku-4-5", "claude-sonnet-4-5"]), ("high", ["claude-opus-4-6"])]
    return {
        "protocol": {
            "pool": {
                "version": "library-1",
                "tiers": [
                    {
                        "name": tier,
                        "id": number,
                        "models": [
                            {
                                "name": name,
                                "model": f"anthropic/{name}",
                                "parameters": {"max_tokens": 100},
                                "price": PRICE,
                                "prompt_cache": prompt_cache,
                            }
                            for name in names
                        ],
                    }
                    for number, (tier, names) in enumerate(tiers)
                ],
            },
            "workloads": [
                {
                    "harness": "tests.test_prompt_cache:Library",
                    "source": {"needs": [list(row) for row in needs]},
                    "seeds": {"source": "collect"},
                }
            ],
        },
        "operation": {
            "workers": 1,
            "endpoints": {"default": {"api_base": url, "api_key": "LOOPBACK_KEY", "timeout": 10}},
            "retries": {"attempts": 1},
        },
    }


def grown(count: int, tools: Sequence[Any] = (LOOK,)) -> Prefix:
    """A prefix after so many steps."""
    prefix = Prefix.start([{"role": "system", "content": RULES}, {"role": "user", "content": "go"}], tools)
    for number in range(count):
        prefix = prefix.respond(Response("", (ToolCall("look", "{}"),)))
        prefix = prefix.extend([shelf(prefix.messages[-1]["tool_calls"][0]["id"], f"shelf {number}")])
    return prefix


def asked(name: str, prefix: Prefix, grows: bool = True, **fields: Any) -> dict[str, Any]:
    """The request for a prefix to a model, with what is asked of its provider."""
    model = Model(name="m", model=name, **fields)
    request = rendered(model.actions, prefix)
    return marked(model, {"messages": request.messages, "tools": request.tools}, grows)


def marks(request: Mapping[str, Any]) -> list[str]:
    """Where a request is marked: `tool`, or the number of a message."""
    found = ["tool" for tool in request["tools"] if "cache_control" in tool]
    for number, message in enumerate(request["messages"]):
        parts = message["content"] if isinstance(message.get("content"), list) else []
        if "cache_control" in message or any("cache_control" in part for part in parts):
            found.append(str(number))
    return found


# What is asked for


@pytest.mark.parametrize(
    ("name", "steps", "places"),
    [
        ("anthropic/claude-opus-4-6", 0, ["tool", "0", "1"]),
        ("anthropic/claude-opus-4-6", 1, ["tool", "0", "1", "3"]),
        ("claude-opus-4-6", 3, ["tool", "0", "5", "7"]),
        ("bedrock/us.anthropic.claude-opus-4-6-v1", 3, ["tool", "0", "5", "7"]),
        ("vertex_ai/claude-opus-4-6", 3, ["tool", "0", "5", "7"]),
        ("azure_ai/claude-opus-4-6", 3, ["tool", "0", "5", "7"]),
        ("openrouter/anthropic/claude-opus-4.6", 3, ["0", "5", "7"]),
        ("openrouter/deepseek/deepseek-v3.2", 3, []),
        ("openai/gpt-5.4", 3, []),
        ("bedrock/amazon.nova-pro-v1:0", 3, []),
    ],
)
def test_breakpoints_stand_where_the_next_call_and_the_next_trial_find_them(
    name: str, steps: int, places: list[str]
) -> None:
    assert marks(asked(name, grown(steps))) == places


def test_a_prompt_that_nothing_goes_on_from_is_not_paid_for_as_kept() -> None:
    assert marks(asked("anthropic/claude-opus-4-6", grown(3), grows=False)) == ["0", "5"], "what was kept is read"
    assert marks(asked("anthropic/claude-opus-4-6", grown(0), grows=False)) == ["0"]
    assert (
        marks(asked("anthropic/claude-opus-4-6", Prefix.start([{"role": "user", "content": "q"}]), grows=False)) == []
    )


@pytest.mark.parametrize("off", ["off", False], ids=["as a word", "as YAML reads it"])
def test_it_can_be_turned_off(off: Any) -> None:
    assert marks(asked("anthropic/claude-opus-4-6", grown(3), prompt_cache=off)) == []


@given(
    st.lists(st.sampled_from(["user", "assistant", "tool", "system", "blank"]), min_size=1, max_size=12),
    st.sampled_from(["anthropic/claude-x", "openrouter/anthropic/claude-x"]),
)
def test_no_request_has_too_many_breakpoints_or_one_on_nothing(roles: list[str], name: str) -> None:
    messages = [
        {"role": "user", "content": "\n"} if role == "blank" else {"role": role, "content": "word"} for role in roles
    ]
    request = asked(name, Prefix.start(messages, [LOOK]))
    places = marks(request)
    assert len(places) <= MOST_BREAKPOINTS
    for place in places:
        assert place == "tool" or messages[int(place)]["content"] == "word"


@given(
    st.lists(st.sampled_from(["a.b", "a_b", "c"]), unique=True, max_size=2),
    st.lists(st.sampled_from(["a.b", "a_b", "a b", "a_b_2", "c"]), max_size=5),
    st.sampled_from(["tools", "json_schema", "text"]),
)
def test_what_a_prefix_is_sent_as_does_not_depend_on_what_follows_it(
    tools: list[str], called: list[str], actions: Actions
) -> None:
    sent = [rendered(actions, prefix_of(tools, called[:count])) for count in range(len(called) + 1)]
    for earlier, later in pairwise(sent):
        assert later.tools == earlier.tools
        assert later.messages[: len(earlier.messages)] == earlier.messages


# On the wire, and on the bill


def without_marks(sent: bytes) -> list[bytes]:
    """The blocks of a request as bytes, in the order in which a provider keeps them, without the marks."""
    mark = b', "cache_control": ' + json.dumps(MARK).encode()
    return [f"{place} {json.dumps(block)}".encode().replace(mark, b"") for place, block in blocks(json.loads(sent))]


def test_every_later_call_reads_what_it_shares_with_an_earlier_one_and_is_billed_so(
    shop: Shop, anthropic: Callable[..., MessagesProvider]
) -> None:
    provider = anthropic()
    assert shop.build(config(provider.url)).code == 0
    assert shop.labels() == [["low", "high", "low", "high", "low"]]
    for model in LOOKERS:
        earlier: list[list[bytes]] = []
        seeding = range(SHELVES) if model == "claude-opus-4-6" else range(0)
        for number, one in enumerate(provider.of(model)):
            sent = without_marks(one.sent)
            shared = max((_shared(sent, before) for before in earlier), default=0)
            # All that any earlier request of the model began with, to the byte, and never less.
            sizes = [-(-len(json.dumps(block)) // 4) for block in _unmarked(one.body)]
            assert one.counted.read == sum(sizes[:shared])
            # What the last call of a trial adds is not kept: nobody goes on from it. A seed's end is not known before.
            is_kept = turns(one.body) + 1 < SHELVES or number in seeding
            assert one.counted.plain == (0 if is_kept else sizes[-1] + sizes[-2])
            earlier.append(sent)
    _is_billed_in_spend(shop, provider)


def turns(body: Mapping[str, Any]) -> int:
    """How many turns of a model a request shows."""
    return sum(message["role"] == "assistant" for message in body["messages"])


def _shared(sent: Sequence[bytes], before: Sequence[bytes]) -> int:
    """How many blocks two requests begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(sent, before, strict=False)) if a != b), min(len(sent), len(before)))


def _unmarked(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{key: value for key, value in block.items() if key != "cache_control"} for _, block in blocks(body)]


def _is_billed_in_spend(shop: Shop, provider: MessagesProvider) -> None:
    """The list price of every model is what the server billed."""
    spend = shop.read_json("spend.json")
    for model in LOOKERS:
        counted = [one.counted for one in provider.of(model)]
        lines = [line for line in spend["by_model"] if line["model"] == model]
        for name, expected in (
            ("prompt", sum(one.total for one in counted)),
            ("cache_read", sum(one.read for one in counted)),
            ("cache_write", sum(one.written for one in counted)),
        ):
            assert sum(line["tokens"][name] for line in lines) == expected
        billed = sum(one.usd(PRICE["input"]) for one in counted) + len(counted) * ANSWER_TOKENS * PRICE["output"] / 1e6
        assert sum(line["usd"] for line in lines) == pytest.approx(billed, abs=2e-6)
        told = spend["prompt_cache"][model]
        assert told["prompt"] == sum(one.total for one in counted)
        assert told["saved_usd"] == pytest.approx(
            sum(one.total * PRICE["input"] / 1e6 - one.usd(PRICE["input"]) for one in counted), abs=2e-6
        )
        status = stepdown("status", str(shop.run)).out
        read, written = sum(one.read for one in counted), sum(one.written for one in counted)
        assert f"{read:,} read from and {written:,} written to its provider's cache" in status


def test_labels_do_not_depend_on_it_and_only_the_bill_does(
    shop: Shop, anthropic: Callable[..., MessagesProvider], tmp_path_factory: pytest.TempPathFactory
) -> None:
    kept, plain = anthropic(), anthropic()
    other = Shop(tmp_path_factory.mktemp("off"))
    assert shop.build(config(kept.url)).code == other.build(config(plain.url, "off")).code == 0
    assert shop.read("question_bank.jsonl") == other.read("question_bank.jsonl")
    assert shop.read("evidence.jsonl") == other.read("evidence.jsonl")
    assert [without_marks(one.sent) for one in kept.requests] == [without_marks(one.sent) for one in plain.requests]
    assert all(b"cache_control" not in one.sent for one in plain.requests)
    assert all(one.counted.read == one.counted.written == 0 for one in plain.requests)
    assert shop.read_json("spend.json")["usd"] < other.read_json("spend.json")["usd"] / 2


def test_an_answer_that_was_kept_without_it_is_not_asked_for_again(
    shop: Shop, anthropic: Callable[..., MessagesProvider], tmp_path_factory: pytest.TempPathFactory
) -> None:
    provider = anthropic()
    given = config(provider.url, "off")
    given["operation"]["cache"] = str(shop.folder / "shared")
    assert shop.build(given).code == 0
    asked_before = len(provider.requests)
    given["protocol"]["pool"]["tiers"][1]["models"][0]["prompt_cache"] = "auto"
    again = Shop(tmp_path_factory.mktemp("again"))
    assert again.build(given).code == 0
    assert len(provider.requests) == asked_before


def test_a_pool_that_says_nothing_of_it_is_the_record_that_it_was() -> None:
    silent, off = (Model(name="m", model="anthropic/claude-x", prompt_cache=word) for word in ("auto", "off"))
    assert "prompt_cache" not in silent.model_dump(mode="json")
    assert off.model_dump(mode="json")["prompt_cache"] == "off"
    assert silent.identity == off.identity
    keys = {
        Question("w", "1", "i", 1, model, grown(1), Sample(), grows=grows).key()
        for model in (silent, off)
        for grows in (True, False)
    }
    assert len(keys) == 1


def test_what_was_not_used_for_five_minutes_is_written_again(anthropic: Callable[..., MessagesProvider]) -> None:
    clock = Clock()
    provider = anthropic(clock)
    model = Model(name="m", model="anthropic/claude-opus-4-6", parameters={"max_tokens": 9})
    with opened(model, provider.url) as client:
        usages = []
        for wait in (0, LIFE, LIFE, LIFE + 1):
            clock.now += wait
            usages.append(client.complete(model, grown(1), grows=True).response.usage)
    first, second, third, late = usages
    assert first.cache_write == first.prompt
    assert second.cache_read == third.cache_read == first.prompt, "each use begins the five minutes anew"
    assert late.cache_write == first.prompt


def opened(model: Model, url: str) -> Client:
    endpoints = {"m": {"api_base": url, "api_key": "LOOPBACK_KEY"}}
    return Client([model], OperationConfig.model_validate({"endpoints": endpoints}))


def test_openrouter_gets_its_marks_inside_the_texts(provider: Callable[..., Provider]) -> None:
    usage = {
        "prompt_tokens": 2000,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 1500, "cache_write_tokens": 400},
    }
    one = provider({"anthropic/claude-opus-4.6": lambda request: Answer("ok", usage=usage)})
    model = Model(name="m", model="openrouter/anthropic/claude-opus-4.6")
    with Client([model], OperationConfig.model_validate({"endpoints": {"m": {"api_base": one.url}}})) as client:
        response = client.complete(model, grown(1), grows=True).response
    (seen,) = one.requests
    assert [message.get("content") for message in seen.body["messages"]] == [
        [{"type": "text", "text": RULES, "cache_control": MARK}],
        [{"type": "text", "text": "go", "cache_control": MARK}],
        None,
        [{"type": "text", "text": "shelf 0", "cache_control": MARK}],
    ]
    assert all("cache_control" not in tool for tool in seen.body["tools"])
    assert (response.usage.cache_read, response.usage.cache_write) == (1500, 400)


# Calls that come at once


def test_calls_that_share_a_cold_prompt_let_the_first_one_write_it(anthropic: Callable[..., MessagesProvider]) -> None:
    provider, model = anthropic(), Model(name="m", model="anthropic/claude-opus-4-6", parameters={"max_tokens": 9})
    begun, go_on = threading.Event(), threading.Event()

    def hold_up(body: Mapping[str, Any]) -> None:
        begun.set()
        go_on.wait(10)

    provider.before_answer = hold_up
    with opened(model, provider.url) as client:
        trials = [
            threading.Thread(target=client.complete, args=(model, tried(skill)), kwargs={"grows": True})
            for skill in range(3)
        ]
        for trial in trials:
            trial.start()
        begun.wait(10)
        # Those that did not wait would be counted by the time that another prompt, of nothing in common, is answered.
        beside = threading.Thread(target=client.complete, args=(model, grown(3)), kwargs={"grows": True})
        beside.start()
        while len(provider.requests) < 2:
            beside.join(0.05)
        go_on.set()
        for thread in (*trials, beside):
            thread.join(10)
    first, _, *others = [one.counted for one in provider.requests]
    assert first.read == 0
    assert len(others) == 2
    for one in others:
        assert one.written < first.written / 5, "it pays for what its own candidate said and saw"


def tried(skill: int) -> Prefix:
    """What a trial shows the strong model after its candidate's step: all trials of the step share the rest."""
    after = grown(0).respond(Response("", (ToolCall("look", f'{{"skill": "{skill}"}}'),)))
    return after.extend([shelf("call_1", f"skill {skill}")])


def test_a_call_waits_for_one_that_writes_what_both_share_and_for_no_other() -> None:
    warming, order = PromptWarming(Clock()), []
    inside, go_on = threading.Event(), threading.Event()

    def first() -> None:
        with warming.turn(grown(1), lambda seconds: None):
            inside.set()
            go_on.wait(10)
            order.append("first")

    def second() -> None:
        with warming.turn(grown(1), lambda seconds: None):
            order.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    inside.wait(10)
    threads[1].start()
    with warming.turn(grown(3), lambda seconds: None):
        order.append("other")
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert order == ["other", "first", "second"]


def test_a_call_that_fails_gives_the_next_its_turn_and_a_warm_prompt_lets_all_in() -> None:
    clock = Clock()
    warming = PromptWarming(clock)

    def never(seconds: float) -> None:
        raise AssertionError("it had to wait")

    with pytest.raises(Technical), warming.turn(grown(1), never):
        raise Technical("down")
    with warming.turn(grown(1), never):
        pass
    with warming.turn(grown(1), never), warming.turn(grown(1), never):
        pass


def test_a_waiting_call_ends_with_the_run() -> None:
    warming = PromptWarming(Clock())

    class Stopped(Exception):
        pass

    def stop(seconds: float) -> None:
        raise Stopped

    with warming.turn(grown(1), stop), pytest.raises(Stopped), warming.turn(grown(1), stop):
        pass


# An endpoint that does not take marks


def refusing(request: Mapping[str, Any]) -> Answer | Fault:
    """A gateway that knows no `cache_control`."""
    for number, message in enumerate(request["messages"]):
        if "cache_control" in json.dumps(message):
            return error(400, f"messages.{number}.content.0.cache_control: Extra inputs are not permitted")
    return Answer("ok")


def test_an_endpoint_that_refuses_marks_is_asked_without_them_from_then_on(provider: Callable[..., Provider]) -> None:
    one, told = provider({"anthropic/claude-opus-4.6": refusing}), list[str]()
    model = Model(name="m", model="openrouter/anthropic/claude-opus-4.6")
    operation = OperationConfig.model_validate({"endpoints": {"m": {"api_base": one.url}}})
    with Client([model], operation, notify=told.append) as client:
        answers = [client.complete(model, grown(steps), grows=True).response.content for steps in range(3)]
    assert answers == ["ok", "ok", "ok"]
    assert len(one.requests) == 4
    (line,) = told
    assert "m at " in line
    assert "prompt_cache: off" in line


def test_so_it_is_by_the_messages_api(anthropic: Callable[..., MessagesProvider]) -> None:
    provider, model = anthropic(), Model(name="m", model="anthropic/claude-opus-4-6", parameters={"max_tokens": 9})
    provider.takes_marks = False
    with opened(model, provider.url) as client:
        usages = [client.complete(model, grown(steps), grows=True).response.usage for steps in range(2)]
    assert len(provider.requests) == 2
    assert all(usage.cache_read == usage.cache_write == 0 < usage.prompt for usage in usages)


def test_what_a_prompt_says_of_marks_refuses_none(provider: Callable[..., Provider]) -> None:
    quoted = error(400, "Invalid value for messages[1].content: 'set cache_control'")
    one = provider({"anthropic/claude-opus-4.6": lambda request: quoted})
    model = Model(name="m", model="openrouter/anthropic/claude-opus-4.6")
    operation = OperationConfig.model_validate({"endpoints": {"m": {"api_base": one.url}}, "retries": {"attempts": 1}})
    with Client([model], operation) as client, pytest.raises(Technical):
        client.complete(model, grown(1), grows=True)
    assert len(one.requests) == 1


@given(st.integers(0, 4), st.sampled_from(["anthropic/claude-x", "openrouter/anthropic/claude-x"]))
def test_marks_come_off_as_they_went_on(steps: int, name: str) -> None:
    assert unmarked(asked(name, grown(steps))) == asked(name, grown(steps), prompt_cache="off")
