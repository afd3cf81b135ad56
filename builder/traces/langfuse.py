"""Langfuse exports: a trace with its observations, as the page and the API give it, or rows of observations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stepdown.builder.traces.calls import ChatCall, LeftOut, seconds
from stepdown.builder.traces.documents import Record, opened_text
from stepdown.builder.traces.messages import chat_messages

_KINDS = frozenset(
    ("GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
)
_MODELS = ("model", "providedModelName", "provided_model_name", "internalModel")


def is_one(value: Any) -> bool:
    """Whether a record is a trace with observations, or holds some."""
    return any(True for _ in _observations(value))


def calls(record: Record) -> Iterator[ChatCall | LeftOut]:
    """The calls among the observations of a record; what of them can be no step stands in its place."""
    for observation, trace in _observations(record.value):
        if observation.get("type") != "GENERATION":
            continue
        try:
            yield _call(observation, trace)
        except LeftOut as reason:
            yield reason


def _observations(value: Any) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Observations, each with its trace where that is in the record too."""
    if isinstance(value, list):
        for one in value:
            yield from _observations(one)
    elif isinstance(value, Mapping):
        inner = value.get("trace")
        trace = inner if isinstance(inner, Mapping) else value
        listed = value.get("observations") if isinstance(value.get("observations"), list) else trace.get("observations")
        if isinstance(listed, list):
            yield from ((one, trace) for one in listed if isinstance(one, Mapping) and one.get("type") in _KINDS)
        elif isinstance(value.get("data"), list) and "meta" in value:
            yield from _observations(value["data"])
        elif value.get("type") in _KINDS and ("traceId" in value or "trace_id" in value):
            yield value, {}


def _call(observation: Mapping[str, Any], trace: Mapping[str, Any]) -> ChatCall:
    if observation.get("level") == "ERROR":
        raise LeftOut("calls that failed")
    answers = chat_messages(observation.get("output"))
    if isinstance(opened_text(observation.get("output")), str):
        answers = [{"role": "assistant", "content": observation["output"]}]
    if len(answers) > 1:
        raise LeftOut("calls with several answers")
    if not answers or observation.get("input") is None:
        raise LeftOut("calls whose messages were not recorded")
    answer = {"role": "assistant", **answers[0]}
    beside = [opened_text(call) for call in observation.get("tool_calls") or observation.get("toolCalls") or ()]
    if beside and not answer.get("tool_calls") and all(isinstance(call, Mapping) for call in beside):
        answer["tool_calls"] = beside
    return ChatCall(
        chat_messages(observation["input"]),
        answer,
        next((str(observation[name]) for name in _MODELS if observation.get(name)), ""),
        str(observation.get("traceId") or observation.get("trace_id") or trace.get("id") or ""),
        seconds(observation.get("startTime") or observation.get("start_time")),
        {
            **observation,
            "metadata": opened_text(observation.get("metadata")),
            "trace": {**trace, "metadata": opened_text(trace.get("metadata"))},
        },
    )
