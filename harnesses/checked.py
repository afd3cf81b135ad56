"""Checks what a workload's own code gives, once, where it enters.

What its contract does not allow says nothing about a model, so no label may rest on it: it is technical.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from stepdown.builder.common.shapes import message_problems, tool_problems
from stepdown.builder.common.text import LONGEST_ID, is_id
from stepdown.builder.errors import Technical
from stepdown.builder.records import Instance, Mask, Prefix, Response, Ruling, Sample, Signs, ToolCall, Verdict
from stepdown.harnesses.base import Ask, Checkpoint, Episode, Harness
from stepdown.judges.case import JudgeCase, RefusalCase

_SHOWN = 60


class Unsound(Technical):
    """A harness gave what its contract does not allow: the reason names the method and what it must give."""


@contextmanager
def opened(
    harness: Harness, instance: Instance, at: Checkpoint | None = None, mask: Mask | None = None
) -> Iterator[Episode]:
    """An episode of a harness, whose methods raise Unsound for what they must not return.

    `mask` is the instance's, where it has one of its own.
    """
    made = harness.open(instance) if at is None else harness.open(instance, at)
    if not hasattr(made, "__enter__"):
        raise Unsound(f"`open` must give its episode by `yield`, with `@contextmanager` above it, not {named(made)}")
    with made as episode:
        if missing := [part for part in ("prefix", "advance", "doomed", "verdict") if not hasattr(episode, part)]:
            raise Unsound(f"`open` must give an Episode, not {named(episode)}, which has no `{missing[0]}`")
        yield _CheckedEpisode(episode, mask or harness.mask, goes_on=at is not None)


class _CheckedEpisode(Episode):
    """A workload's episode. It also puts the harness's mask on prefixes that were made without one."""

    def __init__(self, own: Episode, mask: Mask | None, goes_on: bool) -> None:
        """`goes_on`: from a checkpoint, so what it shows first was looked at where that was taken."""
        self._own, self._mask, self._goes_on = own, mask, goes_on
        self._last: tuple[Prefix, Prefix] | None = None
        self._looked_at: Prefix | None = None
        self._calls = 0
        """Tool calls in the prefix that was looked at."""

    def prefix(self) -> Prefix:
        prefix = self._own.prefix()
        if not isinstance(prefix, Prefix):
            raise Unsound(f"`prefix` must return a Prefix, not {named(prefix)}")
        self._check_messages(prefix)
        return prefix if prefix.mask is not None or self._mask is None else self._masked(prefix)

    def _check_messages(self, prefix: Prefix) -> None:
        """Raises Unsound for messages or tools that no release may hold: before anything is paid for, not after all
        is. What was looked at before is not looked at again.
        """
        before = self._looked_at
        if before is prefix:
            return
        if before is None and self._goes_on:
            self._looked_at, self._calls = prefix, prefix.calls
            return
        has_grown = before is not None and prefix.grew_from(before)
        calls, start = (self._calls, len(before.messages)) if before is not None and has_grown else (0, 0)
        if not prefix.messages:
            raise Unsound("`prefix` must have a message: there is nothing to show a model")
        for index, message in enumerate(prefix.messages[start:], start):
            found, made = message_problems(message, calls)
            for field, problem in found:
                raise Unsound(f"`prefix`: messages.{index}{field}: {problem}")
            calls += made
        if before is None or prefix.tools is not before.tools:
            for field, problem in tool_problems(prefix.tools):
                raise Unsound(f"`prefix`: {field}: {problem}")
        self._looked_at, self._calls = prefix, calls

    def _masked(self, prefix: Prefix) -> Prefix:
        """The prefix under the harness's mask, grown from the last one where it has grown from that."""
        if self._last is not None and prefix.grew_from(self._last[0]):
            before, masked = self._last
            masked = masked.extend(prefix.messages[len(before.messages) :]).with_tools(prefix.tools)
        else:
            masked = Prefix.start(prefix.messages, prefix.tools, self._mask)
        self._last = prefix, masked
        return masked

    def advance(self, response: Response) -> bool:
        going = self._own.advance(response)
        if not isinstance(going, bool):
            raise Unsound(f"`advance` must return True or False, not {named(going)}")
        return going

    def doomed(self) -> Ruling | None:
        ruling = self._own.doomed()
        if ruling is None:
            return None
        if _sound(ruling, "doomed").verdict is Verdict.PASS:
            raise Unsound("`doomed` must not rule pass: only what can no longer pass is certain early")
        return ruling

    def verdict(self) -> Ruling:
        return _sound(self._own.verdict(), "verdict")

    def seed_verdict(self) -> Ruling:
        return _sound(self._own.seed_verdict(), "seed_verdict")

    def signs(self) -> Signs:
        signs = self._own.signs()
        if not isinstance(signs, Signs):
            raise Unsound(f"`signs` must return Signs, not {named(signs)}")
        return signs

    def refusal(self) -> RefusalCase | None:
        case = self._own.refusal()
        if case is not None and not isinstance(case, RefusalCase):
            raise Unsound(f"`refusal` must return a RefusalCase or None, not {named(case)}")
        return case

    def case(self) -> JudgeCase | None:
        case = self._own.case()
        if case is not None and not isinstance(case, JudgeCase):
            raise Unsound(f"`case` must return a JudgeCase or None, not {named(case)}")
        return case

    def checkpoint(self) -> Checkpoint | None:
        return self._own.checkpoint()

    def expect(self, prefix: Prefix) -> None:
        self._own.expect(prefix)

    def answer_beside(self, ask: Ask) -> None:
        self._own.answer_beside(ask)


def answered(harness: Harness, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
    """What the workload's pseudo-model answers. Raises Unsound for what is no answer."""
    answer = harness.answer(name, instance, prefix, sample)
    if answer is None:
        return None
    if not isinstance(answer, Response):
        raise Unsound(f"`answer` must return a Response or None, not {named(answer)}")
    if not isinstance(answer.content, str):
        raise Unsound(f"the content of `answer`'s Response must be text, not {named(answer.content)}")
    for call in answer.tool_calls:
        _check_call(call)
    return answer


def _check_call(call: object) -> None:
    """Raises Unsound where this is no call of a pseudo-model's answer."""
    if not isinstance(call, ToolCall):
        raise Unsound(f"the calls of `answer`'s Response must each be a ToolCall, not {named(call)}")
    if not isinstance(call.name, str):
        raise Unsound(f"the name of `answer`'s ToolCall must be text, not {named(call.name)}")
    if not isinstance(call.arguments, str):
        due = "the text of one JSON object"
        raise Unsound(f"the arguments of `answer`'s ToolCall must be {due}, not {named(call.arguments)}")


def _sound(ruling: object, method: str) -> Ruling:
    """The ruling of a method of this name. Raises Unsound where it is none."""
    if not isinstance(ruling, Ruling):
        allowed = "a Ruling or None" if method == "doomed" else "a Ruling"
        raise Unsound(f"`{method}` must return {allowed}, not {named(ruling)}")
    if not isinstance(ruling.verdict, Verdict):
        raise Unsound(f"the verdict of `{method}`'s Ruling must be a Verdict, not {named(ruling.verdict)}")
    if not isinstance(ruling.reason, str):
        raise Unsound(f"the reason of `{method}`'s Ruling must be text, not {named(ruling.reason)}")
    if ruling.grading is None:
        return ruling
    if not isinstance(ruling.grading, dict):
        raise Unsound(f"the grading of `{method}`'s Ruling must be a dict of JSON, not {named(ruling.grading)}")
    if problem := _not_json(ruling.grading):
        raise Unsound(f"the grading of `{method}`'s Ruling is not JSON: {problem}")
    return ruling


def unsound_instance(instance: object) -> str:
    """What is wrong with an instance, whatever its workload; empty: nothing is."""
    if not isinstance(instance, Instance):
        return f"`instances` must yield Instances, not {named(instance)}"
    if not isinstance(instance.id, str):
        return f"an instance's id must be text, not {named(instance.id)}"
    if not is_id(instance.id):
        return f"instance id {instance.id!r} is not 1 to {LONGEST_ID} printable characters"
    if problem := _not_json(instance.task):
        return f"the task of instance {instance.id!r} is not JSON: {problem}"
    if not isinstance(instance.group, str):
        return f"the group of instance {instance.id!r} must be text, not {named(instance.group)}"
    return ""


def _not_json(value: object) -> str:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return str(error)[:_SHOWN]
    return ""


def named(value: object) -> str:
    """What was given in place of what was due, in a few words."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, Enum):
        return str(value) if type(value).__str__ is Enum.__str__ else f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, (bool, int, float, str)):
        text = repr(value)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"a {type(value).__name__}"
