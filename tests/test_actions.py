"""Rendering one canonical action form for each kind of model, and reading it back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepdown.builder.actions import ADAPTER_VERSION, Raw, parsed, rendered
from stepdown.builder.actions.bounded import bounded
from stepdown.builder.actions.forms import DEEPEST_ARGUMENTS, Unparsable, read_json
from stepdown.builder.actions.json_schema import reply_name, response_schema
from stepdown.builder.actions.listing import listing
from stepdown.builder.actions.tools import provider_names
from stepdown.builder.config.pool import Model
from stepdown.builder.records import Prefix, Response, ToolCall, digest

TAKEN_BY_PROVIDERS = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80).filter(str.strip)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
hostile = st.text(max_size=60) | json_values.map(json.dumps) | st.text('{}[]":,ab1\\ud8e+', max_size=40)


def tool(name: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters or {}}}


def prefix_of(tools: list[str], calls: list[str] = ()) -> Prefix:  # type: ignore[assignment]
    prefix = Prefix.start([{"role": "user", "content": "go"}], [tool(name) for name in tools])
    for number, name in enumerate(calls, 1):
        prefix = prefix.respond(Response("", (ToolCall(name, "{}"),)))
        prefix = prefix.extend([{"role": "tool", "tool_call_id": f"call_{number}", "content": "ok"}])
    return prefix


@given(st.lists(names, unique=True, min_size=1, max_size=8), st.lists(names, max_size=4))
def test_every_name_is_taken_by_providers_and_comes_back(tools: list[str], called: list[str]) -> None:
    prefix = prefix_of(tools, called)
    request = rendered("tools", prefix)
    sent = [each["function"]["name"] for each in request.tools]
    assert len(set(sent)) == len(sent)
    assert all(TAKEN_BY_PROVIDERS.match(name) for name in sent)
    for message in request.messages:
        for call in message.get("tool_calls", ()):
            assert TAKEN_BY_PROVIDERS.match(call["function"]["name"])
            assert re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"])
    back = parsed("tools", prefix, Raw("", tuple((name, "{}") for name in sent)))
    assert [call.name for call in back.tool_calls] == tools


@given(st.lists(names, unique=True, min_size=1, max_size=8), st.lists(names, max_size=4))
def test_the_names_of_tools_do_not_depend_on_what_was_called(tools: list[str], called: list[str]) -> None:
    before, after = provider_names(prefix_of(tools)), provider_names(prefix_of(tools, called))
    assert {name: after[name] for name in tools} == before


def test_names_that_would_collide_are_told_apart() -> None:
    assert provider_names(prefix_of(["a.b", "a_b", "a b", "7"])) == {
        "a_b": "a_b",
        "a.b": "a_b_2",
        "a b": "a_b_3",
        "7": "_7",
    }


def test_ids_of_calls_and_results_go_together() -> None:
    messages = rendered("tools", prefix_of(["f"], ["f", "f"])).messages
    assert [m["tool_calls"][0]["id"] for m in messages[1::2]] == [m["tool_call_id"] for m in messages[2::2]]


def test_arguments_left_out_of_a_call_without_any_are_an_empty_object() -> None:
    assert parsed("tools", prefix_of(["f"]), Raw("", (("f", " "),))).tool_calls == (ToolCall("f", "{}"),)


@pytest.mark.parametrize("actions", ["tools", "json_schema"])
@given(content=hostile, name=st.none() | st.text(max_size=9), arguments=hostile)
def test_whatever_a_model_writes_is_read_without_a_crash(
    actions: Any, content: str, name: str | None, arguments: str
) -> None:
    prefix = prefix_of(["f", "g.h"])
    calls = ((name, arguments),) if actions == "tools" else ()
    answer = parsed(actions, prefix, Raw(content, calls))
    assert not (answer.malformed and answer.tool_calls)
    for call in answer.tool_calls:
        assert isinstance(json.loads(call.arguments), dict)
    digest([answer.content, [[call.name, call.arguments] for call in answer.tool_calls]])
    rendered(actions, prefix.respond(Response(answer.content, answer.tool_calls, malformed=answer.malformed)))


@given(json_values.filter(lambda value: isinstance(value, dict)))
def test_arguments_keep_their_value(value: Any) -> None:
    try:
        read_json(json.dumps(value))
    except Unparsable:
        return
    answer = parsed("tools", prefix_of(["f"]), Raw("", (("f", json.dumps(value)),)))
    assert json.loads(answer.tool_calls[0].arguments) == value


def test_depth_has_a_limit_of_our_own() -> None:
    def nested(depth: int) -> str:
        return "[" * depth + "]" * depth

    assert read_json(nested(DEEPEST_ARGUMENTS - 1))
    with pytest.raises(Unparsable):
        read_json(nested(DEEPEST_ARGUMENTS + 2))


# The JSON schema in place of tools.


def answer_of(prefix: Prefix, text: str) -> Any:
    return parsed("json_schema", prefix, Raw(text))


def test_a_call_several_calls_and_words_are_read_back() -> None:
    prefix = prefix_of(["math.add"])
    one = '{"function": "math.add", "arguments": {"a": 1}}'
    assert answer_of(prefix, one).tool_calls == (ToolCall("math.add", '{"a": 1}'),)
    assert len(answer_of(prefix, f"[{one}, {one}]").tool_calls) == 2
    words = answer_of(prefix, '{"function": "reply", "arguments": {"text": "done"}}')
    assert (words.content, words.tool_calls, words.malformed) == ("done", (), False)
    assert answer_of(prefix, "").malformed is False


@pytest.mark.parametrize(
    "text",
    [
        '{"function": "math.add", "argum',
        "words",
        "[]",
        "3",
        '{"function": 3, "arguments": {}}',
        '{"function": "f", "arguments": []}',
        '{"function": "f"}',
        '{"function": "reply", "arguments": "x"}',
        '[{"function": "f", "arguments": {}}, 4]',
        '{"function": "f", "arguments": {"a": "\\ud800"}}',
        "[" * 5000,
    ],
)
def test_an_answer_outside_the_schema_is_malformed_and_kept(text: str) -> None:
    answer = answer_of(prefix_of(["f"]), text)
    assert answer.malformed
    assert answer.content == text


def test_what_a_model_said_is_shown_to_the_next_in_its_own_form() -> None:
    prefix = Prefix.start(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"}], [tool("f"), tool("reply")]
    )
    prefix = prefix.respond(Response("", (ToolCall("f", '{"a": 1}'), ToolCall("reply", "{}"))))
    prefix = prefix.extend(
        [
            {"role": "tool", "tool_call_id": "call_1", "content": "11"},
            {"role": "tool", "tool_call_id": "call_2", "content": "12"},
        ]
    )
    prefix = prefix.respond(Response("done")).extend([{"role": "user", "content": "two"}])
    messages = rendered("json_schema", prefix).messages
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert messages[0]["content"].startswith("Be brief.\n\nFunctions:\n")
    assert messages[3]["content"] == "f returned: 11\nreply returned: 12"
    assert reply_name(prefix) == "reply_", "a tool of that name keeps it"
    said = answer_of(prefix, messages[2]["content"])
    assert said.tool_calls == (ToolCall("f", '{"a": 1}'), ToolCall("reply", "{}"))
    assert answer_of(prefix, messages[4]["content"]).content == "done"


def test_without_tools_it_is_plain_chat() -> None:
    prefix = Prefix.start([{"role": "user", "content": "hi"}]).respond(Response("hello"))
    request = rendered("json_schema", prefix)
    assert request.response_format is None
    assert request.messages == list(prefix.messages)
    assert answer_of(prefix, '{"function": 1}').content == '{"function": 1}'


def test_the_schema_sent_ends_everywhere() -> None:
    parameters = {
        "type": "object",
        "properties": {
            "s": {"type": "string", "pattern": "(?=x)", "format": "date"},
            "list": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "either": {"type": ["string", "null"]},
            "node": {"$ref": "#/$defs/node"},
            "lost": {"$ref": "#/$defs/nowhere"},
            "both": {"allOf": [{"$ref": "#/$defs/node"}, {"properties": {"z": {"type": "integer"}}}]},
            "free": {"type": "object"},
            "any": {},
            "pick": {"enum": [1, None, "x"]},
        },
        "required": ["s", "gone"],
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    }
    schema = bounded(parameters)
    assert schema["required"] == ["s"]
    assert schema["properties"]["s"] == {"type": "string", "maxLength": 120}
    assert schema["properties"]["list"]["maxItems"] == 8
    assert set(schema["properties"]["both"]["properties"]) == {"next", "z"}
    text = json.dumps(schema)
    assert not re.search(r"\$ref|pattern|format|unique|allOf", text)
    assert text.count('"type": "string"') == text.count('"maxLength"')


@settings(max_examples=200)
@given(json_values, json_values)
def test_any_schema_is_bounded_without_a_crash(value: Any, other: Any) -> None:
    for keyword in ("properties", "items", "anyOf", "allOf", "enum", "type", "$ref", "required"):
        bounded({"type": "object", keyword: value, "properties": {"a": other}})
        bounded({keyword: value})


def test_a_function_without_parameters_takes_none() -> None:
    schema = response_schema(prefix_of(["f"]))
    assert schema["anyOf"][0]["properties"]["arguments"]["additionalProperties"] is False


def test_requests_change_only_with_the_adapter_s_version() -> None:
    """Cached answers belong to a request: whoever changes what is sent raises the version and this digest."""
    parameters = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"],
    }
    prefix = Prefix.start(
        [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], [tool("x.y", parameters)]
    )
    prefix = prefix.respond(Response("t", (ToolCall("x.y", '{"a": 1}'),)))
    prefix = prefix.extend([{"role": "tool", "tool_call_id": "call_1", "content": "r"}])
    for actions in ("tools", "json_schema"):
        request = rendered(actions, prefix)
        sent = digest([request.messages, request.tools, request.response_format])[:12]
        assert (ADAPTER_VERSION[actions], sent) == GOLDEN[actions]


GOLDEN = {"tools": (1, "8d4432e0c07b"), "json_schema": (2, "c362f86051cf")}


def test_the_adapter_is_part_of_what_a_model_is() -> None:
    one, other = (Model(name="m", model="p/m", actions=actions) for actions in ("tools", "json_schema"))
    assert one.identity != other.identity


def test_many_functions_are_listed_by_signature_without_their_common_preamble() -> None:
    preamble = "This tool belongs to the file system, which keeps files. Tool description: "
    parameters = {
        "properties": {"a": {"type": "string"}, "b": {"enum": ["x", 1]}, "c": {"type": "array", "items": {}}, "d": 3},
        "required": ["a"],
    }
    functions = [
        {
            "name": f"f{number}",
            "description": f"{preamble}Does thing {number} " + "well " * 30,
            "parameters": parameters,
        }
        for number in range(20)
    ]
    few, many = listing(functions[:2]), listing(functions)
    assert json.loads(few.splitlines()[0]) == functions[0]
    assert many.splitlines()[3].startswith('f3(a: string, b?: "x"|1, c?: any[], d?: any): Does thing 3 well')
    assert len(many) < 4000


BASH = tool("bash", {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]})


def text_prefix(*said: Response) -> Prefix:
    prefix = Prefix.start([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "go"}], [BASH])
    for number, response in enumerate(said, 1):
        prefix = prefix.respond(response)
        prefix = prefix.extend([{"role": "tool", "tool_call_id": f"call_{number}", "content": f"result {number}"}])
    return prefix


def test_text_models_are_told_of_tools_and_see_calls_as_blocks() -> None:
    command = "echo \"a\"\ncat <<'X'\nb\nX"
    request = rendered("text", text_prefix(Response("I look.", (ToolCall("bash", json.dumps({"command": command})),))))
    assert request.tools == []
    assert request.response_format is None
    system, user, assistant, result = request.messages
    assert system["content"].startswith("Be brief.")
    assert "```mswea_bash_command\nyour command here\n```" in system["content"]
    assert assistant["content"] == f"I look.\n\n```mswea_bash_command\n{command}\n```"
    assert (user["content"], result) == ("go", {"role": "user", "content": "result 1"})


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(lambda text: "```" not in text))
def test_a_command_comes_back_from_its_block_as_it_was(command: str) -> None:
    call = ToolCall("bash", json.dumps({"command": command.strip() or "x"}, ensure_ascii=False))
    request = rendered("text", text_prefix(Response("Words.", (call,))))
    back = parsed("text", text_prefix(), Raw(request.messages[2]["content"]))
    assert (back.content, back.tool_calls, back.malformed) == ("Words.", (call,), False)


@pytest.mark.parametrize(
    "answer",
    [
        "```mswea_bash_command\nls\n```\n```mswea_bash_command\ncat x\n```",
        "```mswea_bash_command\nls",
        "```mswea_python_command\nnot json\n```",
    ],
    ids=["two", "no end", "another tool without arguments"],
)
def test_a_text_answer_that_is_not_one_block_is_malformed_and_kept(answer: str) -> None:
    back = parsed("text", text_prefix(), Raw(answer))
    assert (back.content, back.tool_calls, back.malformed) == (answer, (), True)


@pytest.mark.parametrize("answer", ["I am done.", "```bash\nls\n```", "Write ```mswea_bash_command in a line."])
def test_a_text_answer_without_a_block_is_words(answer: str) -> None:
    back = parsed("text", text_prefix(), Raw(answer))
    assert (back.content, back.tool_calls, back.malformed) == (answer, (), False)


def test_a_text_model_gives_other_tools_their_arguments_as_json() -> None:
    prefix = Prefix.start([{"role": "user", "content": "go"}], [tool("move", {"properties": {"x": {}, "y": {}}})])
    back = parsed("text", prefix, Raw('```mswea_move_command\n{"x": 1, "y": 2}\n```'))
    assert back.tool_calls == (ToolCall("move", '{"x": 1, "y": 2}'),)


@given(hostile)
def test_reading_a_text_answer_never_raises(answer: str) -> None:
    back = parsed("text", text_prefix(), Raw(f"```mswea_bash_command\n{answer}\n```"))
    assert back.content == back.content.encode().decode()
