"""What no ruling of any workload may be, and no play may show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepdown.builder.records import NO_SIGNS, Instance, Response, Ruling, Verdict
from stepdown.harnesses.base import Harness
from stepdown.harnesses.checked import opened
from stepdown.releases.messages import Prefixes
from stepdown.releases.texts import Watch
from stepdown.testing.playing import Play


def unsound_parts(harness: Harness, instance: Instance, script: Sequence[Response], whole: Play) -> Iterator[str]:
    """What a play shows that no workload may."""
    if len(whole.seen) < len(script):
        yield f"it halts at step {len(whole.seen)}, and {len(script)} answers were to be played"
    elif whole.seen[-1].going:
        yield f"it has not halted after the last of {len(script)} answers"
    yield from _unpublishable(whole)
    for number, (prefix, one) in enumerate(zip(whole.prefixes, whole.seen, strict=False), 1):
        if not prefix.messages:
            yield f"step {number} shows no message"
        if prefix.mask is not None and harness.mask is None:
            yield f"the prefix of step {number} is made with a mask, and the harness names none: `mask`"
        yield from unsound(one.doomed, f"the early ruling after step {number}")
        if one.signs != NO_SIGNS and not harness.tells_states:
            yield "an episode has signs of its outcome, and the harness says that it tells none: `tells_states = True`"
            return
    with opened(harness, instance) as episode:
        if episode.prefix().exact != episode.prefix().exact:
            yield "`prefix` is another when it is asked twice"
    if not isinstance(whole.end, str):
        yield from unsound(whole.end, "the ruling")
    elif not harness.needs_judge:
        yield "an episode has a case for a judge, and the harness says that it needs none: `needs_judge = True`"


def _unpublishable(whole: Play) -> Iterator[str]:
    """What a release would refuse in the rows of a play, once all of them are paid for."""
    checked = Prefixes(Watch())
    for number, prefix in enumerate(whole.prefixes[: len(whole.seen)], 1):
        for field, problem in checked.check(list(prefix.messages), list(prefix.tools) or None):
            yield f"the prefix of step {number} could not be published: {field}: {problem}"
            return


def unsound(ruling: Ruling | None, what: str) -> Iterator[str]:
    """What is wrong with a ruling whose form has been checked."""
    if ruling is None:
        return
    if ruling.verdict is Verdict.TECHNICAL:
        yield f"{what} is technical: raise Technical instead, where the apparatus failed"
    elif ruling.verdict is not Verdict.PASS and not ruling.reason:
        yield f"{what} is {ruling.verdict} without a reason"
