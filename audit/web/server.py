"""Serves the review page: the app behind the gate, with a link for each reviewer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from stepdown.audit.cases import CaseReader
from stepdown.audit.store import AuditStore
from stepdown.audit.web.app import review_app
from stepdown.builder.pages.gate import READING, Access, Gate, GateWords
from stepdown.builder.pages.server import RunningServer, serving

WORDS = GateWords(
    command="stepdown audit serve",
    several="Your queues",
    other="Every reviewer has a link of their own.",
    failed="Nothing was saved.",
    too_long="Nothing was saved: the notes are too long.",
)


def reviewer_access(reviewer: str) -> Access:
    """A new access to a reviewer's pages: whoever has its token is that reviewer."""
    return Access("review", reviewer, called="reviewer")


@contextmanager
def serve(
    store: AuditStore,
    cases: CaseReader,
    accesses: Sequence[Access],
    failed: Callable[[Exception], None],
    port: int = 0,
) -> Iterator[RunningServer]:
    """Serve the reviewers' pages while the block runs. Raises BadInput where the port is taken.

    `failed` is called with every error in a page.
    """
    app = review_app(store, cases)
    with serving(lambda bound: Gate(app, accesses, bound, failed, WORDS, READING | {"POST"}), port) as server:
        yield server
