"""Puts calls together to trajectories: a call goes on from another whose messages and answer it begins with.

What the system says is not compared, since many agents write the time into it. Of each call only digests and its answer
are kept: prefixes grow with each step, and a log holds all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from stepdown.builder.traces.calls import ChatCall, Step, grown, role_of, said, step_of


@dataclass(slots=True)
class Link:
    """A call with its prefix as digests."""

    order: tuple[float, int]
    trace: str
    model: str
    task: str
    prefix: tuple[bytes, ...]
    """A digest for each message that is not the system's, of all up to its end."""
    spoken: tuple[int, ...]
    """Which of these messages an assistant wrote."""
    is_underway: bool
    """Whether the last message is what a tool gave: something came before."""
    asked: bytes
    """The digest of the last words of a user."""
    step: Step
    after: bytes
    parent: Link | None = None
    goes_on: bool = False

    @property
    def question(self) -> tuple[str, bytes]:
        return self.trace, self.prefix[-1] if self.prefix else b""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Steps that models made one after another, from a task's beginning."""

    trace: str
    task: str
    """The id of the task where the trace names it."""
    opening: bytes
    """The digest of the messages of the first call, and of its last words of a user: what shows which task it is."""
    asked: bytes
    models: tuple[str, ...]
    steps: tuple[Step, ...]


def link_of(call: ChatCall, number: int, task: str) -> Link:
    """A call as a link. Raises LeftOut where its answer can be no step."""
    step = step_of(call.answer)
    prefix: list[bytes] = []
    spoken: list[int] = []
    link, last, asked = b"", "", b""
    for message in call.messages:
        role = role_of(message)
        if role == "system":
            continue
        text = said(message)
        link = grown(link, text)
        if role == "assistant":
            spoken.append(len(prefix))
        elif role == "user":
            asked = grown(b"", text)
        prefix.append(link)
        last = role
    at = call.at if call.at is not None else 0.0
    after = grown(link, said({"role": "assistant", **step}))
    return Link(
        (at, number), call.trace, call.model, task, tuple(prefix), tuple(spoken), last == "tool", asked, step, after
    )


@dataclass(slots=True)
class Chains:
    """Trajectories of links, and how many were left out, by reason."""

    left_out: Counter[str] = field(default_factory=Counter)

    def of(self, links: Iterable[Link], one_of_a_trace: bool) -> Iterator[Trajectory]:
        """The trajectories of all links. `one_of_a_trace`: of a trace that does not name its tasks, only the longest
        is the agent's own; shorter ones are calls beside it.
        """
        ordered = sorted(links, key=lambda link: link.order)
        _join(ordered)
        continued = {link.question for link in ordered if link.goes_on}
        found: list[list[Link]] = []
        for leaf in ordered:
            if leaf.goes_on:
                continue
            if leaf.question in continued:
                self.left_out["answers that were asked for again, and not gone on with"] += 1
                continue
            path = list(_path(leaf))
            if why := _broken(path):
                self.left_out[why] += 1
            else:
                found.append(path)
        yield from map(_trajectory, self._own(found) if one_of_a_trace else found)

    def _own(self, found: list[list[Link]]) -> Iterator[list[Link]]:
        longest: dict[tuple[str, str], int] = {}
        for place, path in enumerate(found):
            key = path[0].trace, path[0].task
            if path[0].trace and (key not in longest or len(path) > len(found[longest[key]])):
                longest[key] = place
        for place, path in enumerate(found):
            if not path[0].trace or longest[path[0].trace, path[0].task] == place:
                yield path
            else:
                self.left_out["trajectories beside the longest one of their trace"] += 1


def _join(ordered: list[Link]) -> None:
    """Find what each link goes on from: the longest conversation that it begins with, of its own trace if it can be."""
    heads: dict[tuple[str | None, bytes], Link] = {}
    for link in ordered:
        for digest in reversed(link.prefix):
            parent = heads.get((link.trace, digest)) or heads.get((None, digest))
            if parent is not None:
                link.parent, parent.goes_on = parent, True
                break
        heads[link.trace, link.after] = heads[None, link.after] = link


def _path(leaf: Link) -> Iterator[Link]:
    path: list[Link] = []
    link: Link | None = leaf
    while link is not None:
        path.append(link)
        link = link.parent
    return reversed(path)


def _broken(path: list[Link]) -> str:
    """Why a chain is no whole trajectory; empty: it is."""
    if path[0].is_underway:
        return "trajectories whose beginning is not in it"
    for before, link in pairwise(path):
        if any(place > len(before.prefix) for place in link.spoken):
            return "trajectories with an answer whose call is not in it"
    return ""


def _trajectory(path: list[Link]) -> Trajectory:
    first = path[0]
    task = next((link.task for link in path if link.task), "")
    models = tuple(dict.fromkeys(link.model for link in path))
    opening = first.prefix[-1] if first.prefix else b""
    return Trajectory(first.trace, task, opening, first.asked, models, tuple(link.step for link in path))
