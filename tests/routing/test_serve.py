"""The router's server, asked by the real `openai` client and by bare HTTP, in front of a streaming provider."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from click.testing import CliRunner

from stepdown.builder.cli.main import main
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import Pool
from stepdown.routing.policies.contract import Choice, Policy, View
from stepdown.routing.policies.fixed import Always
from stepdown.routing.serve.conversations import SentPrefixes, chain
from stepdown.routing.serve.running import RunningRouter, serve
from tests.routing.streaming import Request, Said, StreamingProvider, streaming

TOOL = {"type": "function", "function": {"name": "write", "parameters": {"type": "object", "properties": {}}}}
USER = [{"role": "user", "content": "write a file"}]


class ByStep:
    """The cheap tier for the first step, the strong one after it."""

    name, version = "by-step", "1"

    def __init__(self) -> None:
        self.seen: list[View] = []

    def choose(self, view: View) -> Choice:
        self.seen.append(view)
        return Choice("low" if view.step == 1 else "high", reason="by step\nx")


class Broken:
    name, version = "broken", "1"

    def choose(self, view: View) -> Choice:
        raise ZeroDivisionError("no words")


def pool_of(*tiers: tuple[str, Sequence[str]]) -> Pool:
    return Pool.model_validate(
        {
            "version": "p",
            "tiers": [
                {
                    "name": name,
                    "id": place,
                    "models": [
                        {
                            "name": model,
                            "model": f"openai/{model}",
                            "price": {"input": 1 + place, "output": 10, "cache_read": 0.1},
                        }
                        for model in models
                    ],
                }
                for place, (name, models) in enumerate(tiers)
            ],
        }
    )


POOL = pool_of(("low", ["small", "spare"]), ("high", ["big"]))


@contextmanager
def routed(
    abilities: Mapping[str, Callable[[Request], Said]], policy: Policy, pool: Pool = POOL, **options: Any
) -> Iterator[tuple[RunningRouter, StreamingProvider]]:
    with streaming(abilities) as provider:
        operation = OperationConfig.model_validate({"endpoints": {"default": {"api_base": provider.url}}})
        with serve(policy, pool, operation, **options) as router:
            yield router, provider


def client_of(router: RunningRouter, key: str = "none") -> Any:
    """The real client; untyped, since its types refuse plain dicts."""
    return openai_client(f"http://{router.address}/v1", key)


def openai_client(base: str, key: str) -> Any:
    return openai.OpenAI(base_url=base, api_key=key, max_retries=0, timeout=60)


def says(text: str = "", *calls: tuple[str, str], **parts: Any) -> Callable[[Request], Said]:
    return lambda request: Said(text, calls, **parts)


def test_tools_and_streams_are_intact_across_a_switch_of_models(tmp_path: Path) -> None:
    policy, log = ByStep(), tmp_path / "log.jsonl"
    arguments = json.dumps({"path": 'ä/"b".txt', "text": "x" * 40})
    abilities = {"small": says("", ("write", arguments)), "big": says("All is done now")}
    with routed(abilities, policy, log=log) as (router, provider):
        client = client_of(router)
        first = client.chat.completions.create(model="auto", messages=USER, tools=[TOOL], stream=True)
        parts = [chunk.choices[0].delta for chunk in first if chunk.choices]
        calls = [call for part in parts for call in part.tool_calls or ()]
        assert "".join(call.function.arguments or "" for call in calls) == arguments
        assistant = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call-0", "type": "function", "function": {"name": "write", "arguments": arguments}}],
        }
        messages = [*USER, assistant, {"role": "tool", "tool_call_id": "call-0", "content": "ok"}]
        second = client.chat.completions.create(model="auto", messages=messages, tools=[TOOL])
    assert second.choices[0].message.content == "All is done now"
    assert [(view.step, len(view.messages)) for view in policy.seen] == [(1, 1), (2, 3)]
    assert [request["model"] for request in provider.requests] == ["small", "big"]
    assert provider.requests[1]["messages"] == messages, "passed on as the client wrote them"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["model"], line["tier"], line["status"], line["ended"]) for line in lines] == [
        ("small", "low", 200, True),
        ("big", "high", 200, True),
    ]
    logged = lines[0]["response"]["choices"][0]["message"]["tool_calls"][0]["function"]
    assert logged == {"name": "write", "arguments": arguments}
    assert lines[0]["usd"] == pytest.approx(lines[0]["response"]["usage"]["prompt_tokens"] * 1e-6)


def test_a_stream_is_passed_on_byte_by_byte_and_usage_only_where_it_was_asked_for() -> None:
    with routed({"big": says("one two three")}, Always("high")) as (router, provider):
        url, body = f"http://{router.address}/v1/chat/completions", {"model": "auto", "messages": USER, "stream": True}
        plain = httpx.post(url, json=body, trust_env=False)
        asked = httpx.post(url, json={**body, "stream_options": {"include_usage": True}}, trust_env=False)
        direct = httpx.post(f"{provider.url}/chat/completions", json={**body, "model": "big"}, trust_env=False)
    assert plain.text == direct.text
    assert plain.headers["x-stepdown-model"] == "big"
    assert '"usage"' in asked.text
    assert '"usage"' not in plain.text


def test_a_client_may_name_a_model_and_no_other() -> None:
    with routed({"spare": says("from the spare one")}, Always("high")) as (router, _):
        client = client_of(router)
        found = client.chat.completions.create(model="spare", messages=USER)
        assert found.choices[0].message.content == "from the spare one"
        assert [model.id for model in client.models.list()] == ["auto", "small", "spare", "big"]
        with pytest.raises(openai.NotFoundError, match="no model 'gpt': auto, small, spare, big"):
            client.chat.completions.create(model="gpt", messages=USER)


@pytest.mark.parametrize("status", [429, 500, 503, 401])
@pytest.mark.parametrize("stream", [False, True])
def test_an_outage_goes_to_the_tiers_others_and_then_to_dearer_tiers(status: int, stream: bool) -> None:
    abilities = {"small": says(status=status), "spare": says(status=503), "big": says("big helps out")}
    with routed(abilities, Always("low")) as (router, provider):
        url = f"http://{router.address}/v1/chat/completions"
        found = httpx.post(url, json={"model": "auto", "messages": USER, "stream": stream}, trust_env=False)
        metrics = httpx.get(f"http://{router.address}/metrics", trust_env=False).text
    assert (found.status_code, found.headers["x-stepdown-model"]) == (200, "big")
    assert [request["model"] for request in provider.requests] == ["small", "spare", "big"]
    assert 'stepdown_router_fallbacks_total{model="small"} 1.0' in metrics


def test_where_nobody_answers_the_client_is_told_and_a_pinned_model_has_no_stand_in() -> None:
    abilities = {name: says(status=503) for name in ("small", "spare", "big")}
    with routed(abilities, Always("low")) as (router, provider):
        client = client_of(router)
        for model, asked in (("auto", 3), ("small", 4)):
            with pytest.raises(openai.InternalServerError, match="no model could be reached"):
                client.chat.completions.create(model=model, messages=USER)
            assert len(provider.requests) == asked


def test_what_the_provider_refuses_goes_back_as_it_is() -> None:
    with routed({"small": says(status=400)}, Always("low")) as (router, provider):
        client = client_of(router)
        with pytest.raises(openai.BadRequestError, match="scripted"):
            client.chat.completions.create(model="auto", messages=USER)
    assert len(provider.requests) == 1, "no other model is asked for a request that is wrong"


def test_an_address_that_nobody_listens_on_is_an_outage() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with streaming({"big": says("here")}) as provider:
        endpoints = {"small": {"api_base": dead}, "spare": {"api_base": dead}, "big": {"api_base": provider.url}}
        operation = OperationConfig.model_validate({"endpoints": endpoints})
        with serve(Always("low"), POOL, operation) as router:
            found = client_of(router).chat.completions.create(model="auto", messages=USER)
    assert found.choices[0].message.content == "here"


def test_a_client_that_leaves_ends_the_call_to_the_provider(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with routed({"big": says("on", endless=True, pause=0.01)}, Always("high"), log=log) as (router, provider):
        stream = client_of(router).chat.completions.create(model="auto", messages=USER, stream=True)
        for _, _ in zip(stream, range(3), strict=False):
            pass
        stream.close()
        _wait_until(lambda: provider.left["big"] == 1 and log.read_text() != "")
    assert json.loads(log.read_text())["ended"] is False


def test_200_streams_at_once_and_none_is_lost() -> None:
    abilities = {"big": lambda request: Said(f"you said {request['messages'][0]['content']}", pause=0.002)}
    with routed(abilities, Always("high")) as (router, provider):
        client = client_of(router)

        def ask(number: int) -> str:
            messages = [{"role": "user", "content": f"number-{number}"}]
            stream = client.chat.completions.create(model="auto", messages=messages, stream=True)
            return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices).strip()

        with ThreadPoolExecutor(200) as threads:
            answers = list(threads.map(ask, range(200)))
    assert answers == [f"you said number-{number}" for number in range(200)]
    assert len(provider.requests) == 200


def test_only_who_has_a_key_gets_in_and_no_page_of_a_browser() -> None:
    with routed({"big": says("in")}, Always("high"), keys=["right"]) as (router, provider):
        with pytest.raises(openai.AuthenticationError):
            client_of(router, "wrong").chat.completions.create(model="auto", messages=USER)
        found = client_of(router, "right").chat.completions.create(model="auto", messages=USER)
        assert found.choices[0].message.content == "in"
        url = f"http://{router.address}/v1/models"
        for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}):
            assert httpx.get(url, headers=headers, trust_env=False).status_code == 403
    assert [headers["Authorization"] for headers in provider.headers] == ["Bearer none"], "a client's key stays here"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "no JSON"),
        (b"[]", "messages"),
        (b'{"messages": []}', "messages"),
        (b'{"messages": [1], "model": "auto"}', "messages"),
        (b'{"messages": [{}], "model": "auto", "n": 2}', "`n` must be 1"),
        (b'{"messages": [{}], "model": "auto", "tools": 5}', "tools"),
        (b"[" * 100_000, "no JSON"),
    ],
)
def test_a_bad_request_is_told_in_the_form_that_clients_read(body: bytes, problem: str) -> None:
    with routed({}, Always("high")) as (router, provider):
        found = httpx.post(f"http://{router.address}/v1/chat/completions", content=body, trust_env=False)
    assert found.status_code == 400
    assert problem in found.json()["error"]["message"]
    assert provider.requests == []


def test_a_policy_that_breaks_is_told_and_the_server_lives_on() -> None:
    with routed({"small": says("yes")}, Broken()) as (router, _):
        client = client_of(router)
        with pytest.raises(openai.InternalServerError, match="policy 'broken' broke: ZeroDivisionError"):
            client.chat.completions.create(model="auto", messages=USER)
        found = client.chat.completions.create(model="small", messages=USER)
        assert found.choices[0].message.content == "yes"


def test_spending_is_kept_over_restarts_and_ends_at_the_budget(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    for calls in (2, 2):
        with routed({"big": says("word " * 100)}, Always("high"), log=log, budget=0.0035) as (router, _):
            for _ in range(calls):
                url = f"http://{router.address}/v1/chat/completions"
                last = httpx.post(url, json={"model": "auto", "messages": USER}, trust_env=False)
    assert last.status_code == 200
    with routed({"big": says("word")}, Always("high"), log=log, budget=0.0035) as (router, provider):
        url = f"http://{router.address}/v1/chat/completions"
        refused = httpx.post(url, json={"model": "auto", "messages": USER}, trust_env=False)
        health = httpx.get(f"http://{router.address}/health", trust_env=False).json()
    assert refused.status_code == 429
    assert "budget" in refused.json()["error"]["message"]
    assert provider.requests == []
    assert health["spent_usd"] == pytest.approx(4 * 0.001, abs=2e-4)


def test_the_policy_sees_what_providers_caches_hold() -> None:
    policy = ByStep()
    with routed({"small": says("first"), "big": says("later")}, policy) as (router, _):
        client = client_of(router)
        messages: list[Any] = list(USER)
        for step in range(3):
            client.chat.completions.create(model="auto", messages=messages)
            messages = [
                *messages,
                {"role": "assistant", "content": f"answer {step}"},
                {"role": "user", "content": f"and {step}?"},
            ]
    held = [{offer.name: offer.cached_tokens for offer in view.models} for view in policy.seen]
    assert held[0] == {"small": 0, "spare": 0, "big": 0}
    assert held[1]["small"] > 0 == held[1]["big"]
    assert held[2]["big"] > held[2]["small"] > 0


def test_prefixes_are_found_by_their_messages_and_forgotten_after_their_life() -> None:
    sent = SentPrefixes()
    short = chain(USER, [])
    longer = chain([*USER, {"role": "assistant", "content": "a"}], [])
    sent.note("m", short, 100, now=0.0)
    assert sent.held("m", longer, 10.0) == (100, 10.0)
    assert sent.held("m", longer, 301.0) == (0, None)
    assert sent.held("n", longer, 10.0) == (0, None)
    assert sent.held("m", chain(USER, [TOOL]), 10.0) == (0, None), "tools stand before all messages"


def test_the_command_serves_until_it_is_told_to_end(tmp_path: Path) -> None:
    with streaming({"big": says("served")}) as provider:
        config = {
            "protocol": {
                "pool": POOL.model_dump(mode="json"),
                "workloads": [{"harness": "qa", "seeds": {"source": "reference"}}],
            },
            "operation": {"endpoints": {"default": {"api_base": provider.url}}},
        }
        (tmp_path / "run.yaml").write_text(json.dumps(config))
        command = [
            sys.executable,
            "-m",
            "stepdown",
            "route",
            "serve",
            "always:high",
            "--pool",
            str(tmp_path / "run.yaml"),
        ]
        process = subprocess.Popen(
            [*command, "--key-env", "ROUTER_KEY"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "ROUTER_KEY": "k"},
        )
        try:
            assert process.stdout is not None
            base = process.stdout.readline().strip()
            found = openai_client(base, "k").chat.completions.create(model="auto", messages=USER)
            assert found.choices[0].message.content == "served"
        finally:
            process.terminate()
            process.wait()
        assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["always:low"], "Missing option '--pool'"),
        (["always:huge", "--pool", "{pool}"], "there is no tier 'huge'"),
        (["nothing", "--pool", "{pool}"], "no such policy"),
        (["always:low", "--pool", "{pool}", "--host", "0.0.0.0"], "--key-env"),
        (["always:low", "--pool", "{pool}", "--key-env", "NOT_SET_AT_ALL"], "NOT_SET_AT_ALL is not set"),
    ],
)
def test_wrong_input_is_one_line(tmp_path: Path, arguments: list[str], problem: str) -> None:
    (tmp_path / "pool.yaml").write_text(json.dumps(POOL.model_dump(mode="json")))
    given = [part.format(pool=tmp_path / "pool.yaml") for part in arguments]
    done = CliRunner().invoke(main, ["route", "serve", *given])
    assert (done.exit_code, problem in done.output) == (2, True), done.output


def _wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)
