"""Which road a model goes, and that what is sent does not depend on it; what the direct one does with a connection."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from benchmarks import calls
from stepdown.builder.config.pool import Model
from stepdown.builder.errors import RunStopped, Technical
from stepdown.builder.models import Client, provider
from stepdown.builder.models.direct import Direct
from stepdown.builder.models.errors import CutOff
from stepdown.builder.models.families import FAMILIES, family_of
from tests.conftest import ROOT, Shop
from tests.provider import Answer, Failing, Fault, Provider
from tests.test_client import HELLO, KEY, always, asked, operation
from tests.workshop import ABILITIES, config

FUNCTION = {
    "name": "f",
    "strict": True,
    "parameters": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"a": {"type": "string", "pattern": "^x$"}, "b": {"type": ["object", "null"]}},
    },
}
SCHEMA = {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "string"}}}
TOOLS: Any = [{"type": "function", "function": FUNCTION}]
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "r", "strict": True, "schema": SCHEMA}}
CALL = {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGES: Any = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "caf\u00e9"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call00001", "name": "f", "content": "r"},
    {"role": "assistant", "content": ""},
    {"role": "user", "content": "go"},
]
ASKED: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 0.7, "max_tokens": 100, "top_p": 0.9, "stop": ["x"]},
    {"seed": 3},
    {"presence_penalty": 0.1, "frequency_penalty": 0.2},
    {"temperature": 1.5},
    {"max_completion_tokens": 50},
    {"top_k": 5, "min_p": 0.1, "repetition_penalty": 1.1},
    {"logit_bias": {"1": 1}},
    {"reasoning_effort": "low"},
    {"reasoning": {"effort": "low"}},
    {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    {"parallel_tool_calls": False},
    {"tools": TOOLS},
    {"response_format": FORMAT},
)
NAMES = {"openai": ("gpt-4o", "m"), "openrouter": ("anthropic/claude-opus-4.6", "openai/gpt-5.4", "qwen/qwen3-coder")}
MOONSHOT = ("kimi-k2.5", "kimi-k3", "moonshot-v1-8k")


def direct_cases() -> Iterator[tuple[str, str]]:
    for family in FAMILIES:
        for name in MOONSHOT if family == "moonshot" else NAMES.get(family, ("m",)):
            yield family, name


@pytest.mark.parametrize(("family", "name"), list(direct_cases()))
def test_what_is_sent_does_not_depend_on_the_road(family: str, name: str) -> None:
    direct, tried = Direct(), 0
    messages = [one for one in MESSAGES if family != "moonshot" or one["role"] != "assistant"]
    with Provider({name: always(Answer("x"))}) as loopback:
        address = {"model": f"{family}/{name}", "api_base": loopback.url, "api_key": "k"}
        for more in ASKED:
            parameters = {key: value for key, value in more.items() if key not in ("tools", "response_format")}
            actions: Any = "json_schema" if "response_format" in more else "tools"
            kin = family_of(Model(name="m", model=f"{family}/{name}", parameters=parameters, actions=actions))
            request = {"messages": messages, **more, **address}
            try:
                provider.ask(json.loads(json.dumps(request)), 10)
            except Exception:  # LiteLLM does not take it, though the provider may
                continue
            if kin is None:
                continue
            direct.ask(kin, request, 10)
            by_library, by_us = loopback.requests[-2:]
            assert by_us.body == by_library.body, more
            assert by_us.key == by_library.key == "k"
            tried += 1
    direct.close()
    assert tried >= 7


def test_providers_are_asked_where_the_library_asks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for family in FAMILIES.values():
        for variable in (*family.base_variables, *family.key_variables):
            monkeypatch.delenv(variable, raising=False)
    library = provider.load_library()
    for name, family in FAMILIES.items():
        *_, address = library.get_llm_provider(f"{name}/m")
        if address is not None:  # it keeps those of OpenAI and OpenRouter elsewhere
            assert (name, family.base) == (name, address)
        for variable in family.base_variables:
            monkeypatch.setenv(variable, "http://elsewhere.example/v1")
            assert family.address() == "http://elsewhere.example/v1"
            monkeypatch.delenv(variable)


@pytest.mark.parametrize(
    ("name", "parameters", "actions", "direct"),
    [
        ("openai/gpt-4o", {}, "tools", True),
        ("openai/my-model", {"thinking": {}}, "tools", True),
        ("openai/openai/gpt-oss-120b", {}, "tools", True),
        ("openai/gpt-5.4", {}, "tools", False),
        ("openai/o3", {}, "tools", False),
        ("openrouter/openai/gpt-5.4", {}, "tools", True),
        ("hosted_vllm/m", {}, "json_schema", True),
        ("hosted_vllm/m", {"thinking": {"type": "enabled"}}, "tools", False),
        ("deepseek/deepseek-chat", {"temperature": 0}, "tools", True),
        ("deepseek/deepseek-chat", {"reasoning_effort": "low"}, "tools", False),
        ("groq/m", {}, "tools", True),
        ("groq/m", {}, "json_schema", False),
        ("anthropic/claude-opus-4-6", {}, "tools", False),
        ("gemini/m", {}, "tools", False),
        ("bedrock/m", {}, "tools", False),
        ("vertex_ai/m", {}, "tools", False),
        ("azure/m", {}, "tools", False),
        ("gpt-4o", {}, "tools", False),
    ],
)
def test_a_model_is_asked_directly_where_its_provider_takes_the_form_as_it_is(
    name: str, parameters: dict[str, Any], actions: Any, direct: bool
) -> None:
    model = Model(name="m", model=name, parameters=parameters, actions=actions)
    assert (family_of(model) is not None) is direct


def test_the_library_neither_prices_a_call_nor_logs_it_in_a_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    library = provider.load_library()
    priced: list[object] = []
    monkeypatch.setattr(library.cost_calculator, "completion_cost", lambda *_, **given: priced.append(given))
    monkeypatch.setattr(library.utils.executor, "submit", lambda *given, **_: priced.append(given))
    assert asked(Answer("x"), family="custom_openai")[0].response.content == "x"
    assert not priced


def test_the_benchmark_of_calls_makes_as_many_as_it_says() -> None:
    line = calls.measured("direct", workers=2, latency=0.0, most=20)
    assert (line["calls"], line["road"], line["workers"]) == (20, "direct", 2)
    assert line["calls_per_s"] > 0
    assert line["cpu_ms_per_call"] > 0


def test_the_road_is_no_part_of_what_a_model_is() -> None:
    assert Model(name="m", model="openai/m").identity == (
        "18229040a36e8746de6584832f7e8a0cf694690867ca0f6a6dbbcc75893bfb41"
    )


def test_a_build_on_endpoints_of_the_openai_form_never_imports_litellm(shop: Shop) -> None:
    with Provider(ABILITIES) as loopback:
        path = shop.write(config(loopback.url, [[0, 1]]))
        code = (
            "import sys; from stepdown.builder.cli.main import main\n"
            f"try: main(['build', {str(path)!r}, '--run', {str(shop.run)!r}])\n"
            "except SystemExit as end: print(end.code, {'litellm', 'openai'} & set(sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "0 set()", done.stderr
    assert shop.labels() == [["low", "mid"]]


def test_connections_are_kept_and_each_is_used_by_one_request_at_a_time() -> None:
    model = Model(name="m", model="openai/m")
    with (
        Provider({"m": always(Answer("x", delay=0.05))}) as loopback,
        Client([model], operation(loopback.url)) as client,
    ):
        for _ in range(5):
            client.complete(model, HELLO)
        assert loopback.connections == 1
        threads = [
            threading.Thread(target=lambda: [client.complete(model, HELLO) for _ in range(4)]) for _ in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert loopback.count() == 5 + 64
        assert loopback.connections <= 16
        assert loopback.most_at_once["m"] == loopback.connections


def test_a_connection_that_the_server_has_closed_is_made_anew_without_an_error() -> None:
    model = Model(name="m", model="openai/m")
    closing = Fault(200, Answer("x").body("m"), {"connection": "close"})
    with Provider({"m": always(closing)}) as loopback, Client([model], operation(loopback.url)) as client:
        completions = [client.complete(model, HELLO) for _ in range(3)]
        assert [completion.attempts for completion in completions] == [(), (), ()]
        assert loopback.connections == 3


@contextmanager
def listening(*sent: bytes) -> Iterator[str]:
    """A server that reads nothing and sends these pieces again and again; its `api_base`."""
    over = threading.Event()

    def send(connection: socket.socket) -> None:
        with connection:
            try:
                for piece in sent:
                    connection.sendall(piece)
                while sent and not over.wait(0.02):
                    connection.sendall(sent[-1])
                over.wait(30)
            except OSError:
                pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)

        def accept() -> None:
            with suppress(OSError):
                send(server.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize(
    "sent",
    [
        (),
        (b"HTTP/1.1 200 OK\r\n", b"x-more: 1\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n",),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n", b" "),
    ],
    ids=["silence", "headers", "interim answers", "chunks", "a body"],
)
@pytest.mark.parametrize("size", [10, 20_000_000], ids=["short", "longer than any buffer"])
def test_no_way_of_answering_slowly_outlasts_the_time_out(sent: tuple[bytes, ...], size: int) -> None:
    direct = Direct()
    request = {"model": "openai/m", "messages": [{"role": "user", "content": "x" * size}], "api_key": "k"}
    with listening(*sent) as address, pytest.raises(CutOff):
        direct.ask(FAMILIES["openai"], {**request, "api_base": address}, 0.4)
    direct.close()


@pytest.mark.parametrize("code", [307, 308])
def test_an_address_that_moved_is_followed_with_the_same_request(code: int) -> None:
    moved = Fault(code, "", {"location": "/v2/chat/completions"})
    completion, loopback = asked(Failing(1, moved, always(Answer("x"))))
    assert completion.response.content == "x"
    assert loopback.requests[0] == loopback.requests[1]


@pytest.mark.parametrize(
    "place", ["http://elsewhere.example/v1/chat/completions", "/v1/login"], ids=["another host", "another page"]
)
def test_a_key_goes_nowhere_else_and_a_move_stops_the_run(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_OWN_VARIABLE", KEY)
    moved = Fault(302 if place.startswith("/") else 307, "", {"location": place})
    with pytest.raises(RunStopped, match=rf"its address has moved, look at its `api_base`: .*moved to {place}"):
        asked(moved, endpoint={"api_key": "MY_OWN_VARIABLE"})


def test_moves_without_end_come_to_an_end() -> None:
    with pytest.raises(RunStopped, match="has moved"):
        asked(Fault(308, "", {"location": "/v1/chat/completions"}))


def test_a_body_is_unpacked_though_none_was_to_be_packed() -> None:
    packed = gzip.compress(json.dumps(Answer("x").body("m")).encode())
    assert asked(Fault(200, packed, {"content-encoding": "gzip"}))[0].response.content == "x"
    with pytest.raises(Technical, match="packed in a way that was not asked for: br"):
        asked(Fault(200, packed, {"content-encoding": "br"}))
    with pytest.raises(Technical, match="packed body is broken"):
        asked(Fault(200, b"no gzip", {"content-encoding": "gzip"}))


def test_a_packed_body_unfolds_to_so_much_and_no_more() -> None:
    bomb = gzip.compress(b" " * (1 << 28))
    with pytest.raises(Technical, match="more than 64 MiB"):
        asked(Fault(200, bomb, {"content-encoding": "gzip"}), retries={"attempts": 1})


def test_half_a_surrogate_is_sent_as_an_escape() -> None:
    direct = Direct()
    messages = [{"role": "user", "content": "a\ud800b"}]
    with Provider({"m": always(Answer("x"))}) as loopback:
        request = {"model": "openai/m", "messages": messages, "api_base": loopback.url, "api_key": "k"}
        direct.ask(FAMILIES["openai"], request, 5)
        assert loopback.requests[0].body["messages"] == messages
    direct.close()


@pytest.mark.parametrize("key", ["sk-one\nsk-two", "sk-\u00e9t\u00e9"])
def test_a_key_that_no_header_can_carry_is_named_and_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_OWN_VARIABLE", key)
    with pytest.raises(RunStopped, match="MY_OWN_VARIABLE is no key") as raised:
        asked(Answer("x"), endpoint={"api_key": "MY_OWN_VARIABLE"})
    assert "sk-" not in str(raised.value)


def test_a_provider_s_own_key_and_address_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with Provider({"m": always(Answer("x"))}) as loopback:
        model, settings = Model(name="m", model="hosted_vllm/m"), operation(loopback.url, endpoint={"api_base": None})
        with Client([model], settings) as client, pytest.raises(RunStopped, match="set its `api_base`"):
            client.complete(model, HELLO)
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", loopback.url)
        monkeypatch.setenv("HOSTED_VLLM_API_KEY", KEY)
        with Client([model], settings) as client:
            client.complete(model, HELLO)
        assert loopback.requests[0].key == KEY


def test_a_provider_s_own_address_is_named_where_it_can_not_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_BASE", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    with pytest.raises(Technical, match=r"connection refused: http://127.0.0.1:9/v1"):
        asked(Answer("x"), family="openrouter", endpoint={"api_base": None}, retries={"attempts": 1})


def test_a_proxy_carries_what_goes_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with Provider({"m": always(Answer("x"))}) as proxy:
        name = proxy.url.removesuffix("/v1").replace("://", "://me:pass@")
        for variable in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(variable, "")
        monkeypatch.setenv("http_proxy", name)
        assert asked(Answer("y"))[0].response.content == "y", "loopback is asked directly"
        model = Model(name="m", model="openai/m")
        with Client([model], operation("http://models.example/v1")) as client:
            assert client.complete(model, HELLO).response.content == "x"
        assert proxy.count() == 1
