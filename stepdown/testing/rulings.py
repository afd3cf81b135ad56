"""What no ruling of any workload may be, and no play may show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepdown.builder.records import Instance, Response, Ruling, Verdict
from stepdown.harnesses.base import Harness
from stepdown.testing.playing import Play
from stepdown.testing.words import is_json, short


def unsound_parts(harness: Harness, instance: Instance, script: Sequence[Response], whole: Play) -> Iterator[str]:
    """What a play shows that no workload may."""
    if len(whole.seen) < len(script):
        yield f"it halts at step {len(whole.seen)}, and {len(script)} answers were to be played"
    elif whole.seen[-1].going:
        yield f"it has not halted after the last of {len(script)} answers"
    for number, (prefix, one) in enumerate(zip(whole.prefixes, whole.seen, strict=False), 1):
        if not prefix.messages:
            yield f"step {number} shows no message"
        if (prefix.mask is None) != (harness.mask is None):
            yield f"the prefix of step {number} is not made with the harness's mask: `Prefix.start(..., mask=...)`"
        yield from unsound(one.doomed, f"the early ruling after step {number}", early=True)
    with harness.open(instance) as episode:
        if episode.prefix().exact != episode.prefix().exact:
            yield "`prefix` is another when it is asked twice"
    if not isinstance(whole.end, str):
        yield from unsound(whole.end, "the ruling")
    elif not harness.needs_judge:
        yield "an episode has a case for a judge, and the harness says that it needs none: `needs_judge = True`"


def unsound(ruling: object, what: str, early: bool = False) -> Iterator[str]:
    if ruling is None and early:
        return
    if not isinstance(ruling, Ruling):
        yield f"{what} is no Ruling: {short(ruling)}"
    elif ruling.verdict is Verdict.TECHNICAL:
        yield f"{what} is technical: raise Technical instead, where the apparatus failed"
    elif early and ruling.verdict is Verdict.PASS:
        yield f"{what} is pass, and only what can no longer pass is certain early"
    elif ruling.verdict is not Verdict.PASS and not ruling.reason:
        yield f"{what} is {ruling.verdict} without a reason"
    elif ruling.grading is not None and not is_json(ruling.grading):
        yield f"the grading of {what} is not JSON"
