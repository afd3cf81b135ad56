"""Asks a panel of judge models about a case, and asks again where a report cannot be believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stepdown.builder.cache.question import Question
from stepdown.builder.config.pool import Model
from stepdown.builder.config.protocol import JudgeConfig
from stepdown.builder.errors import Technical
from stepdown.builder.records import Prefix, Ruling, Sample, Stop, Verdict
from stepdown.judges.case import JudgeCase, RefusalCase
from stepdown.judges.checking import QuoteChecker
from stepdown.judges.decision import FailureReason, failure_reasons, report_problems
from stepdown.judges.guards import UnsourcedItem, unsourced_items
from stepdown.judges.prompts import prompts_digest
from stepdown.judges.refusal import rule_on_refusal
from stepdown.judges.rendering import rendered
from stepdown.judges.report import MOST_ENTRIES, MalformedReport, Report, report_of
from stepdown.judges.text import words
from stepdown.judges.voting import WORKLOAD, ResponseSource, draws, panel_verdict


@dataclass(frozen=True, slots=True)
class JudgeOpinion:
    """One report of one judge model, and what follows from it. `report` is None where no usable one came."""

    model: str
    draw: int
    verdict: Verdict
    reasons: tuple[FailureReason, ...] = ()
    report: Report | None = None
    refused: tuple[str, ...] = ()
    """Why earlier responses could not be used, one text each."""
    is_unreachable: bool = False
    """Whether no response came: that says nothing about the judge."""

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
class PanelFinding:
    """What a panel found: pass, fail or technical, with everything that the verdict is based on."""

    verdict: Verdict
    reason: str
    items: tuple[UnsourcedItem, ...]
    opinions: tuple[JudgeOpinion, ...]

    def to_json(self) -> dict[str, Any]:
        """The form that stands in the evidence. Foreign text in it is plain JSON text."""
        return {
            "judge": {
                "items": [item.to_json() for item in self.items],
                "opinions": [opinion.to_json() for opinion in self.opinions],
            }
        }


def judge_case(case: JudgeCase, panel: JudgeConfig, source: ResponseSource, subject: str) -> PanelFinding:
    """Ask the panel about a case. `subject` names what the case belongs to; a case is asked about once per subject.

    Each model gives one opinion per draw. Opinions are asked for in order, and only until the verdict is certain. The
    verdict is technical where it needs a report that does not come; its reason says why. Other errors of `source` (a
    rejected key, a reached budget) are not caught.
    """
    items = unsourced_items(case)[:MOST_ENTRIES]
    if not words(case.answer):
        return PanelFinding(Verdict.FAIL, "the answer has no words", items, ())
    checker, first = QuoteChecker(case, items), rendered(case, items)
    opinions: list[JudgeOpinion] = []
    for model, draw in draws(panel):
        opinions.append(_JudgeDraw(model, draw, panel, source, subject).ask(checker, first))
        verdict = panel_verdict([opinion.verdict for opinion in opinions], panel)
        if verdict is not None:
            break
    else:
        verdict = Verdict.TECHNICAL
    return PanelFinding(verdict, _reason(verdict, opinions), items, tuple(opinions))


def rule_on_case(case: JudgeCase | RefusalCase, panel: JudgeConfig, source: ResponseSource, subject: str) -> Ruling:
    """Ask the panel as `judge_case` does, and give its finding as a ruling, with the finding's JSON as the grading.

    About a refusal it is asked as `rule_on_refusal` does.
    """
    if isinstance(case, RefusalCase):
        return rule_on_refusal(case, panel, source, subject)
    finding = judge_case(case, panel, source, subject)
    return Ruling(finding.verdict, finding.reason, finding.to_json())


def opinion_of(model: Model, case: JudgeCase, panel: JudgeConfig, source: ResponseSource, subject: str) -> JudgeOpinion:
    """One model's first opinion on a case, whatever the others say. `subject` as for `judge_case`."""
    items = unsourced_items(case)[:MOST_ENTRIES]
    return _JudgeDraw(model, 0, panel, source, subject).ask(QuoteChecker(case, items), rendered(case, items))


def _reason(verdict: Verdict, opinions: Sequence[JudgeOpinion]) -> str:
    if verdict is Verdict.PASS:
        return ""
    opinion = next(opinion for opinion in opinions if opinion.verdict is verdict)
    if verdict is Verdict.TECHNICAL:
        return f"judge {opinion.model}: {opinion.refused[-1]}"
    shown = "; ".join(f"{reason.rule}: {reason.found}" for reason in opinion.reasons)
    return f"judge {opinion.model}: {shown}"


@dataclass(frozen=True, slots=True)
class _JudgeDraw:
    """One draw of one judge model: asked until it gives a report that can be believed, or its attempts are used up."""

    model: Model
    draw: int
    panel: JudgeConfig
    source: ResponseSource
    subject: str

    def ask(self, checker: QuoteChecker, first: Prefix) -> JudgeOpinion:
        """Ask until a report can be believed. Unusable responses from the cache cost no attempt."""
        refused: list[str] = []
        number, left, prefix = 0, self.panel.attempts, first
        while left:
            try:
                answer = self.source.fetch(self._question(prefix, number))
            except Technical as error:
                self.source.note_failed(error.attempts)
                return self._technical([*refused, error.reason], is_unreachable=True)
            response, fresh = answer.response, answer.fresh
            try:
                report = report_of(response, checker.case.answer)
                wrong = report_problems(report, checker, self.panel.thresholds)
            except MalformedReport as error:
                wrong = [str(error)]
            else:
                if not wrong:
                    reasons = tuple(failure_reasons(report, checker, self.panel.thresholds))
                    verdict = Verdict.FAIL if reasons else Verdict.PASS
                    return JudgeOpinion(self.model.name, self.draw, verdict, reasons, report, tuple(refused))
            refused.append("; ".join(wrong))
            if fresh and response.stop is Stop.OVERFLOW:
                break
            prefix = first if response.stop in {Stop.REFUSED, Stop.OVERFLOW} else _with_problems(first, wrong)
            number, left = number + 1, left - fresh
        return self._technical(refused)

    def _technical(self, refused: list[str], is_unreachable: bool = False) -> JudgeOpinion:
        technical, name = Verdict.TECHNICAL, self.model.name
        return JudgeOpinion(name, self.draw, technical, refused=tuple(refused), is_unreachable=is_unreachable)

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


_MOST_PROBLEMS_TOLD = 5
"""How many problems of a report the judge is told of when it is asked again."""


def _with_problems(first: Prefix, wrong: Sequence[str]) -> Prefix:
    """The question again, with what was wrong with the last report. Nothing that the report said is repeated."""
    lines = "\n".join(f"- {problem}" for problem in wrong[:_MOST_PROBLEMS_TOLD])
    return first.extend([{"role": "user", "content": f"Another report on this could not be used:\n{lines}"}])
