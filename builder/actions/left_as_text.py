"""A call that a server left in the text of an answer, in the model's own markers, since no tool parser read it.

Every family of models has its markers, and an answer may also speak of them: in code, in quotes, in the middle of a
sentence. So a marker counts where a call follows it, and either nothing but calls stands after it or, on a line of its
own, it names a tool on offer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from itertools import islice

_NAME = r"[A-Za-z_][\w.\-/]*"
_CALL = rf"(?:```\w*\s*)?(?:[{{\[<]|call:|{_NAME}\s*(?:[({{<\[:=]|$|\n))"
"""What a call's own text begins with: JSON, more markers, or a name with its arguments."""
_TAG = (
    r"(?:[\w-]+[:|])?(?:tool[_ -]?calls?|(?:start_)?function[_ -]?calls?|longcat_tool_call|tool_use|use_(?:mcp_)?tool"
    r"|tool_code)"
)
_SPECIAL = r"[^\s|\uff5c<>]{0,40}(?:tool|function|action|plugin|python_(?:tag|start)|\bcall)[^\s|\uff5c<>]{0,40}"
_MARKERS = (
    rf"<{_TAG}>(?=\s*{_CALL})",
    r"<(?:tools?|action)>(?=\s*[{\[])",
    # Llama's, Qwen-coder's, and those of Claude's form: the name stands in the tag itself.
    rf"<(?:tool|(?:[\w-]+:)?(?:invoke|tool_call|function(?:_call)?))\s*(?:=|\s(?:[^<>]{{0,60}}\s)?\w*name=)\s*[\"']?{_NAME}[\"']?\s*"
    r"(?:>(?=\s*(?:[{<\[\"]|\Z))|(?=\{))",
    r"<[|\uff5c]\w+[|\uff5c](?:invoke|function_calls?|tool_calls?)\b",
    # Special tokens: <|tool_call|>, <|python_tag|>, DeepSeek's, Kimi's, Cohere's, InternLM's, gpt-oss's channels.
    rf"<[|\uff5c](?!tool_(?:response|output|result))(?:{_SPECIAL})[|\uff5c]?>"
    rf"(?=\s*(?:{_CALL}|[\"(]|import |from |print|def |for |function\b))",
    rf"<\|channel\|>\s*\w*\s*to=(?:functions\.)?{_NAME}",
    # The same where the server has dropped the special tokens.
    rf"commentary\s+to=(?:functions\.)?{_NAME}(?=[^\n]{{0,30}}\{{)",
    # Functionary's.
    rf"<\|recipient\|>(?!all\b){_NAME}\s*<\|content\|>",
    rf"\[(?:TOOL_CALLS?|FUNCTION_CALLS?|TOOL_REQUEST)\](?=\s*(?:{_CALL}))",
    rf"\[(?:tool|function)[_ ]call:\s*{_NAME}(?=\s*[({{])",
    rf"(?<![\w.`])functions\.{_NAME}(?::\d+)?(?=\s*(?:\{{|<\||\())",
    r"(?<!\w)functools(?=\s*\[\s*\{)",
    rf"^>>>\s*{_NAME}(?=\n\s*\{{)",
    rf"\u273fFUNCTION\u273f:\s*{_NAME}",
    rf"^Action:\s*{_NAME}\s*(?:\nAction Input:|(?=[(\[{{]))",
)
_MARKER = re.compile("|".join(_MARKERS), re.MULTILINE | re.IGNORECASE)
_ALONE = re.compile(rf"\s*(?:<{_TAG}>|<[|\uff5c](?:{_SPECIAL})[|\uff5c]>|\[TOOL_CALLS?\])\s*", re.IGNORECASE)
"""A marker after which the answer was cut off."""
_CLOSING = re.compile(
    r"</[\w:.\-]+>|\[/\w+\]|\[END_\w+\]|<[|\uff5c][^\s<>]*(?:end|eot|eom|eos)[^\s<>]*[|\uff5c]>|<\w+\|>"
    r"|<\|(?:call|return)\|>",
    re.IGNORECASE,
)
_TOKENS = re.compile(r"(?:<[|\uff5c][^\s<>]*>|</s>|\s)+")
_FENCE = re.compile(r"^ {0,3}```([^\n`]*)\n(.*?)(?:^ {0,3}```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_TOOL_FENCE = re.compile(r"(?:tool|function)_(?:code|calls?|use)", re.IGNORECASE)
_CODE = re.compile(r"(?<!`)(`+)(?!`)[^\n`]+\1|^(?: {4}|\t|>(?!>>)).*$", re.MULTILINE)
"""Code within a line, a block of code by its indent, a quoted line."""
_NAMED_WITHIN = 300
"""Characters after a marker in which the tool's name stands."""
_MOST_MARKERS = 200
"""An answer of more is hostile; the time that it takes has an end."""
_NAME_KEYS = frozenset({"name", "function", "function_name", "tool", "tool_name", "action"})
_ARGUMENT_KEYS = frozenset(
    {"arguments", "parameters", "args", "input", "action_input", "tool_input", "tool_arguments", "function_arguments"}
)
_CALL_KEYS = _NAME_KEYS | _ARGUMENT_KEYS | {"id", "type", "tool_calls", "tool_call_id"}
_BETWEEN = re.compile(r"[\s;,]*")
_PYTHON = re.compile(rf"({_NAME})\((?:\s*\w+\s*=[^\n]*)?\)")
"""A call as in Python, its arguments by name."""


def holds_call(text: str, tools: Collection[str]) -> bool:
    """Whether an answer without calls holds one as text. `tools` are the names on offer.

    >>> holds_call('<tool_call>\\n{"name": "area", "arguments": {"base": 10}}\\n</tool_call>', ["area"])
    True
    >>> holds_call("Such servers leave `<tool_call>{...}</tool_call>` in the text.", ["area"])
    False
    """
    bare = text.strip()
    if not bare:
        return False
    if whole := _FENCE.fullmatch(bare):
        info, inner = whole[1].strip(), whole[2].strip()
        return bool(_TOOL_FENCE.fullmatch(info)) or (_names(inner, tools) and holds_call(inner, tools))
    if _ALONE.fullmatch(bare) or _is_bare_call(bare, tools):
        return True
    if any(_TOOL_FENCE.fullmatch(fence[1].strip()) for fence in _FENCE.finditer(bare)):
        return True
    closing = max((found.end() for found in _CLOSING.finditer(bare)), default=0)
    return any(_counts(bare, marker, closing, tools) for marker in _marked(bare))


def _marked(text: str) -> Iterator[re.Match[str]]:
    """The markers that stand neither in code nor in a quoted line."""
    code = [found.span() for pattern in (_FENCE, _CODE) for found in pattern.finditer(text)]
    for marker in islice(_MARKER.finditer(text), _MOST_MARKERS):
        if not any(start <= marker.start() < end for start, end in code):
            yield marker


def _counts(text: str, marker: re.Match[str], closing: int, tools: Collection[str]) -> bool:
    if not _rest(text, marker, closing):
        return True
    on_its_own_line = not text[text.rfind("\n", 0, marker.start()) + 1 : marker.start()].strip()
    return on_its_own_line and _names(text[marker.start() : marker.end() + _NAMED_WITHIN], tools)


def _rest(text: str, marker: re.Match[str], closing: int) -> str:
    """What stands after the last of the calls that begin at a marker; nothing where the call has no end.

    `closing` is where the text's last closing marker ends.
    """
    if closing > marker.end():
        return _TOKENS.sub("", text[closing:])
    payload = text[marker.end() :].lstrip()
    if payload.startswith("("):
        return payload.rpartition(")")[2].strip() if ")" in payload else ""
    try:
        _, end = json.JSONDecoder().raw_decode(payload)
    except (ValueError, RecursionError):
        return ""
    return _TOKENS.sub("", payload[end:])


def _names(text: str, tools: Collection[str]) -> bool:
    return any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) for name in tools)


def _is_bare_call(text: str, tools: Collection[str]) -> bool:
    """Whether the whole answer is a call without markers: JSON in any family's keys, or calls as in Python."""
    if re.match(rf"\[\s*({_NAME})\(", text) and text.endswith((")]", ") ]")):
        return any(re.match(rf"\[\s*{re.escape(name)}\(", text) for name in tools)
    if (call := _PYTHON.fullmatch(text)) and call[1] in tools:
        return True
    items = list(_json_items(text))
    return bool(items) and all(_is_call(item, tools) for item in items)


def _json_items(text: str) -> Iterator[object]:
    """The JSON values that a text consists of, lists taken apart; none where it holds anything else."""
    decoder, place, found = json.JSONDecoder(), 0, []
    while place < len(text):
        if text[place] not in "{[":
            return
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        found += value if isinstance(value, list) else [value]
        place = _BETWEEN.match(text, end).end()  # type: ignore[union-attr]  # it matches nothing too
    yield from found


def _is_call(item: object, tools: Collection[str]) -> bool:
    if not isinstance(item, dict) or not item.keys() <= _CALL_KEYS:
        return False
    inner = item.get("tool_calls", item.get("function"))
    if isinstance(inner, list):
        return bool(inner) and all(_is_call(one, tools) for one in inner)
    if isinstance(inner, dict):
        return _is_call(inner, tools)
    named = any(isinstance(name := item.get(key), str) and name in tools for key in _NAME_KEYS)
    return named and bool(item.keys() & _ARGUMENT_KEYS)
