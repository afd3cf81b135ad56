"""Which steps go to a server, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stepdown.audit.cases import CaseReader
from stepdown.audit.exchange.incoming import AnswerChecker, CheckedAnswers
from stepdown.audit.exchange.records import OutgoingStep, record_id
from stepdown.audit.servers.base import BATCH, ReviewServer
from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import AuditStep
from stepdown.builder.errors import BadInput


@dataclass(frozen=True, slots=True)
class PushedSteps:
    """What a push came to, in records."""

    new: int
    there: int
    """Those of the steps to review that were there already."""


def steps_for_people(store: AuditStore) -> Iterator[tuple[AuditStep, str]]:
    """The steps that people are still to review elsewhere, each with its reviewer; empty where anybody may.

    A step that is assigned goes to each of its reviewers until they have answered it. Others go once, for all who have
    an account there. So what goes does not depend on who has answered what there meanwhile.
    """
    assigned: set[str] = set()
    for reviewer in store.reviewers.names():
        if store.reviewers.reviews_everything(reviewer):
            continue
        for item in store.queue(reviewer):
            assigned.add(item.step.id)
            if item.verdict is None:
                yield item.step, reviewer
    yield from ((step, "") for step in store.steps() if not step.lowest and step.id not in assigned)


def push_steps(
    store: AuditStore, cases: CaseReader, server: ReviewServer, tell: Callable[[int, int], None]
) -> PushedSteps:
    """Bring the steps to a server that it has not yet, in batches. `tell` is told how many of how many are there.

    No verdict goes, and no pre-label: nothing may sway a reviewer. Raises BadInput where the server's records are
    another run's.
    """
    there = server.read_ids()
    _check_ids(store, server, there)
    due = list(steps_for_people(store))
    lacking = [(step, reviewer) for step, reviewer in due if record_id(step.id, reviewer) not in there]
    for start in range(0, len(lacking), BATCH):
        batch = lacking[start : start + BATCH]
        server.add(
            [
                OutgoingStep(cases.read(step.benchmark, step.instance_id, step.step_index), reviewer)
                for step, reviewer in batch
            ]
        )
        tell(start + len(batch), len(lacking))
    return PushedSteps(len(lacking), len(due) - len(lacking))


def _check_ids(store: AuditStore, server: ReviewServer, there: set[str]) -> None:
    sampled = {step.id for step in store.steps()}
    for name in sorted(there):
        # A reviewer's name may have spaces, and so may an id: the record is this run's if any split of it is.
        words = name.split(" ")
        if not any(" ".join(words[:end]) in sampled for end in range(1, len(words) + 1)):
            raise BadInput(f"{server.place} holds records of something else ({name[:200]!r}): choose another --name")


def pull_answers(store: AuditStore, cases: CaseReader, server: ReviewServer, source: str) -> CheckedAnswers:
    """Take over what reviewers submitted on a server and what is not known yet; the rest is counted or named."""
    checked = AnswerChecker(store, cases, server.place, source=source).check(server.read_answers())
    store.record_all(checked.verdicts)
    return checked
