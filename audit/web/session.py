"""One reviewer's queue as it stands, and the verdicts that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from stepdown.audit.cases import CaseReader, ReviewCase
from stepdown.audit.store import AuditStore, plain_notes
from stepdown.audit.verdicts import LONGEST_NOTES, AuditStep, AuditVerdict, PreLabel, RecordedVerdict
from stepdown.builder.errors import StepdownError
from stepdown.builder.pages.gate import Access


class RequestRefused(StepdownError):
    """A request that does not fit what stands now. `at` is the address of the page to look at instead."""

    def __init__(self, problem: str, at: str) -> None:
        super().__init__(problem)
        self.at = at


@dataclass(frozen=True, slots=True)
class Submission:
    """What a form sends: the step and the prefix that it was made for, and the reviewer's answer.

    `known` is the `verdict_stamp` of the page. Without a verdict the one that stands is kept, with these notes.
    """

    step: str
    prefix_digest: str
    known: str
    verdict: str
    notes: str


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """The verdict that was saved just before, the address of its step, and a model's guess at it."""

    said: RecordedVerdict
    at: str
    guess: PreLabel | None


def verdict_stamp(said: RecordedVerdict | None) -> str:
    """A text that identifies the verdict on a page, to notice where another page has changed it since."""
    return f"{said.verdict.value}@{said.at}" if said else ""


class ReviewSession:
    """A reviewer's queue and verdicts, read afresh for every request."""

    def __init__(self, store: AuditStore, cases: CaseReader, access: Access) -> None:
        self.reviewer, self.path = access.name, access.path
        self._store, self._cases = store, cases
        self.queue = store.queue(access.name)
        self.said = store.current(access.name)
        self.places = {item.step.id: place for place, item in enumerate(self.queue)}

    def sampled_step(self, step_id: str) -> AuditStep:
        """A step of this queue. Raises RequestRefused for another one."""
        place = self.places.get(step_id)
        if place is None:
            raise RequestRefused("That step is not in your queue.", self.path)
        return self.queue[place].step

    def case(self, step: str) -> ReviewCase:
        sampled = self.sampled_step(step)
        return self._cases.read(sampled.benchmark, sampled.instance_id, sampled.step_index)

    def page(self, step: str, **more: str) -> str:
        """The address of a step's page."""
        return f"{self.path}step?{urlencode({'id': step, **{k: v for k, v in more.items() if v}}, quote_via=quote)}"

    def next_open(self, after: int = -1) -> str | None:
        """The id of the next step without a verdict after a place in the queue, starting over at the queue's end."""
        for item in [*self.queue[after + 1 :], *self.queue[: after + 1]]:
            if not item.done:
                return item.step.id
        return None

    def page_after(self, step: str) -> str:
        """The address after a step was answered: the next open step, or the end of the queue."""
        following = self.next_open(self.places.get(step, -1))
        if following is not None:
            return self.page(following, saved=step)
        return f"{self.path}end?{urlencode({'saved': step}, quote_via=quote)}"

    def neighbour(self, place: int, by: int) -> str | None:
        """The address of the step `by` places further, or of the queue's end; None before the first step."""
        if place + by < 0:
            return None
        return self.page(self.queue[place + by].step.id) if place + by < len(self.queue) else f"{self.path}end"

    def guess(self, step: str) -> PreLabel | None:
        """A model's guess at a step; None until this reviewer has answered it."""
        return self._store.prelabel(self.reviewer, step)

    def saved(self, step: str) -> SavedAnswer | None:
        said = self.said.get(step)
        return SavedAnswer(said, self.page(step), self.guess(step)) if said else None

    def record(self, given: Submission) -> None:
        """Record a verdict; it is on disk when this returns. Sending the same one again changes nothing.

        Raises RequestRefused where it does not fit the step as it is now, or another page has answered meanwhile.
        """
        said, here = self.said.get(given.step), self.page(given.step)
        verdict = given.verdict or (said.verdict.value if said else "")
        _check(self.case(given.step), given, verdict, here)
        notes = plain_notes(given.notes).strip()
        if said is not None and (said.verdict.value, said.notes) == (verdict, notes):
            return
        if given.known != verdict_stamp(said):
            raise RequestRefused("This step was answered meanwhile, in another window. Nothing was changed.", here)
        self._store.record(self.reviewer, given.step, verdict, notes, prefix_digest=given.prefix_digest)

    def take_back(self, step: str, known_verdict: str) -> None:
        """Take back the latest verdict, if it is the one that the page knew. Raises RequestRefused."""
        latest = self._store.latest(self.reviewer)
        if latest is None or (latest.step_id, verdict_stamp(latest)) != (step, known_verdict):
            at = self.page(step) if step in self.places else self.path
            raise RequestRefused("That verdict is not the latest one any more. Nothing was taken back.", at)
        self._store.undo(self.reviewer, step)


def _check(case: ReviewCase, given: Submission, verdict: str, here: str) -> None:
    """Raises RequestRefused for a submission that cannot be a verdict on the case as it is now."""
    if given.prefix_digest != case.prefix_digest:
        raise RequestRefused("The step has changed since the page was made. Nothing was saved: look at it again.", here)
    if verdict not in set(AuditVerdict):
        raise RequestRefused("Choose one of the three verdicts. Nothing was saved.", here)
    if len(given.notes.replace("\r\n", "\n")) > LONGEST_NOTES:
        raise RequestRefused(f"Notes have at most {LONGEST_NOTES} characters. Nothing was saved.", here)
