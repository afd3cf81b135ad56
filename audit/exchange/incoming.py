"""Checks what reviewers answered in another tool, answer by answer, and lists every problem.

A file with a problem is not imported at all. Of a server, where nobody mends a file and tries again, what is sound is
taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stepdown.audit.cases import CaseReader
from stepdown.audit.exchange.records import IncomingAnswer, account_id, record_id
from stepdown.audit.store import AuditStore, now, plain_notes
from stepdown.audit.verdicts import AuditStep, AuditVerdict, RecordedVerdict, audit_verdict, look_alike, reviewer_name
from stepdown.builder.errors import BadInput

IMPORT_SOURCE = "import"


@dataclass(slots=True)
class CheckedAnswers:
    """A file's answers after the check: verdicts to import, or problems."""

    verdicts: list[RecordedVerdict] = field(default_factory=list)
    """Verdicts that are new."""
    idle: int = 0
    """How many of these are on steps of the lowest label, which settle themselves."""
    unchanged: int = 0
    """Answers that the store has already, word for word."""
    blank: int = 0
    """Steps without a verdict."""
    noted: int = 0
    """How many of those have notes."""
    unsubmitted: list[str] = field(default_factory=list)
    """Answers that were begun or discarded, and not submitted: the place of each, whose it is, and its status."""
    older: int = 0
    """Answers on a server that their reviewers have changed elsewhere since: what they said last stands."""
    problems: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    """Reviewers whom the audit did not know before."""


class AnswerChecker:
    """Checks the answers of one file or server against a run's sample."""

    def __init__(
        self,
        store: AuditStore,
        cases: CaseReader,
        place: Path | str,
        reviewer: str | None = None,
        source: str = IMPORT_SOURCE,
    ) -> None:
        """`place` is where the answers stand. `reviewer`, if named, gave all answers: one that names nobody is theirs,
        one of another is refused. `source` goes into the log; a server has one of its own.
        """
        self._store, self._cases, self._at, self._reviewer, self._source = store, cases, place, reviewer, source
        self._known = set(store.reviewers.names())
        people = {*self._known, *filter(None, [reviewer])}
        self._people = {name: name for name in people} | {account_id(name): name for name in people}
        """Reviewers by name and by the account that an export gave them."""
        self.strangers: set[str] = set()
        """Reviewers in the file whom the audit does not know."""
        self._queues: dict[str, set[str]] = {}
        self._current: dict[str, dict[str, RecordedVerdict]] = {}
        self._spoken: dict[str, set[tuple[str, str, str]]] = {}
        self._seen: dict[tuple[str, str], str] = {}

    def check(self, answers: Iterable[IncomingAnswer]) -> CheckedAnswers:
        """Check all answers."""
        checked, at = CheckedAnswers(), now()
        for answer in answers:
            if answer.unsubmitted:
                checked.unsubmitted.append(self._described(answer))
                continue
            try:
                said = self._check_answer(answer, at)
            except BadInput as error:
                checked.problems.append(str(error))
                continue
            if said is None:
                checked.blank += 1
                checked.noted += isinstance(answer.notes, str) and bool(answer.notes.strip())
            elif self._stands(said):
                checked.unchanged += 1
            elif self._is_older(said):
                checked.older += 1
            else:
                checked.verdicts.append(said)
                checked.idle += self._store.step(said.step_id).lowest
        checked.strangers = sorted(self.strangers)
        return checked

    def _check_answer(self, answer: IncomingAnswer, at: str) -> RecordedVerdict | None:
        """The verdict of an answer; None where it has none. Raises BadInput that names the place."""
        if answer.problem:
            raise self._wrong(answer, "", answer.problem)
        step = self._find_step(answer)
        if answer.verdict is None or answer.verdict == "":
            return None
        reviewer = self._reviewer_of(answer)
        try:
            verdict = audit_verdict(str(answer.verdict).strip().lower(), field="")
        except BadInput as error:
            raise self._wrong(answer, "verdict", str(error)) from None
        if answer.notes is not None and not isinstance(answer.notes, str):
            raise self._wrong(answer, "notes", "not text")
        self._check_prefix(answer, step)
        self._check_place(answer, step, reviewer, verdict)
        said = RecordedVerdict(
            step.id, reviewer, verdict, plain_notes(answer.notes or ""), str(answer.prefix_digest), at, self._source
        )
        if self._source == IMPORT_SOURCE:
            self._check_news(answer, said)
        return said

    def _find_step(self, answer: IncomingAnswer) -> AuditStep:
        if not isinstance(answer.id, str) or not answer.id:
            raise self._wrong(answer, "id", "must be the id of a sampled step")
        try:
            return self._store.step(answer.id)
        except BadInput:
            raise self._wrong(answer, "id", f"{answer.id[:200]!r} is not in the sample") from None

    def _reviewer_of(self, answer: IncomingAnswer) -> str:
        by = self._people.get(answer.account, answer.account)
        name = answer.reviewer or by or self._reviewer
        if not name:
            raise self._wrong(answer, "reviewer", "names nobody: name the reviewer with --reviewer")
        if not isinstance(name, str):
            raise self._wrong(answer, "reviewer", "not text")
        try:
            clean = reviewer_name(name, field="")
        except BadInput as error:
            raise self._wrong(answer, "reviewer", str(error)) from None
        if self._reviewer and clean != self._reviewer:
            raise self._wrong(answer, "reviewer", f"an answer of {clean!r}, and --reviewer says {self._reviewer!r}")
        if answer.account in self._people and by != clean:
            raise self._wrong(answer, "reviewer", f"a step of {clean!r}, and {by!r} has answered it")
        alike = look_alike(clean, self._known | self.strangers)
        if clean not in self._known and alike is not None:
            raise self._wrong(answer, "reviewer", f"{clean!r} is new and looks like the reviewer {alike!r}")
        if clean not in self._known:
            self.strangers.add(clean)
        return clean

    def _check_prefix(self, answer: IncomingAnswer, step: AuditStep) -> None:
        prefix_digest = self._cases.read_prefix_digest(step.benchmark, step.instance_id, step.step_index)
        if answer.prefix_digest != prefix_digest:
            given = f"{str(answer.prefix_digest)[:12]!r}" if answer.prefix_digest else "none"
            problem = f"a stale prefix: the file's digest is {given}, the step's begins with {prefix_digest[:12]!r}"
            raise self._wrong(answer, "prefix", problem)

    def _check_place(self, answer: IncomingAnswer, step: AuditStep, reviewer: str, verdict: AuditVerdict) -> None:
        if reviewer not in self._queues:
            self._queues[reviewer] = self._store.owned(reviewer)
            self._current[reviewer] = self._store.current(reviewer)
            self._spoken[reviewer] = self._store.spoken(reviewer)
        if step.id not in self._queues[reviewer]:
            raise self._wrong(answer, "reviewer", f"{step.id!r} is not in the queue of {reviewer!r}")
        if step.lowest and verdict is AuditVerdict.LOWER:
            raise self._wrong(answer, "verdict", f"the label of {step.id!r} is the lowest: it cannot go lower")
        earlier = self._seen.setdefault((reviewer, step.id), self._place(answer))
        if earlier != self._place(answer):
            raise self._wrong(answer, "id", f"a duplicate: {reviewer!r} answers {step.id!r} at {earlier} already")
        if answer.line is None:
            # The answers of one item have the same place, so a further one would not be seen as a duplicate.
            self._seen[reviewer, step.id] = f"{self._place(answer)}, answered"

    def _check_news(self, answer: IncomingAnswer, said: RecordedVerdict) -> None:
        """Refuse an answer that its reviewer has given before and changed since.

        Most likely an older export put it into the file; importing it would replace the newer answer.
        """
        if not self._stands(said) and (said.step_id, said.verdict.value, said.notes) in self._spoken[said.reviewer]:
            problem = (
                f"{said.reviewer!r} said this of {said.step_id!r} before and has said otherwise since: leave `verdict` "
                "empty, or say it again on the page, or with other notes"
            )
            raise self._wrong(answer, "verdict", problem)

    def _is_older(self, said: RecordedVerdict) -> bool:
        """Whether a server's answer was taken before, and its reviewer has said otherwise since, elsewhere.

        Where what stands came from the same server, the answer was changed there: it is news.
        """
        if self._source == IMPORT_SOURCE:
            return False
        stands = self._current[said.reviewer].get(said.step_id)
        elsewhere = stands is None or stands.source != self._source
        return elsewhere and (said.step_id, said.verdict.value, said.notes) in self._spoken[said.reviewer]

    def _stands(self, said: RecordedVerdict) -> bool:
        stands = self._current[said.reviewer].get(said.step_id)
        return stands is not None and (stands.verdict, stands.notes) == (said.verdict, said.notes)

    def _described(self, answer: IncomingAnswer) -> str:
        """Where an answer stands that was not submitted, whose it is, and its status."""
        by = self._people.get(answer.account, answer.account) or answer.reviewer
        return f"{self._place(answer)}{f' of {by}' if by else ''} ({answer.unsubmitted})"

    def _wrong(self, answer: IncomingAnswer, name: str, problem: str) -> BadInput:
        place = "" if answer.line is not None else self._place(answer)
        return BadInput(": ".join(filter(None, (place, name, problem))), file=self._at, line=answer.line)

    def _place(self, answer: IncomingAnswer) -> str:
        """Where an answer stands: its line or number in a file; on a server, the id of its record."""
        if self._source != IMPORT_SOURCE and isinstance(answer.id, str):
            return record_id(answer.id[:200], str(answer.reviewer or "")[:200])
        return f"line {answer.line}" if answer.line is not None else f"item {answer.item}"


def check_answers(
    store: AuditStore, cases: CaseReader, path: Path, answers: Iterator[IncomingAnswer], reviewer: str | None = None
) -> CheckedAnswers:
    """Check the answers of a file against a run's sample. Raises BadInput where the file cannot be read."""
    return AnswerChecker(store, cases, path, reviewer).check(answers)
