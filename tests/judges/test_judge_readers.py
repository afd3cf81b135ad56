"""The new library before judges that read, and before judges that do not: what passes, and what is not believed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.cache.question import Question
from stepdown.builder.cache.responses import Answer, Entry
from stepdown.builder.config.pool import Model
from stepdown.builder.config.protocol import JudgeConfig
from stepdown.builder.records import Response, ToolCall, Verdict
from stepdown.judges.case import JudgeCase
from stepdown.judges.exam import library
from stepdown.judges.exam.library import good_answers, scene_case
from stepdown.judges.panel import PanelFinding, judge_case
from stepdown.judges.report import TOOL_NAME
from tests.judges.playing import Report
from tests.judges.reading import JUDGES
from tests.provider import Request

PANEL = JudgeConfig(models=(Model(name="j", model="p/j"),), panel="single", attempts=3)
SCENES = {
    scene["id"]: scene
    for scene in map(json.loads, (Path(library.__file__).parent / "library.jsonl").read_text("utf-8").splitlines())
}
PSEUDO = [json.loads(line) for line in (Path(__file__).parent / "pseudo_passes.jsonl").read_text("utf-8").splitlines()]


class Asked:
    """A source of responses that asks a judge at once."""

    def __init__(self, judge: Callable[[Request], Report]) -> None:
        self._judge = judge

    def fetch(self, question: Question) -> Answer:
        report = json.dumps(self._judge({"messages": question.prefix.messages}))
        response = Response(tool_calls=(ToolCall(TOOL_NAME, report),))
        return Answer(Entry(question.key(), question.prefix.exact, response, "run"), fresh=True)

    def note_failed(self, attempts: Sequence[str]) -> None:
        raise AssertionError


def found_by(judge: str, case: JudgeCase) -> PanelFinding:
    return judge_case(case, PANEL, Asked(JUDGES[judge]), "s")


def pseudo_passes() -> Iterator[tuple[dict[str, Any], JudgeCase]]:
    for one in PSEUDO:
        yield one, scene_case(SCENES[one["scene"]], one["answer"])


def test_the_library_is_what_it_says() -> None:
    good = good_answers()
    assert len(PSEUDO) >= 80
    assert len(good) >= 40
    assert {"en", "de"} == {one.language for one in good}
    assert max(len(one.case.answer.split()) for one in good) >= 900
    assert sum("|" in one.case.answer for one in good) >= 1
    assert len({one["kind"] for one in PSEUDO}) >= 15
    assert not {one["answer"] for one in PSEUDO} & {one.case.answer for one in good}


def test_who_reads_honestly_has_every_honest_answer_passed() -> None:
    """Within three attempts; and nothing that it says truly is refused for good."""
    found = {one.name: found_by("honest", one.case) for one in good_answers()}
    assert [name for name, finding in found.items() if finding.verdict is not Verdict.PASS] == []


def test_who_reads_honestly_passes_few_pseudo_passes() -> None:
    """It is a script with a small dictionary: a capable judge could do better, and none could be asked."""
    short = [(one, case) for one, case in pseudo_passes() if len(case.answer) < 1000]
    passed = [one for one, case in short if found_by("honest", case).verdict is Verdict.PASS]
    assert len(passed) <= len(short) * 0.25


def test_any_real_sentence_is_no_support() -> None:
    """At most one of twenty pseudo-passes passes, before an exam has looked at the judge."""
    verdicts = Counter(found_by("irrelevant", case).verdict for _, case in pseudo_passes())
    assert verdicts[Verdict.PASS] <= len(PSEUDO) / 20
    assert verdicts[Verdict.FAIL] == 0, "a report that lies decides nothing"


@pytest.mark.parametrize("judge", ["lying", "lazy"])
def test_who_invents_or_looks_at_little_is_not_believed(judge: str) -> None:
    verdicts = Counter(found_by(judge, case).verdict for _, case in pseudo_passes())
    assert verdicts[Verdict.PASS] <= len(PSEUDO) / 20
