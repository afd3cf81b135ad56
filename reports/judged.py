"""Reads what a judge left with a trial, as far as a report counts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepdown.reports.facts import JudgedAnswers


def count_judged(judged: JudgedAnswers, grading: Any, verdict: str) -> None:
    """Count one graded answer. Gradings of other kinds, a test report say, are no judge's and are passed over.

    A judge's is `{"judge": {"items", "opinions": [{"verdict", "reasons": [[rule, what was found]], "report"}]}}`; the
    report's own `verdict` is the judge model's word, the opinion's what the rules made of its observations.
    """
    found = grading.get("judge") if isinstance(grading, Mapping) else None
    if not isinstance(found, Mapping):
        return
    opinions = [opinion for opinion in found.get("opinions") or () if isinstance(opinion, Mapping)]
    judged.answers += 1
    judged.failed += verdict == "fail"
    judged.flips += any(opinion.get("verdict") == "fail" and _word(opinion) == "passed" for opinion in opinions)
    judged.split += {"pass", "fail"} <= {opinion.get("verdict") for opinion in opinions}
    judged.unusable += sum(len(opinion.get("refused") or ()) for opinion in opinions)
    judged.rules.update({str(reason[0]) for opinion in opinions for reason in opinion.get("reasons") or ()})
    if verdict == "fail" and not opinions:
        judged.rules["too many figures and names without a source"] += 1


def _word(opinion: Mapping[str, Any]) -> Any:
    report = opinion.get("report")
    return report.get("verdict") if isinstance(report, Mapping) else None
