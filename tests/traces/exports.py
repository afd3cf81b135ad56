"""One agent's calls, written as each tool writes them. The agent adds up bills with a tool."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from stepdown.builder.records import FIRST, Prefix, Response
from stepdown.examples.till import Till

Message = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call of the agent: what it sent, what came back, and when."""

    run: str
    task: str
    messages: list[Message]
    answer: Message
    at: int
    """Seconds since some day in 2026."""
    model: str = "big"

    @property
    def started(self) -> str:
        return f"2026-03-01T10:{self.at // 60:02d}:{self.at % 60:02d}.250000Z"


def played(bills: Sequence[Sequence[int]], name: str = "reference", model: str = "big") -> list[Call]:
    """Every call that an agent made for these bills, one bill after another."""
    harness = Till()
    found: list[Call] = []
    for instance in harness.instances({"bills": [list(bill) for bill in bills]}):
        with harness.open(instance) as episode:
            going = True
            while going:
                prefix = episode.prefix()
                response = harness.answer(name, instance, prefix, FIRST)
                assert response is not None
                found.append(
                    Call(f"run-{instance.id}", instance.id, _sent(prefix), _message(response), len(found), model)
                )
                going = episode.advance(response)
    return found


def _sent(prefix: Prefix) -> list[Message]:
    """The messages as an agent of somebody's own sends them: with ids of its provider, and a clock for the system."""
    clock = {"role": "system", "content": f"You are a clerk. It is {len(prefix.messages)} o'clock."}
    return [clock, *json.loads(json.dumps(list(prefix.messages)).replace('"call_', '"call_x9'))]


def _message(response: Response) -> Message:
    calls = [
        {"id": "call_x91", "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in response.tool_calls
    ]
    message: Message = {"role": "assistant", "content": response.content or None, "refusal": None}
    return {**message, "tool_calls": calls} if calls else message


# Chat logs


def chat_line(call: Call, **changes: Any) -> dict[str, Any]:
    """A line of a proxy's log."""
    return {
        "timestamp": call.started,
        "request": {"model": call.model, "messages": call.messages, "temperature": 0.2},
        "response": {
            "id": "x",
            "object": "chat.completion",
            "model": f"{call.model}-2026-01-01",
            "choices": _choices(call),
        },
        **changes,
    }


def _choices(call: Call) -> list[dict[str, Any]]:
    return [{"index": 0, "message": call.answer, "finish_reason": "stop"}]


def bodies_line(call: Call) -> dict[str, Any]:
    """A line of a gateway that keeps bodies as texts, and a streamed answer as its events."""
    request = {"model": call.model, "messages": call.messages, "stream": True}
    return {"request_body": json.dumps(request), "response_body": events(call), "created_at": 1772359200 + call.at}


def events(call: Call) -> str:
    """An answer as a stream of events: words letter by letter, the arguments of calls in pieces."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": letter} for letter in call.answer["content"] or ""]
    for index, made in enumerate(call.answer.get("tool_calls", ())):
        name, arguments = made["function"]["name"], made["function"]["arguments"]
        deltas.append({"tool_calls": [{"index": index, "id": made["id"], "function": {"name": name, "arguments": ""}}]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in arguments]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def beside_line(call: Call) -> dict[str, Any]:
    """A line of a logger that has messages and response beside each other."""
    return {"id": "x", "model": call.model, "messages": call.messages, "response": {"choices": _choices(call)}}


# OpenTelemetry


def otlp(calls: Sequence[Call]) -> dict[str, Any]:
    """A request of OTLP in JSON, with a span around the calls of a run that is no call."""
    spans: list[dict[str, Any]] = [
        {"traceId": "0a" * 16, "spanId": "0b" * 8, "name": "GET /", "attributes": [], "status": {}}
    ]
    for call in calls:
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": call.model,
            "gen_ai.conversation.id": call.run,
            "gen_ai.input.messages": json.dumps([_parts(message) for message in call.messages]),
            "gen_ai.output.messages": json.dumps([{**_parts(call.answer), "finish_reason": "stop"}]),
        }
        spans.append(
            {
                "traceId": "0c" * 16,
                "spanId": "0d" * 8,
                "name": f"chat {call.model}",
                "startTimeUnixNano": str((1772359200 + call.at) * 10**9),
                "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
                "status": {"code": 1},
            }
        )
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}


def _parts(message: Message) -> dict[str, Any]:
    if message["role"] == "tool":
        part = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
        return {"role": "tool", "parts": [part]}
    parts: list[dict[str, Any]] = [{"type": "text", "content": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls", ()):
        arguments = json.loads(call["function"]["arguments"])
        parts.append({"type": "tool_call", "id": call["id"], "name": call["function"]["name"], "arguments": arguments})
    return {"role": message["role"], "parts": parts}


def console_span(call: Call, prompt: str = "gen_ai.prompt", answer: str = "gen_ai.completion") -> dict[str, Any]:
    """A span as the Python SDK prints it, with numbered messages."""
    attributes: dict[str, Any] = {"gen_ai.request.model": call.model, "gen_ai.operation.name": "chat"}
    for name, messages in ((prompt, call.messages), (answer, [call.answer])):
        for place, message in enumerate(messages):
            attributes[f"{name}.{place}.role"] = message["role"]
            if message.get("content"):
                attributes[f"{name}.{place}.content"] = message["content"]
            for number, made in enumerate(message.get("tool_calls", ())):
                attributes[f"{name}.{place}.tool_calls.{number}.id"] = made["id"]
                attributes[f"{name}.{place}.tool_calls.{number}.name"] = made["function"]["name"]
                attributes[f"{name}.{place}.tool_calls.{number}.arguments"] = made["function"]["arguments"]
    context = {"trace_id": f"0x{call.run}", "span_id": "0x0d", "trace_state": "[]"}
    return {
        "name": "openai.chat",
        "context": context,
        "parent_id": None,
        "start_time": call.started,
        "status": {"status_code": "UNSET"},
        "attributes": attributes,
        "events": [],
    }


# Langfuse


def langfuse_trace(calls: Sequence[Call]) -> dict[str, Any]:
    """A trace with its observations, as the page gives it."""
    around = {
        "id": "s",
        "traceId": calls[0].run,
        "type": "SPAN",
        "name": "agent",
        "input": "go",
        "startTime": calls[0].started,
    }
    trace: dict[str, Any] = {"id": calls[0].run, "name": "agent", "metadata": None, "scores": []}
    return {"trace": trace, "observations": [around, *map(langfuse_observation, calls)]}


def langfuse_observation(call: Call) -> dict[str, Any]:
    return {
        "id": f"g-{call.at}",
        "traceId": call.run,
        "type": "GENERATION",
        "name": "OpenAI-generation",
        "startTime": call.started,
        "model": call.model,
        "input": {"messages": call.messages, "tools": []},
        "output": call.answer,
        "level": "DEFAULT",
        "parentObservationId": "s",
        "metadata": {},
    }


def langfuse_row(call: Call) -> dict[str, Any]:
    """A row of the export to a bucket: names with underscores, values as texts."""
    return {
        "id": f"g-{call.at}",
        "trace_id": call.run,
        "type": "GENERATION",
        "start_time": call.started.replace("T", " ").removesuffix("Z"),
        "provided_model_name": call.model,
        "input": json.dumps(call.messages),
        "output": json.dumps(call.answer),
        "metadata": json.dumps({"task_id": call.task}),
    }


# LangSmith


def langsmith_run(call: Call) -> dict[str, Any]:
    """A run of a chat model of LangChain."""
    return {
        "id": f"r-{call.at}",
        "name": "ChatOpenAI",
        "run_type": "llm",
        "trace_id": call.run,
        "start_time": call.started.removesuffix("Z"),
        "status": "success",
        "error": None,
        "extra": {"metadata": {"ls_model_name": call.model}, "invocation_params": {"model": call.model}},
        "inputs": {"messages": [[_constructed(message) for message in call.messages]]},
        "outputs": {
            "generations": [[{"text": "", "type": "ChatGeneration", "message": _constructed(call.answer)}]],
            "llm_output": None,
        },
    }


def _constructed(message: Message) -> dict[str, Any]:
    names = {"system": "SystemMessage", "user": "HumanMessage", "assistant": "AIMessage", "tool": "ToolMessage"}
    fields: dict[str, Any] = {"content": message.get("content") or "", "type": message["role"]}
    if message["role"] == "tool":
        fields["tool_call_id"] = message["tool_call_id"]
    if message.get("tool_calls"):
        fields["tool_calls"] = [
            {
                "name": call["function"]["name"],
                "args": json.loads(call["function"]["arguments"]),
                "id": call["id"],
                "type": "tool_call",
            }
            for call in message["tool_calls"]
        ]
    path = ["langchain", "schema", "messages", names[message["role"]]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}


def langsmith_wrapped(call: Call) -> dict[str, Any]:
    """A run of a wrapped client of OpenAI, as the command line tool exports it."""
    return {
        "run_id": f"r-{call.at}",
        "trace_id": call.run,
        "name": "ChatOpenAI",
        "run_type": "llm",
        "start_time": call.started,
        "status": "success",
        "custom_metadata": {"ls_model_name": call.model},
        "inputs": {"messages": call.messages, "model": call.model},
        "outputs": {"id": "x", "choices": _choices(call)},
        "error": None,
    }


# Inspect


def inspect_log(calls: Sequence[Call], **changes: Any) -> dict[str, Any]:
    """A log in JSON."""
    samples = [_sample(run, **changes) for run in runs(calls)]
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "till", "model": f"openai/{calls[0].model}"},
        "samples": samples,
    }


def inspect_zip(calls: Sequence[Call], in_pieces: bool = False) -> bytes:
    """A log in a zip, a file a sample, or several for a large one."""
    packed = BytesIO()
    whole = inspect_log(calls)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as log:
        for sample in whole.pop("samples"):
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}"
            if not in_pieces:
                log.writestr(f"{name}.json", json.dumps(sample))
                continue
            messages, texts = sample.pop("messages"), sample.pop("attachments")
            ordered = dict(zip(texts, range(len(texts)), strict=True))
            text = json.dumps(messages)
            for digest, place in ordered.items():
                text = text.replace(f"attachment://{digest}", f"attachment://{place}")
            log.writestr(f"{name}/sample.json", json.dumps(sample))
            for start, message in enumerate(json.loads(text)):
                log.writestr(f"{name}/messages/{start}.json", json.dumps([message]))
            log.writestr(f"{name}/attachments/0.json", json.dumps(list(texts.values())))
            log.writestr(f"{name}/events/0.json", "[]")
        log.writestr("header.json", json.dumps(whole))
    return packed.getvalue()


def runs(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """The calls of each run."""
    for name in dict.fromkeys(call.run for call in calls):
        yield [call for call in calls if call.run == name]


def _sample(run: Sequence[Call], **changes: Any) -> dict[str, Any]:
    texts: dict[str, str] = {}
    messages: list[Message] = []
    for message in [*run[-1].messages, run[-1].answer]:
        made: Message = {"id": str(len(messages)), "role": message["role"], "content": message.get("content") or ""}
        if message["role"] == "assistant":
            made |= {"source": "generate", "model": f"{run[-1].model}-2026-01-01"}
        elif message["role"] == "user":
            texts["f00d"] = message["content"]
            made |= {"source": "input", "content": "attachment://f00d"}
        if message.get("tool_calls"):
            made["tool_calls"] = [
                {"id": call["id"], "function": call["function"]["name"], "type": "function"}
                | {"arguments": json.loads(call["function"]["arguments"])}
                for call in message["tool_calls"]
            ]
        messages.append(made)
    sample = {"id": run[0].task, "epoch": 1, "messages": messages, "scores": {}, "events": [], "attachments": texts}
    return {**sample, **changes}
