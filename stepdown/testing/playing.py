"""Plays episodes with given answers, and says how two plays differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepdown.builder.records import Instance, Prefix, Response, Ruling, Signs
from stepdown.harnesses.base import Checkpoint, Episode, Harness
from stepdown.harnesses.checked import opened
from stepdown.testing.words import said


@dataclass(frozen=True, slots=True)
class Seen:
    """What an episode tells after an answer."""

    going: bool
    doomed: Ruling | None
    prefix: Prefix
    signs: Signs

    def difference(self, other: Seen) -> str:
        """How another episode differs after the same answers; empty where it does not, under the mask."""
        if self.going != other.going:
            return "does not halt where it did" if other.going else "halts where it went on"
        if self.doomed != other.doomed:
            return f"has another early ruling, {said(other.doomed)} and not {said(self.doomed)}"
        if self.signs != other.signs:
            return "shows other signs of its outcome"
        return "has another prefix" if self.prefix.canonical != other.prefix.canonical else ""


@dataclass(frozen=True, slots=True)
class Play:
    """An episode from its first prefix to its end."""

    first: Prefix
    seen: tuple[Seen, ...]
    end: Ruling | str
    """The ruling; or the digest of the case, where a judge is to rule."""

    def difference(self, other: Play) -> str:
        """How another play of the same answers differs; empty where it does not, under the mask."""
        if self.first.canonical != other.first.canonical:
            return "step 1 has another prefix"
        return difference_between(self.seen, other.seen, 1) or (
            "the ruling is another" if self.end != other.end else ""
        )

    @property
    def prefixes(self) -> list[Prefix]:
        return [self.first, *(one.prefix for one in self.seen)]


def after(episode: Episode, response: Response) -> Seen:
    going = episode.advance(response)
    return Seen(going, episode.doomed(), episode.prefix(), episode.signs())


def end_of(episode: Episode) -> Ruling | str:
    case = episode.case()
    return episode.verdict() if case is None else case.digest


def played(harness: Harness, instance: Instance, script: Sequence[Response]) -> Play:
    with opened(harness, instance) as episode:
        first = episode.prefix()
        seen: list[Seen] = []
        for response in script:
            seen.append(after(episode, response))
            if not seen[-1].going:
                break
        return Play(first, tuple(seen), end_of(episode))


def continued(
    harness: Harness, instance: Instance, at: Checkpoint, script: list[Response], whole: Play, done: int
) -> str:
    """How an episode that goes on from a checkpoint differs from the whole one."""
    with opened(harness, instance, at) as episode:
        if episode.prefix().canonical != whole.prefixes[done].canonical:
            return f"step {done + 1} has another prefix"
        seen = [after(episode, response) for response in script[done:]]
        different = difference_between(whole.seen[done:], seen, done + 1)
        return different or ("the ruling is another" if end_of(episode) != whole.end else "")


def difference_between(whole: Sequence[Seen], others: Sequence[Seen], first: int) -> str:
    for number, (one, other) in enumerate(zip(whole, others, strict=True), first):
        if different := one.difference(other):
            return f"step {number + 1 if one.going == other.going else number} {different}"
    return ""
