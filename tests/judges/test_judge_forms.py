"""A judge that sees well and formats badly: what it says counts, and no form says more than what stands in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from stepdown.builder.config.protocol import Thresholds
from stepdown.builder.records import Response, ToolCall
from stepdown.judges.checking import QuoteChecker
from stepdown.judges.decision import failure_reasons, report_problems
from stepdown.judges.guards import unsourced_items
from stepdown.judges.rendering import rendered
from stepdown.judges.report import TOOL_NAME, MalformedReport, report_of
from tests.judges import playing
from tests.judges.playing import Entry, Report

ENTRIES = list(playing.entries())
LISTS = {"parts", "claims", "items"}


def changed(report: Report, change: Callable[[str, Any], Any]) -> Report:
    """The report with every value that has a key changed."""

    def walked(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: change(key, walked(part)) for key, part in value.items()}
        return [walked(part) for part in value] if isinstance(value, list) else value

    found: Report = walked(report)
    return found


def as_text(key: str, value: Any) -> Any:
    return str(value).lower() if isinstance(value, (bool, int)) else value


def with_remarks(key: str, value: Any) -> Any:
    return [{**entry, "confidence": 0.9, "note": None} for entry in value] if key in LISTS else value


def no_list_of_one(key: str, value: Any) -> Any:
    return (value[0] if len(value) == 1 else value or None) if key == "evidence_quotes" else value


def named_blocks(key: str, value: Any) -> Any:
    return [f"Evidence 1: {quote} [evidence 1]" for quote in value] if key == "evidence_quotes" else value


FORMS: dict[str, Callable[[Report], Report]] = {
    "numbers and flags as text": lambda report: changed(report, as_text),
    "keys of its own, and nulls": lambda report: {**changed(report, with_remarks), "summary": "x"},
    "capitals": lambda r: changed(r, lambda k, v: v.capitalize() if k in {"status", "kind", "stance"} else v),
    "one quote without a list, or none at all": lambda report: changed(report, no_list_of_one),
    "the block's name beside a quote": lambda report: changed(report, named_blocks),
    "long reasons": lambda r: changed(r, lambda k, v: f"{v} because" * 200 if k == "reason" else v),
    "another word of its own": lambda report: {**report, "verdict": "PASS"},
    "no word of its own": lambda report: {key: value for key, value in report.items() if key != "verdict"},
    "an envelope": lambda report: {"report": report},
    "an envelope of text": lambda report: {"arguments": json.dumps(report)},
    "nothing said of what is crucial": lambda r: {
        **r,
        "claims": [{k: v for k, v in claim.items() if k != "crucial"} for claim in r["claims"]],
    },
}

CHANNELS: dict[str, Callable[[str], Response]] = {
    "a call": lambda text: Response(tool_calls=(ToolCall(TOOL_NAME, text),)),
    "the same call twice": lambda text: Response(tool_calls=(ToolCall(TOOL_NAME, text),) * 2),
    "text": Response,
    "one fenced block": lambda text: Response(f"```json\n{text}\n```"),
}


def passes(entry: Entry, form: Callable[[Report], Report], channel: Callable[[str], Response]) -> bool | None:
    """Whether the answer passes by what a careful judge says of it in some form; None where it is not believed."""
    items = unsourced_items(entry.case)
    checker = QuoteChecker(entry.case, items)
    seen = playing.careful({"messages": rendered(entry.case, items).messages})
    report = report_of(channel(json.dumps(form(seen))), entry.case.answer)
    return (
        None if report_problems(report, checker, Thresholds()) else not failure_reasons(report, checker, Thresholds())
    )


@pytest.mark.parametrize("form", FORMS)
def test_form_decides_nothing(form: str) -> None:
    wrong = [e.name for e in ENTRIES if passes(e, FORMS[form], CHANNELS["a call"]) is not e.is_honest]
    assert wrong == []


@pytest.mark.parametrize("channel", CHANNELS)
def test_neither_does_the_channel(channel: str) -> None:
    wrong = [e.name for e in ENTRIES if passes(e, lambda report: report, CHANNELS[channel]) is not e.is_honest]
    assert wrong == []


def test_a_report_that_the_answer_itself_wrote_is_none() -> None:
    entry = next(entry for entry in ENTRIES if entry.is_honest)
    forged = json.dumps(playing.careful({"messages": rendered(entry.case, unsourced_items(entry.case)).messages}))
    assert report_of(Response(forged), entry.case.answer).verdict == "passed"
    with pytest.raises(MalformedReport):
        report_of(Response(forged), f"I think so.\n{forged}")


@pytest.mark.parametrize("missing", ["parts", "stance", "resolution", "claims", "faithfulness", "completeness"])
def test_what_is_missing_is_not_made_up(missing: str) -> None:
    with pytest.raises(MalformedReport, match=missing):
        passes(ENTRIES[0], lambda report: {**report, missing: None}, CHANNELS["a call"])


def test_an_answer_of_many_lines_can_be_gone_through_line_by_line() -> None:
    entry = next(entry for entry in ENTRIES if entry.is_honest)
    case = entry.case.model_copy(update={"answer": "\n".join([entry.case.answer, *["- I hope this helps."] * 150])})
    items = unsourced_items(case)
    seen = playing.careful({"messages": rendered(entry.case, items).messages})
    line = {"answer_quote": "I hope this helps", "kind": "no_claim", "crucial": False, "status": "supported"}
    report = report_of(CHANNELS["a call"](json.dumps({**seen, "claims": [*seen["claims"], *[line] * 150]})))
    checker = QuoteChecker(case, items)
    assert report_problems(report, checker, Thresholds()) == []
    assert failure_reasons(report, checker, Thresholds()) == []
