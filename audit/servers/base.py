"""What a server where people review can do, and the ways in which it can fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from stepdown.audit.exchange.records import IncomingAnswer, OutgoingStep
from stepdown.builder.errors import StepdownError

BATCH = 20
"""Steps in one request: a prefix may have a megabyte."""


class ServerFailed(StepdownError):
    """The server or the way to it failed: what has arrived stays, and the same command goes on. Exit code 3."""


class ReviewServer(Protocol):
    """One data set or project on a server. Methods raise BadInput where a person must act, else ServerFailed."""

    place: str
    """Where it is, for people."""

    def read_ids(self) -> set[str]:
        """The ids of the records that are there (`exchange.records.record_id`)."""
        ...

    def add(self, steps: Sequence[OutgoingStep]) -> None:
        """Bring further steps there. They are there when this returns."""
        ...

    def read_answers(self) -> Iterator[IncomingAnswer]:
        """What reviewers said of all records, unchecked."""
        ...


OpenServer = AbstractContextManager[ReviewServer]
