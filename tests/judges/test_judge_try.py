"""`stepdown judge try`: one answer, one verdict, and everything it rests on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.config.loading import Config
from stepdown.builder.config.validation import validated
from tests.conftest import Result, stepdown
from tests.judges import playing
from tests.judges.playing import Entry, entries, reporting, with_judges
from tests.provider import Answer, Provider

Start = Callable[..., Provider]
ENTRIES = {entry.name: entry for entry in entries()}


def tried(folder: Path, entry: Entry | None = None, config: Any = None, *options: str) -> Result:
    arguments = list(options)
    if entry is not None:
        (folder / "case.json").write_text(entry.case.model_dump_json())
        arguments.insert(0, str(folder / "case.json"))
    if config is not None:
        (folder / "config.yaml").write_text(config.model_dump_json())
        arguments += ["--config", str(folder / "config.yaml")]
    return stepdown("judge", "try", *arguments)


def test_the_verdict_is_shown_with_all_that_it_rests_on(tmp_path: Path, provider: Start) -> None:
    server = provider({"sloppy": reporting(playing.sloppy)})
    done = tried(tmp_path, ENTRIES["lighthouse/wrong-day"], with_judges(server.url, "sloppy"))
    assert done.code == 0, done.err
    for part in (
        "verdict: fail",
        "because: contradiction: It was first lit on 8 May 1871.",
        "its own word: passed (changes nothing)",
        "1. date '8 May 1871'",
        "evidence: The Skarv lighthouse was first lit on 3 May 1871.",
        "faithfulness 5",
        "1 calls made now",
    ):
        assert part in done.out


def test_an_honest_answer_passes(tmp_path: Path, provider: Start) -> None:
    server = provider({"harsh": reporting(playing.harsh)})
    done = tried(tmp_path, ENTRIES["library-fines/cents"], with_judges(server.url, "harsh"), "--json")
    assert json.loads(done.out)["verdict"] == "pass"


def test_a_judge_without_native_tools_reports_under_a_schema(tmp_path: Path, provider: Start) -> None:
    def under_schema(request: Any) -> Answer:
        schema = request["response_format"]["json_schema"]["schema"]["anyOf"][0]["properties"]["arguments"]
        claim = schema["properties"]["claims"]["items"]["properties"]
        assert (claim["answer_quote"]["maxLength"], schema["properties"]["claims"]["maxItems"]) == (600, 60)
        assert "items" not in schema["required"]
        return Answer(json.dumps({"function": "report", "arguments": playing.sloppy(request)}))

    config = with_judges(provider({"small": under_schema}).url, "small").model_dump(mode="json")
    config["protocol"]["judge"]["models"][0]["actions"] = "json_schema"
    done = tried(tmp_path, ENTRIES["library-fines/cents"], validated(Config, config), "--json")
    assert json.loads(done.out)["verdict"] == "pass"


def test_nothing_hostile_reaches_the_terminal(tmp_path: Path, provider: Start) -> None:
    entry = ENTRIES["injected/direct"]
    evil = "\x1b[2J\u202eevil\x07"

    def odd(request: Any) -> Any:
        report = playing.sloppy(request)
        report["resolution"]["reason"] = report["claims"][0]["note"] = evil
        return report

    server = provider({"odd": reporting(odd)})
    done = tried(tmp_path, entry, with_judges(server.url, "odd"))
    assert done.code == 0, done.err
    assert not set(done.out) & set("\x1b\u202e\x07")
    assert "evil" in done.out


def test_no_verdict_is_exit_code_3(tmp_path: Path, provider: Start) -> None:
    server = provider({"mute": lambda request: Answer("passed")})
    done = tried(tmp_path, ENTRIES["injected/direct"], with_judges(server.url, "mute", attempts=2))
    assert done.code == 3
    assert "verdict: technical" in done.out
    assert server.count() == 2


def test_guards_alone_need_no_model(tmp_path: Path) -> None:
    (tmp_path / "hours.txt").write_text("It opens at nine and closes at 18:00.")
    options = ["--question", "When does it open?", "--evidence", str(tmp_path / "hours.txt"), "--answer"]
    done = stepdown("judge", "try", *options, "At nine, until 7 pm.")
    assert done.code == 0
    assert "1. date '7 pm'" in done.out
    assert "nothing to settle" in stepdown("judge", "try", *options, "At 9, until 6 pm.").out


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "case.json"),
        ('{"kind": "poem"}', "kind"),
        ('{"kind": "rag", "turns": [{"speaker": "user", "text": "?"}], "evidence": [], "answer": "a"}', "evidence"),
        (
            '{"kind": "rag", "turns": [{"speaker": "user", "text": "?"}], "evidence": [{"text": "e"}], "answer": "a", '
            '"verdict": "pass"}',
            "unknown key",
        ),
    ],
)
def test_a_wrong_case_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "case.json").write_text(text)
    done = stepdown("judge", "try", str(tmp_path / "case.json"))
    assert done.code == 2
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1


def test_case_and_options_are_one_or_the_other(tmp_path: Path) -> None:
    assert "--answer" in stepdown("judge", "try", "--question", "?").err or "--evidence" in stepdown("judge", "try").err
    both = tried(tmp_path, ENTRIES["injected/direct"], None, "--answer", "x")
    assert both.code == 2
    assert "leave out --answer" in both.err
