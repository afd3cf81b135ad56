"""Asks a panel of judge models about a case, as often as it takes to get reports that can be believed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stepdown.builder.cache.question import Question
from stepdown.builder.config.pool import Model
from stepdown.builder.config.protocol import JudgeConfig
from stepdown.builder.errors import Technical
from stepdown.builder.records import Prefix, Response, Ruling, Sample, Stop, Verdict
from stepdown.judges.case import Case
from stepdown.judges.decision import MOST_ITEMS, Grounds, Reason, decided, problems
from stepdown.judges.guards import Item, items_of
from stepdown.judges.prompts import prompts_digest
from stepdown.judges.rendering import rendered
from stepdown.judges.report import Malformed, Report, read
from stepdown.judges.text import words

WORKLOAD = "judge"
"""Under this name questions to judges are kept, whatever workload the answer is of."""


class Asks(Protocol):
    """Where responses come from: `builder.calls.Calls`. Raises Technical."""

    def asked(self, question: Question) -> tuple[Response, bool]: ...

    def note_failed(self, attempts: Sequence[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class Opinion:
    """One report of one judge model, and what follows from it. `report` is None where none could be had."""

    model: str
    draw: int
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    report: Report | None = None
    refused: tuple[str, ...] = ()
    """Why earlier responses were no report that could be used."""

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "draw": self.draw,
            "verdict": self.verdict.value,
            "reasons": [[reason.rule, reason.found] for reason in self.reasons],
            "report": self.report.model_dump(mode="json") if self.report else None,
            "refused": list(self.refused),
        }


@dataclass(frozen=True, slots=True)
class JudgeFinding:
    """What a panel came to: pass, fail or technical, and everything it rests on."""

    verdict: Verdict
    reason: str
    items: tuple[Item, ...]
    opinions: tuple[Opinion, ...]

    def to_json(self) -> dict[str, Any]:
        """As evidence holds it. Foreign text in it is plain JSON text."""
        return {
            "judge": {
                "items": [{"kind": item.kind, "text": item.text, "context": item.context} for item in self.items],
                "opinions": [opinion.to_json() for opinion in self.opinions],
            }
        }


def judge_case(case: Case, panel: JudgeConfig, asks: Asks, subject: str) -> JudgeFinding:
    """The panel's verdict on a case. `subject` names what the case is of; a case is asked about once per subject.

    Seats are asked in order and only until the verdict is certain. It is technical where a seat's report is needed and
    cannot be had; then its reason says why. Other errors of `asks` (a rejected key, a budget) go on upwards.
    """
    items = items_of(case)
    if not words(case.answer):
        return JudgeFinding(Verdict.FAIL, "the answer has no words", items, ())
    if len(items) > MOST_ITEMS:
        reason = f"{len(items)} figures and names of the answer are in no source"
        return JudgeFinding(Verdict.FAIL, reason, items, ())
    grounds, first = Grounds(case, items), rendered(case, items)
    opinions: list[Opinion] = []
    for model, draw in _seats(panel):
        opinions.append(_Seat(model, draw, panel, asks, subject).opinion(grounds, first))
        verdict = ruled([opinion.verdict for opinion in opinions], panel)
        if verdict is not None:
            break
    else:
        verdict = Verdict.TECHNICAL
    return JudgeFinding(verdict, _reason(verdict, opinions), items, tuple(opinions))


def judge_ruling(case: Case, panel: JudgeConfig, asks: Asks, subject: str) -> Ruling:
    """What `judge_case` comes to as a workload's own ruling would say it, the panel's finding as its grading."""
    finding = judge_case(case, panel, asks, subject)
    return Ruling(finding.verdict, finding.reason, finding.to_json())


def ruled(verdicts: Sequence[Verdict], panel: JudgeConfig) -> Verdict | None:
    """The panel's verdict, once no seat that is still to come, or technical, can change it."""
    seats = len(panel.models) * panel.samples
    needed = seats if panel.rule == "unanimous" else seats // 2 + 1
    if verdicts.count(Verdict.PASS) >= needed:
        return Verdict.PASS
    if verdicts.count(Verdict.FAIL) > seats - needed:
        return Verdict.FAIL
    return None


def _seats(panel: JudgeConfig) -> Iterator[tuple[Model, int]]:
    for draw in range(panel.samples):
        for model in panel.models:
            yield model, draw


def _reason(verdict: Verdict, opinions: Sequence[Opinion]) -> str:
    if verdict is Verdict.PASS:
        return ""
    opinion = next(opinion for opinion in opinions if opinion.verdict is verdict)
    if verdict is Verdict.TECHNICAL:
        return f"judge {opinion.model}: {opinion.refused[-1]}"
    shown = "; ".join(f"{reason.rule}: {reason.found}" for reason in opinion.reasons)
    return f"judge {opinion.model}: {shown}"


@dataclass(frozen=True, slots=True)
class _Seat:
    """One draw of one judge model."""

    model: Model
    draw: int
    panel: JudgeConfig
    asks: Asks
    subject: str

    def opinion(self, grounds: Grounds, first: Prefix) -> Opinion:
        """The first report that can be believed. What the cache holds of others is passed over and costs no try."""
        refused: list[str] = []
        number, left, prefix = 0, self.panel.attempts, first
        while left:
            try:
                response, fresh = self.asks.asked(self._question(prefix, number))
            except Technical as error:
                self.asks.note_failed(error.attempts)
                return self._technical([*refused, error.reason])
            try:
                report = read(response, grounds.case.answer)
                wrong = problems(report, grounds, self.panel.thresholds)
            except Malformed as error:
                wrong = [str(error)]
            else:
                if not wrong:
                    reasons = tuple(decided(report, grounds, self.panel.thresholds))
                    verdict = Verdict.FAIL if reasons else Verdict.PASS
                    return Opinion(self.model.name, self.draw, verdict, reasons, report, tuple(refused))
            refused.append("; ".join(wrong))
            if fresh and response.stop is Stop.OVERFLOW:
                break
            prefix = first if response.stop in {Stop.REFUSED, Stop.OVERFLOW} else _told(first, wrong)
            number, left = number + 1, left - fresh
        return self._technical(refused)

    def _technical(self, refused: list[str]) -> Opinion:
        return Opinion(self.model.name, self.draw, Verdict.TECHNICAL, refused=tuple(refused))

    def _question(self, prefix: Prefix, number: int) -> Question:
        return Question(
            workload=WORKLOAD,
            harness_version=prompts_digest(),
            instance=self.subject,
            step=1 + self.draw,
            model=self.model,
            prefix=prefix,
            sample=Sample("judge", number),
        )


_SHOWN = 5
"""Problems of a report that the next try is told of."""


def _told(first: Prefix, wrong: Sequence[str]) -> Prefix:
    """The question again, with what was wrong with the last report; nothing that the report said is repeated."""
    lines = "\n".join(f"- {problem}" for problem in wrong[:_SHOWN])
    return first.extend([{"role": "user", "content": f"Another report on this could not be used:\n{lines}"}])
