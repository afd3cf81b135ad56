"""Calls that a server left in the text of an answer, in every family's markers; texts that only speak of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.actions.left_as_text import holds_call

TOOLS = ["area", "get_weather", "math.add", "math_add"]


def deepseek(text: str) -> str:
    """The text with DeepSeek's own bars and underscores."""
    return text.replace("|", "\uff5c").replace("_", "\u2581")


CALLS = [
    '<tool_call>\n{"name": "area", "arguments": {"base": 10}}\n</tool_call>',
    '<tool_call>\n{"name": "area", "arguments": {"base": 10',
    'I will look.\n<tool_call>{"name": "other", "arguments": {}}</tool_call>',
    'I will look. <tool_call>{"name": "other", "arguments": {}}</tool_call>',
    '<|tool_call|>[{"name": "area", "arguments": {}}]',
    "<|tool_call>call:area{base:10}<tool_call|>",
    '[TOOL_CALLS][{"name": "area", "arguments": {"base": 10}}]',
    '[TOOL_CALLS] [{"name": "area", "argu',
    '[TOOL_CALLS]area[ARGS]{"base": 10}',
    '[TOOL_CALLS]area{"base": 10}',
    '<function=area>{"base": 10}</function>',
    "<function=area>\n<parameter=base>\n10\n</parameter>\n</function>",
    "<tool_call>\n<function=area>\n<parameter=base>\n10\n</parameter>\n</function>\n</tool_call>",
    '<|python_tag|>{"name": "area", "parameters": {"base": 10}}<|eom_id|>',
    "<|python_tag|>area.call(base=10)",
    "<|python_tag|>import math\nprint(1)",
    deepseek(
        "<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>area\n```jso"
        'n\n{"base": 10}\n```<|tool_call_end|><|tool_calls_end|><|end_of_sentence'
        "|>"
    ),
    deepseek('<|tool_calls_begin|><|tool_call_begin|>area<|tool_sep|>{"base": 10}<|tool_call_end|><|tool_calls_end|>'),
    deepseek('<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>area\n```json\n{"base":'),
    "<tool_code>\nprint(area(base=10))\n</tool_code>",
    "```tool_code\nprint(area(base=10))\n```",
    "Sure:\n```tool_code\narea(base=10)\n```",
    'functions.area:0{"base": 10}',
    'functions.area({"base": 10})',
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.area:0<|tool_"
    'call_argument_begin|>{"base": 10}<|tool_call_end|><|tool_calls_section'
    "_end|>",
    "<tool_call>area\n<arg_key>base</arg_key>\n<arg_value>10</arg_value>\n</tool_call>",
    "<tool_call>area<arg_key>base</arg_key><arg_value>10</arg_value></tool_call>",
    '<function_calls>\n<invoke name="area">\n<parameter name="base">10</parameter>\n</invoke>\n</function_calls>',
    '<minimax:tool_call>\n<invoke name="area">\n<parameter name="base">10</parameter>\n</invoke>\n</minimax:tool_call>',
    "<seed:tool_call>\n<function=area>\n<parameter=base>10</parameter>\n</function>\n</seed:tool_call>",
    "<function_calls>\narea(base=10)\n</function_calls>",
    '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "area", "parameters": {}}]<|END_ACTION|>',
    '<|action_start|><|plugin|>{"name": "area", "parameters": {}}<|action_end|>',
    "<|tool_call_start|>[area(base=10)]<|tool_call_end|>",
    '<TOOLCALL>[{"name": "area", "arguments": {}}]</TOOLCALL>',
    '<toolcall>{"name":"area"}</toolcall>',
    '<functioncall> {"name": "area", "arguments": \'{"base": 1}\'}',
    '[TOOL_REQUEST]{"name": "area", "arguments": {}}[END_TOOL_REQUEST]',
    'functools[{"name": "area", "arguments": {}}]',
    '{"name": "area", "parameters": {"base": 10}}',
    "[area(base=10, height=5)]",
    "[math.add(a=1), area(base=2)]",
    '```json\n{"name": "area", "arguments": {"base": 10}}\n```',
    '<|channel|>commentary to=functions.area <|constrain|>json<|message|>{"base": 10}<|call|>',
    '\u273fFUNCTION\u273f: area\n\u273fARGS\u273f: {"base": 10}',
    'Thought: I need it.\nAction: area\nAction Input: {"base": 10}',
    "<tool_call>",
    "<|tool_call|>",
    "<longcat_tool_call>area\n<longcat_arg_key>base</longcat_arg_key>",
    deepseek(
        '<|DSML|function_calls>\n<|DSML|invoke name="area">\n<|DSML|parameter nam'
        'e="base" string="false">10</|DSML|parameter>\n</|DSML|invoke>\n</|DSML|f'
        "unction_calls>"
    ),
    '<xai:function_call name="area">\n<parameter name="base">10</parameter></xai:function_call>',
    '<tool_calls>[{"name": "area", "arguments": {}}]</tool_calls>',
    '<function name="area"><param name="base">10</param></function>',
    '<tool_call>\n{"name": "area", "arguments": {}}\n</tool_call>\nI will wait for the result.',
    '>>>area\n{"base": 10}',
    '<function_call>{"name": "math_add", "arguments": {}}',
    '<use_tool>\n{"name": "area"}\n</use_tool>',
    '{"tool": "area", "arguments": {"base": 1}}',
    '{"function": "area", "arguments": {"base": 1}}',
    '{"action": "area", "action_input": {"base": 1}}',
    '{"tool_calls": [{"type": "function", "function": {"name": "area", "arguments": "{}"}}]}',
    '{"name": "area", "parameters": {}}; {"name": "area", "parameters": {"base": 2}}',
    '{"name": "area", "arguments": {}}\n{"name": "area", "arguments": {"base": 2}}',
    "area(base=1, height=2)",
    "```python\narea(base=1)\n```",
    "<start_function_call>call:area{base:10}<end_function_call>",
    'assistantcommentary to=functions.area json{"base": 10}',
    '<|from|>assistant\n<|recipient|>area\n<|content|>{"base": 1}',
    "<|python_start|>[area(base=1)]<|python_end|>",
    '<ifm|tool_call>{"name": "area", "arguments": {}}',
    '<tool_call id="1" name="area">{"base": 1}</tool_call>',
    '[Tool call: area({"base": 1})]',
    'Thought: I need it.\nAction: area({"base": 10})',
    "Action: area[10]",
    "<|tool\u2581calls\u2581begin|><|tool\u2581call\u2581begin|>area<|tool\u2581sep|>{}",
]
WORDS = [
    '{"area": 25}',
    '{"tool": "hammer", "arguments": "none"}',
    '{"action": "area"}',
    '{"tool_calls": []}',
    '{"name": "area", "arguments": {}} is what I would send.',
    "area(10, 5) = 25",
    "area(base=10, height=5) would give 25.",
    "<area>25</area>",
    "Action: none",
    "<|recipient|>all\n<|content|>25",
    "The commentary to=functions is odd.",
    "",
    "42",
    "The area is 25.",
    "None of the tools fits.",
    "Such servers leave `<tool_call>{...}</tool_call>` in the text.",
    "The <tool_call> tag wraps a JSON object.",
    "<tool_call> is the tag that wraps a call.",
    "<|python_tag|> is a token of Llama.",
    "Use <|tool_call|> to begin a call, then JSON.",
    'Here is an example:\n```xml\n<tool_call>\n{"name": "area"}\n</tool_call>\n```\nThat is all.',
    'Here is an example:\n```xml\n<function name="x">\n<arg/>\n</function>\n```',
    '{"answer": 42}',
    "[1, 2, 3]",
    '{"name": "Bob", "arguments": ["a"]}',
    "[x for x in range(3)]",
    '{"name": "other", "parameters": {}}',
    "I would call functions.area with base 10 and height 5.",
    "Mistral writes [TOOL_CALLS] before a list.",
    "The XML is <tool><name>saw</name></tool> and it is sharp.",
    "<answer>\n42\n</answer>",
    "<function>f(x)</function> is the XML.",
    'A call is written <tool_call>{"name": "f"}</tool_call>, with a closing tag.',
    '> <tool_call>{"name": "area"}</tool_call>\nI can not do that.',
    "<action>Close the door</action>",
    "<tools>\nhammer and saw\n</tools>",
    "<note>\n<to>Bob</to>\n</note>",
    "functions.php(1) is a file of WordPress.",
    "Action: wait for the user.",
    "In JavaScript you write <function=name> nowhere.",
    "```python\nprint(area(base=10))\n```",
    "I have no tool for the weather. What is its `<function=get_weather>` form?",
]


@pytest.mark.parametrize("text", CALLS)
def test_a_call_left_as_text_is_found(text: str) -> None:
    assert holds_call(text, TOOLS)


@pytest.mark.parametrize("text", WORDS)
def test_a_text_that_only_speaks_of_calls_is_none(text: str) -> None:
    assert not holds_call(text, TOOLS)


@pytest.mark.parametrize("text", [text for text in CALLS if text.count("area") and len(text) > 40])
def test_a_call_that_was_cut_off_is_one(text: str) -> None:
    """From the tool's name on, wherever the answer ends: what has no marker at its beginning is whole or none."""
    if not text.startswith(("{", "```", "[area", "[math", "Sure", "Thought", "assistant", "<|from")):
        name = text.index("area") + len("area")
        assert all(holds_call(text[:end], TOOLS) for end in range(name + 2, len(text)))


@given(st.text(alphabet='<|>[]/{}":,`\n _=ation_cltolpref', max_size=80))
def test_any_text_is_judged_without_a_crash(text: str) -> None:
    holds_call(text, TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" * 20_000,
        "<tool_call>{} x\n" * 20_000 + "</x> so",
        "<|" + "tool" * 50_000,
        "[" * 100_000,
        "`" * 50_000,
        "```\n" * 20_000,
        "<|" * 50_000,
    ],
)
def test_a_hostile_text_is_judged_in_time(text: str) -> None:
    holds_call(text, TOOLS)
