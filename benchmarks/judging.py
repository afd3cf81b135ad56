"""Processor time that a judged answer takes beside the judge itself: finding its items, and checking a report on it.

`python -m benchmarks.judging [RATED.jsonl]` prints JSON, in milliseconds of processor time an answer. Without a file
the answers are those of the exam's library; with one, the answerable answers of a file in the form that `stepdown judge
calibrate` reads. The report quotes, for each sentence of an answer, the two sentences of the evidence that are nearest.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from stepdown.builder.config.protocol import Thresholds
from stepdown.judges.calibration.data import read_rated_answers
from stepdown.judges.case import JudgeCase
from stepdown.judges.checking import QuoteChecker
from stepdown.judges.content import content_of
from stepdown.judges.decision import failure_reasons, report_problems
from stepdown.judges.exam.library import good_answers
from stepdown.judges.guards import UnsourcedItem, unsourced_items
from stepdown.judges.report import RATINGS, Report
from stepdown.judges.text import sentences


def nearest_report(case: JudgeCase, items: Sequence[UnsourcedItem]) -> Report:
    """A report that finds everything supported by what is nearest."""
    told = [(one, content_of(one)) for passage in case.evidence for one in sentences(passage.text)]

    def nearest(text: str) -> list[str]:
        about = content_of(text)
        return [one for one, said in sorted(told, key=lambda pair: -len(about & pair[1]))[:2]]

    said = sentences(case.answer)
    claims = [_claim(sentence[:2000], [quote[:2000] for quote in nearest(sentence)]) for sentence in said]
    fine: Any = {"reason": "", "rating": 5}
    report: dict[str, Any] = {
        "parts": [{"part": "all", "status": "given", "answer_quote": said[0][:2000]}],
        "stance": "answers",
        "resolution": {"status": "completely", "reason": ""},
        "claims": claims,
        "items": [
            {"item": number, "status": "derived", "evidence_quotes": [quote[:2000] for quote in nearest(item.context)]}
            for number, item in enumerate(items, 1)
        ],
        **dict.fromkeys(RATINGS, fine),
    }
    return Report.model_validate_json(json.dumps(report), strict=True)


def _claim(sentence: str, quotes: list[str]) -> dict[str, Any]:
    shared = {"kind": "other", "crucial": True, "status": "supported"}
    return {"answer_quote": sentence, "evidence_quotes": quotes, **shared}


def main(arguments: Sequence[str]) -> None:
    cases = (
        [one.case for one in read_rated_answers(Path(arguments[0])).rated]
        if arguments
        else [good.case for good in good_answers()]
    )
    guarding, checking = [], []
    for case in cases:
        begun = time.process_time()
        items = unsourced_items(case)
        guarding.append(time.process_time() - begun)
        report = nearest_report(case, items)
        checker = QuoteChecker(case, items)
        begun = time.process_time()
        report_problems(report, checker, Thresholds())
        failure_reasons(report, checker, Thresholds())
        checking.append(time.process_time() - begun)
    shown = {
        name: {"median": round(1000 * median(times), 1), "longest": round(1000 * max(times), 1)}
        for name, times in (("items", guarding), ("report", checking))
    }
    print(json.dumps({"answers": len(cases), "processor_ms": shown}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
