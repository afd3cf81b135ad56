"""Answers that some model gives one day, and what an episode makes of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from stepdown.builder.actions.forms import Unparsable, kept_as_text, plain_text, tool_call
from stepdown.builder.common.faults import place_of
from stepdown.builder.errors import Technical
from stepdown.builder.records import Instance, Prefix, Response, ToolCall, Verdict
from stepdown.harnesses.base import Harness
from stepdown.harnesses.checked import Unsound, opened
from stepdown.testing.rulings import unsound
from stepdown.testing.words import Breach, raised, short

_AFTER_IT = 3
"""Answers that follow a hostile one, where the agent goes on."""


def hostile_answers(prefix: Prefix) -> Iterator[tuple[str, Response]]:
    """Answers that some model gives one day, by what they are, as stepdown hands them to an episode."""
    for what, text in _TEXTS.items():
        yield what, Response(plain_text(text))
    yield "a call that could not be read", Response('f({"x": ', malformed=True)
    yield "a call of an unknown tool", _call("no_such_tool", '{"x": 1}')
    yield "a call of a tool with a hostile name", _call("../../x\n\u202e`", "{}")
    names = [str(tool["function"]["name"]) for tool in prefix.tools] or ["no_such_tool"]
    for name in names[:2]:
        yield f"a call of {name} without arguments", _call(name, "{}")
        yield f"a call of {name} with unknown arguments", _call(name, '{"__class__": [null, {"a": 1}]}')
        for what, value in _VALUES.items():
            arguments = json.dumps(dict.fromkeys(_parameters(prefix, name) or ["x"], "@")).replace('"@"', value)
            yield f"a call of {name} with {what}", _call(name, arguments)
    yield "a hundred calls at once", Response("", (ToolCall(names[0], "{}"),) * 100)


_TEXTS = {
    "plain words": "I would rather not.",
    "words that look like markup and commands": "<script>x</script>\n```\n$(rm -rf /)\x1b[2J\u202e",
    "text that had NUL and a lone surrogate": "a\x00b\ud800",
    "two million characters": "x" * 2_000_000,
    "deeply nested JSON as text": "[" * 100_000,
}
_VALUES = {
    "text with NUL and a lone surrogate": r'"a\u0000b\ud800"',
    "a huge number": "1" + "0" * 300,
    "long text": '"' + "y" * 100_000 + '"',
    "lists in lists in lists": "[" * 30 + "]" * 30,
    "null": "null",
}


def _call(name: str, arguments: str) -> Response:
    """A call as the client reads it: one that it can not read is kept as the model's words."""
    try:
        return Response("", (tool_call(name, arguments),))
    except Unparsable:
        return Response(kept_as_text("", [(name, arguments)]).content, malformed=True)


def _parameters(prefix: Prefix, name: str) -> list[str]:
    schema = next(
        (tool["function"].get("parameters") for tool in prefix.tools if tool["function"]["name"] == name), None
    )
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return [str(key) for key in properties] if isinstance(properties, Mapping) else []


def withstood(harness: Harness, instance: Instance, before: Sequence[Response], hostile: Response) -> Breach | None:
    """What is wrong with an episode that is given a hostile answer, and more where it goes on; None: nothing is."""
    module = type(harness).__module__
    try:
        with opened(harness, instance) as episode:
            for response in before:
                episode.advance(response)
            doomed, going = None, True
            for response in [hostile] * (1 + _AFTER_IT):
                going = episode.advance(response)
                doomed = doomed or episode.doomed()
                _ = episode.prefix().exact
                if not going:
                    break
            case = episode.case() if not going else None
            if case is not None:
                return None
            ruling = episode.verdict()
    except Unsound as error:
        return Breach(error.reason)
    except Technical as error:
        words = f"raises Technical ({short(str(error))}), and what a model answers is no failure of the apparatus"
        return Breach(words, place_of(error, module))
    except Exception as error:
        return Breach(f"raises {raised(error)}, where a ruling is due", place_of(error, module))
    wrong = next(iter((*unsound(doomed, "the early ruling"), *unsound(ruling, "the ruling"))), "")
    if not wrong and doomed is not None and ruling.verdict is Verdict.PASS:
        wrong = "it passes in the end, though an early ruling said that it could not"
    return Breach(wrong) if wrong else None
