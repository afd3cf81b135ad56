"""What a node asks the head, and what it is answered. Everything is small: prefixes never travel.

A request belongs to an attempt: one hand-out of an instance. The head refuses what an attempt writes that it has given
up, so a node that was cut off can not write late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stepdown.builder.errors import BudgetReached
from stepdown.builder.records import Instance, Usage
from stepdown.builder.run.ledger import InstanceRecord, TrialEntry

NO_ATTEMPT = 0
"""Of requests that belong to a process and to none of its instances."""


class Assignment(NamedTuple):
    """An instance handed out to be worked on."""

    attempt: int
    """A number of its own: whoever works on the instance later has another one."""
    record: InstanceRecord
    instance: Instance
    workload: int
    """Its workload's place in the config."""


# What is asked


class FindAnswer(NamedTuple):
    """Is there an answer under these keys? Where there is none, a call of the model is begun within the budget."""

    keys: Sequence[str]
    model: str
    none_serves: bool = False
    """The answers there are have been looked at, and none of them answers the question."""


class KeepAnswer(NamedTuple):
    """Book a call that was begun as paid, and keep its answer; answered once it is on disk, with its key."""

    keys: Sequence[str]
    entry: dict[str, Any]
    """As the cache holds it."""
    model: str
    usage: Usage


class WriteTrial(NamedTuple):
    """Write a trial into the ledger; answered with its id."""

    entry: TrialEntry


class LedgerCall(NamedTuple):
    """Anything else that is asked of the ledger: a method of `LabellingLedger`, or `stored`."""

    method: str
    arguments: tuple[Any, ...]


class AskPermit(NamedTuple):
    """May a request of about so many tokens begin? Answered with a `Permit`, or the seconds until the next try."""

    model: str
    tokens: int


# What is told, and not answered


class RequestEnded(NamedTuple):
    """A request that was permitted has ended; `tokens` are those it used, None where it came to no answer."""

    permit: int
    tokens: int | None


class PauseModel(NamedTuple):
    """The model's provider wants no requests for so many seconds."""

    model: str
    seconds: float


class CallUnpaid(NamedTuple):
    """A call that was begun has come to no answer: it is no more in hand."""

    model: str


class ProgressNote(NamedTuple):
    """Something for the run's progress: a method of `RunProgress`, or `hit`."""

    what: str
    arguments: tuple[Any, ...] = ()


class AttemptFinished(NamedTuple):
    """The attempt has ended, by an error where there is one."""

    error: BaseException | None


# How it travels


class NodeRequest(NamedTuple):
    """A request on its way to the head."""

    number: int
    """Names its answer; 0 where none is waited for."""
    attempt: int
    request: Any


class HeadReply(NamedTuple):
    """The answer to a request, or the error that it came to."""

    number: int
    value: Any
    error: BaseException | None = None


class FoundAnswer(NamedTuple):
    """What a look came to. With neither a value nor a call begun, the budget has a call waiting: ask again soon."""

    values: Sequence[Any | None]
    """Under each key what the cache holds."""
    begun: bool


class Permit(NamedTuple):
    """A request may begin, under this number."""

    number: int


class HeadState(NamedTuple):
    """What every process is told again and again, since it bears on calls that are under way there."""

    reached: BudgetReached | None = None
    """The budget that is reached: no further request is begun, those of calls that were begun included."""
    pauses: Mapping[str, float] = {}
    """For how many seconds the providers of models want no requests."""


class Delivery(NamedTuple):
    """What the head has for a process on a node."""

    replies: Sequence[HeadReply] = ()
    assignments: Sequence[Assignment] = ()
    state: HeadState = HeadState()
