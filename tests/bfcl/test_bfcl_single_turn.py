from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from stepdown.builder.records import Response, ToolCall, Verdict
from stepdown.harnesses.bfcl import BFCL
from stepdown.harnesses.bfcl.data import RELEVANCE, SINGLE_TURN
from tests.bfcl.bfcl_play import call, one, played, reference, scripted

# No response passes the official checker for these: a list with no accepted alternative, a parameter that the
# function does not have, or numbers and words in a Java list that is read as text.
UNPASSABLE = {
    "simple_java_36",
    "simple_java_65",
    "live_simple_106-63-0",
    "live_simple_112-68-0",
    "live_multiple_862-181-3",
    "live_multiple_964-207-0",
}
TRIANGLE = "simple_python_0"


@pytest.mark.parametrize("category", SINGLE_TURN)
def test_the_reference_passes_every_entry_that_can_be_passed(bfcl: BFCL, category: str) -> None:
    failed = {
        instance.id
        for instance in bfcl.instances({"categories": {category: "all"}})
        if played(bfcl, instance, reference(bfcl, instance))[0] is not Verdict.PASS
    }
    assert failed == {name for name in UNPASSABLE if name.rsplit("_", 1)[0] == category}


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (call("calculate_triangle_area", base=11, height=5), "Invalid value for parameter 'base': 11"),
        (call("calculate_triangle_area", base="10", height=5), "Incorrect type for parameter 'base'"),
        (call("calculate_triangle_area", base=10), "Missing required parameter: 'height'"),
        (call("calculate_triangle_area", base=10, height=5, color="red"), "Unexpected parameter: 'color'"),
        (call("calculate_circle_area", base=10, height=5), "not found in model output"),
        (Response("The area is 25."), "no readable call"),
        (Response(tool_calls=(ToolCall("calculate_triangle_area", "{"),)), "no readable call"),
        (Response(tool_calls=(ToolCall("calculate_triangle_area", "[10, 5]"),)), "no readable call"),
        (Response(""), "no readable call"),
    ],
)
def test_a_wrong_response_fails_with_the_checkers_error(bfcl: BFCL, response: Response, reason: str) -> None:
    verdict, why = played(bfcl, one(bfcl, TRIANGLE), scripted([response]))
    assert verdict is Verdict.FAIL
    assert reason in why


def test_a_call_too_many_and_a_call_missing_fail(bfcl: BFCL) -> None:
    instance = one(bfcl, "parallel_0")
    response = bfcl.answer("reference", instance, prefix_of(bfcl, "parallel_0"))
    assert response is not None
    calls = response.tool_calls
    for wrong in (calls[:-1], (*calls, calls[0])):
        verdict, why = played(bfcl, instance, scripted([replace(response, tool_calls=wrong)]))
        assert verdict is Verdict.FAIL
        assert "Wrong number of functions" in why
    assert played(bfcl, instance, scripted([replace(response, tool_calls=calls[::-1])]))[0] is Verdict.PASS


@pytest.mark.parametrize("category", RELEVANCE)
def test_relevance_asks_only_whether_a_call_was_made(bfcl: BFCL, category: str) -> None:
    wants_call = category == "live_relevance"
    for instance in bfcl.instances({"categories": {category: 5}}):
        assert bfcl.answer("reference", instance, prefix_of(bfcl, instance.id)) is None
        silent = played(bfcl, instance, scripted([Response("I cannot help with that.")]))
        called = played(bfcl, instance, scripted([call("anything")]))
        unreadable = played(bfcl, instance, scripted([Response(tool_calls=(ToolCall("f", "{no"),))]))
        assert (called[0] is Verdict.PASS) is wants_call
        assert (silent[0] is Verdict.PASS) is not wants_call
        assert unreadable[0] is silent[0]


def test_names_keep_their_dots_and_grade_as_they_are(bfcl: BFCL) -> None:
    instance = one(bfcl, "simple_python_2")
    names = [tool["function"]["name"] for tool in prefix_of(bfcl, instance.id).tools]
    assert names == ["math.hypot"]
    assert played(bfcl, instance, scripted([call("math.hypot", x=4, y=5)]))[0] is Verdict.PASS
    assert played(bfcl, instance, scripted([call("math_hypot", x=4, y=5)]))[0] is Verdict.FAIL


def test_java_values_are_source_text(bfcl: BFCL) -> None:
    instance = one(bfcl, "simple_java_1")
    response = bfcl.answer("reference", instance, prefix_of(bfcl, instance.id))
    assert response is not None
    arguments = json.loads(response.tool_calls[0].arguments)
    assert all(isinstance(value, str) for value in arguments.values())
    tool = prefix_of(bfcl, instance.id).tools[0]["function"]
    assert "Java 8 SDK syntax" in tool["description"]
    assert {spec["type"] for spec in tool["parameters"]["properties"].values()} == {"string"}


@pytest.mark.parametrize("category", [*SINGLE_TURN, *RELEVANCE])
def test_parameters_are_standard_json_schema(bfcl: BFCL, category: str) -> None:
    for instance in bfcl.instances({"categories": {category: "all"}}):
        with bfcl.open(instance) as episode:
            for tool in episode.prefix().tools:
                assert tool["type"] == "function"
                assert set(tool["function"]) == {"name", "description", "parameters"}
                standard(tool["function"]["parameters"])


def standard(schema: dict[str, Any]) -> None:
    """Only keywords of JSON Schema, only its types, and nothing required or enumerated that could not be given."""
    known = {"type", "properties", "required", "items", "enum", "description", "default", "minimum", "maximum"}
    assert set(schema) <= known | {"minItems", "maxItems", "format"}
    python: dict[str, type | tuple[type, ...]] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
    }
    assert schema["type"] in python
    assert set(schema.get("required", ())) <= set(schema.get("properties", ()))
    assert all(isinstance(choice, python[schema["type"]]) for choice in schema.get("enum", ()))
    for inner in schema.get("properties", {}).values():
        standard(inner)
    if "items" in schema:
        standard(schema["items"])


def test_the_accepted_answers_stay_out_of_the_prefix(bfcl: BFCL) -> None:
    instance = one(bfcl, "simple_python_20")
    prefix = prefix_of(bfcl, instance.id)
    assert list(prefix.messages) == instance.task["entry"]["question"][0]
    assert "ground_truth" not in json.dumps([prefix.messages, prefix.tools])


def test_system_messages_are_kept(bfcl: BFCL) -> None:
    systems = [
        instance
        for instance in bfcl.instances({"categories": {"live_multiple": "all"}})
        if instance.task["entry"]["question"][0][0]["role"] == "system"
    ]
    assert systems
    assert prefix_of(bfcl, systems[0].id).messages[0]["role"] == "system"


def test_an_episode_takes_one_response_and_resumes_from_a_checkpoint(bfcl: BFCL) -> None:
    instance = one(bfcl, TRIANGLE)
    with bfcl.open(instance) as episode:
        assert episode.verdict().verdict is Verdict.INCOMPLETE
        assert episode.doomed() is None
        before = episode.checkpoint()
        assert not episode.advance(Response("no"))
        assert episode.doomed() == episode.verdict()
        after = episode.checkpoint()
    with bfcl.open(instance, before) as episode:
        assert not episode.advance(call("calculate_triangle_area", base=10, height=5))
        assert (episode.verdict().verdict, episode.doomed()) == (Verdict.PASS, None)
    with bfcl.open(instance, after) as episode:
        assert episode.verdict().verdict is Verdict.FAIL


def prefix_of(harness: BFCL, name: str) -> Any:
    with harness.open(one(harness, name)) as episode:
        return episode.prefix()
