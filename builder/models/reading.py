"""A provider's answer as a response: the thought apart from it, its calls in canonical form, its tokens counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stepdown.builder import actions
from stepdown.builder.actions import Raw
from stepdown.builder.actions.forms import plain_text
from stepdown.builder.actions.thought import separated
from stepdown.builder.common import tokens
from stepdown.builder.config.pool import Model
from stepdown.builder.models.envelope import RawCompletion
from stepdown.builder.records import REPORTED_USD, USAGE_ESTIMATED, Prefix, Response, Stop, ToolCall, Usage


def read_response(
    model: Model, prefix: Prefix, request: Mapping[str, Any], answer: RawCompletion, bare: Callable[[str], str]
) -> tuple[Response, bool]:
    """The response, and whether it holds a call that its server left as text. `bare` takes keys out of a text.

    Keys are removed before parsing, so that what is parsed is what is stored, and again after it, since an escape may
    have hidden one.
    """
    thought, content = separated(bare(answer.raw.content))
    raw = Raw(content, tuple((name and bare(name), bare(text)) for name, text in answer.raw.calls))
    parsed = actions.parsed(model.actions, prefix, raw)
    calls = tuple(ToolCall(bare(call.name), bare(call.arguments)) for call in parsed.tool_calls)
    stop = Stop.REFUSED if answer.refused else Stop.LENGTH if answer.finish == "length" else Stop.END
    stop = Stop.OVERFLOW if answer.overflowed else stop
    extra: dict[str, Any] = {name: bare(value) for name, value in answer.extra.items()}
    if thought:
        extra["thought"] = plain_text(thought)
    usage, estimated = _usage(request, answer)
    if estimated:
        extra[USAGE_ESTIMATED] = True
    if answer.usage.usd is not None:
        extra[REPORTED_USD] = answer.usage.usd
    return Response(bare(parsed.content), calls, stop, parsed.malformed, usage, extra), parsed.left_as_text


def _usage(request: Mapping[str, Any], answer: RawCompletion) -> tuple[Usage, bool]:
    """The tokens of a call, and whether some are estimated: what the provider does not tell, as the limit of tokens per
    minute does it."""
    told = answer.usage
    said = [answer.raw.content, answer.extra.get("reasoning", "")]
    said += [f"{name or ''}{arguments}" for name, arguments in answer.raw.calls]
    written = sum(map(tokens.approximate, said))
    # A server that writes 0 beside a text has not counted.
    completion = told.completion if told.completion or not written else None
    prompt = told.prompt
    estimated = prompt is None or completion is None
    if completion is None:
        completion = written
    if prompt is None:
        asked = tokens.of_request(request["messages"], request.get("tools", ()))
        prompt = max(0, told.total - completion) if told.total else asked
    return Usage(prompt, told.cache_read, told.cache_write, completion), estimated
