"""LangSmith runs: JSON lines, a list, or a tree with `child_runs`; runs of the type `llm` are the calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stepdown.builder.traces.calls import ChatCall, LeftOut, seconds
from stepdown.builder.traces.documents import Record, at, opened_text
from stepdown.builder.traces.messages import chat_messages

_MODELS: tuple[tuple[str | int, ...], ...] = (
    ("extra", "metadata", "ls_model_name"),
    ("extra", "invocation_params", "model"),
    ("extra", "invocation_params", "model_name"),
    ("custom_metadata", "ls_model_name"),
    ("inputs", "model"),
    ("outputs", "llm_output", "model_name"),
    ("outputs", "generations", 0, 0, "message", "kwargs", "response_metadata", "model_name"),
    ("outputs", "model"),
)


def is_one(value: Any) -> bool:
    """Whether a record is a run, or holds some."""
    return any(True for _ in _runs(value))


def calls(record: Record) -> Iterator[ChatCall | LeftOut]:
    """The calls among the runs of a record; what of them can be no step stands in its place."""
    for run in _runs(record.value):
        if run.get("run_type") != "llm":
            continue
        try:
            yield _call(run)
        except LeftOut as reason:
            yield reason


def _runs(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        for one in value:
            yield from _runs(one)
    elif isinstance(value, Mapping):
        if "run_type" in value:
            yield value
            yield from _runs(value.get("child_runs"))
        elif isinstance(value.get("runs"), list):
            yield from _runs(value["runs"])


def _call(run: Mapping[str, Any]) -> ChatCall:
    if run.get("error") or run.get("status") in ("error", "pending"):
        raise LeftOut("calls that failed")
    run = {**run, "inputs": opened_text(run.get("inputs")), "outputs": opened_text(run.get("outputs"))}
    sent = at(run, "inputs", "messages")
    if sent is None:
        raise LeftOut("calls whose messages were not recorded")
    model = next((text for path in _MODELS if isinstance(text := at(run, *path), str) and text), "")
    return ChatCall(
        chat_messages(sent),
        _answer(run["outputs"]),
        model,
        str(run.get("trace_id") or ""),
        seconds(run.get("start_time")),
        run,
    )


def _answer(outputs: Any) -> Mapping[str, Any]:
    """The message that a run gave: LangChain's generations, a chat API's choices, or messages."""
    generations = at(outputs, "generations")
    if isinstance(generations, list) and generations:
        answers = generations[0] if isinstance(generations[0], list) else generations
        answers = [one.get("message") or {"role": "assistant", "content": one.get("text")} for one in answers if one]
    elif isinstance(choices := at(outputs, "choices"), list):
        answers = [at(choice, "message") for choice in choices]
    elif isinstance(outputs, Mapping):
        answers = outputs.get("messages") or [outputs.get("message") or outputs.get("output") or outputs]
    else:
        answers = []
    found = chat_messages(answers)
    if len(found) > 1:
        raise LeftOut("calls with several answers")
    if not found:
        raise LeftOut("calls without an answer")
    return {**found[0], "role": "assistant"}
