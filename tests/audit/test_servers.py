"""`audit push` and `audit pull`: the audit in step with a server where people review, of either tool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stepdown.audit.store import AuditStore
from tests.audit.loopback_servers import OWNER_KEY, READ_ONLY_KEY, SERVERS, LoopbackLabelStudio, LoopbackServer
from tests.audit.reviewing import above_lowest, review, said
from tests.conftest import Result, stepdown

KEYS = {"argilla": "ARGILLA_API_KEY", "label-studio": "LABEL_STUDIO_API_KEY"}


@dataclass(frozen=True)
class Desk:
    """A sampled run, and a server of one of the tools."""

    run: Path
    tool: str
    server: LoopbackServer

    def push(self, *options: str) -> Result:
        return stepdown("audit", "push", str(self.run), self.server.url, "--tool", self.tool, *options)

    def push_again(self) -> Result:
        return stepdown("audit", "push", str(self.run))

    def pull(self) -> Result:
        return stepdown("audit", "pull", str(self.run))

    def steps(self) -> list[str]:
        """The steps that people are asked about."""
        return [step.id for step in above_lowest(self.run)]


@pytest.fixture(params=SERVERS)
def desk(request: pytest.FixtureRequest, sampled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv(KEYS[request.param], OWNER_KEY)
    with SERVERS[request.param]() as server:
        yield Desk(sampled, request.param, server)


@pytest.fixture
def pushed(desk: Desk) -> Desk:
    result = desk.push()
    assert result.code == 0, result.err
    desk.server.requests.clear()
    return desk


def test_every_step_for_people_goes_there_once(desk: Desk) -> None:
    first = desk.push()
    count = len(desk.steps())
    assert (first.code, desk.server.record_ids()) == (0, desk.steps()), first.err
    assert f"{count} records pushed, 0 were there: " in first.out
    desk.server.requests.clear()
    again = desk.push_again()
    assert (again.code, desk.server.written()) == (0, [])
    assert f"0 records pushed, {count} were there: " in again.out


def test_steps_that_were_sampled_since_follow(pushed: Desk) -> None:
    before = pushed.steps()
    assert stepdown("audit", "sample", str(pushed.run), "--rate", "1").code == 0
    result = pushed.push_again()
    assert f"{len(pushed.steps()) - len(before)} records pushed, {len(before)} were there" in result.out
    assert sorted(pushed.server.record_ids()) == sorted(pushed.steps())


def test_what_was_submitted_becomes_verdicts_by_reviewer_and_nothing_else_does(pushed: Desk) -> None:
    one, two, three, four, *_ = pushed.steps()
    pushed.server.answer(one, "ana", "tight", "seen")
    pushed.server.answer(one, "bo", "uncertain")
    pushed.server.answer(two, "ana", "further-downgradeable")
    pushed.server.answer(three, "ana", "tight", status="draft")
    pushed.server.answer(four, "bo", "tight", status="discarded")
    result = pushed.pull()
    assert (result.code, result.out) == (0, "3 verdicts taken, 0 stood already\n"), result.err
    assert said(pushed.run) == {
        ("ana", one): ("tight", "seen"),
        ("bo", one): ("uncertain", ""),
        ("ana", two): ("further-downgradeable", ""),
    }
    word = "discarded" if pushed.tool == "argilla" else "cancelled"
    assert f"not taken: 2 answers: {three} of ana (draft), {four} of bo ({word})" in result.err
    assert "reviewers that the audit did not know: ana, bo" in result.err
    assert pushed.pull().out == "0 verdicts taken, 3 stood already\n"
    with AuditStore(pushed.run) as store:
        assert {verdict.source for verdict in store.standing()} == {pushed.tool}
    # Who has answered does not change what is pushed: a step that is nobody's stays one record.
    assert f"0 records pushed, {len(pushed.steps())} were there" in pushed.push_again().out


def test_what_is_changed_on_the_server_is_news_and_what_was_changed_elsewhere_since_stands(pushed: Desk) -> None:
    one, two, *_ = pushed.steps()
    for verdict in ("tight", "uncertain", "tight"):
        pushed.server.answer(one, "ana", verdict)
        pushed.server.answer(two, "ana", verdict)
        assert pushed.pull().out.startswith("2 verdicts taken")
        assert said(pushed.run)["ana", one] == (verdict, "")
    review(pushed.run, "ana", lambda step: "further-downgradeable" if step.id == one else None)
    result = pushed.pull()
    assert (result.code, result.out) == (0, "0 verdicts taken, 1 stood already\n")
    assert "1 answers were changed elsewhere since" in result.err
    assert said(pushed.run) == {("ana", one): ("further-downgradeable", ""), ("ana", two): ("tight", "")}


def test_a_step_that_was_shared_out_goes_to_each_of_its_reviewers_until_they_have_answered(desk: Desk) -> None:
    shared = stepdown("audit", "sample", str(desk.run), "--reviewers", "ana,bo", "--overlap", "1")
    assert shared.code == 0, shared.err
    one, two, *_ = desk.steps()
    review(desk.run, "ana", lambda step: "tight" if step.id == one else None)
    assert desk.push().code == 0
    due = {f"{step} {who}" for step in desk.steps() for who in ("ana", "bo")} - {f"{one} ana"}
    assert set(desk.server.record_ids()) == due
    # The step's own name counts; an account of somebody else's is no stranger where it answers for another.
    desk.server.answer(f"{two} bo", "owner", "uncertain")
    desk.server.answer(f"{two} ana", "bo", "tight")
    result = desk.pull()
    assert (result.code, result.out) == (2, "1 verdicts taken, 0 stood already\n")
    assert said(desk.run) == {("ana", one): ("tight", ""), ("bo", two): ("uncertain", "")}
    assert f"{two} ana: reviewer: a step of 'ana', and 'bo' has answered it" in result.err


def test_what_can_not_be_taken_is_named_and_the_rest_is_taken(pushed: Desk) -> None:
    one, two, three, four, *_ = pushed.steps()
    for step in (one, two, three, four):
        pushed.server.answer(step, "ana", "tight")
    pushed.server.answer(two, "ana", "loose\x1b[2J")
    pushed.server.change(three, digest="0" * 64)
    pushed.server.change(four, id="planted/nowhere/1")
    result = pushed.pull()
    assert (result.code, said(pushed.run)) == (2, {("ana", one): ("tight", "")})
    assert f"{two}: verdict: " in result.err
    assert f"{three}: prefix: a stale prefix" in result.err
    assert "'planted/nowhere/1' is not in the sample" in result.err
    assert "3 answers could not be taken" in result.err
    assert "\x1b" not in result.err + result.out


def test_nothing_that_would_sway_a_reviewer_is_sent(desk: Desk, tmp_path: Path) -> None:
    guesses = [{"id": step, "verdict": "tight", "notes": "guessed-by-a-model"} for step in desk.steps()]
    (tmp_path / "guesses.jsonl").write_text("".join(json.dumps(line) + "\n" for line in guesses))
    assert stepdown("audit", "prelabel", str(desk.run), str(tmp_path / "guesses.jsonl")).code == 0
    review(desk.run, "evelyn-q", lambda step: "uncertain", "said-by-one-of-us")
    assert desk.push().code == 0
    sent = b"\n".join(desk.server.bodies).decode()
    for words in ("guessed-by-a-model", "said-by-one-of-us", "evelyn-q"):
        assert words not in sent


def test_an_interrupted_push_goes_on_where_it_was(desk: Desk) -> None:
    everything = ("--rate", "1", "--reviewers", "ana,bo", "--overlap", "1")
    assert stepdown("audit", "sample", str(desk.run), *everything).code == 0
    end = "/records/bulk" if desk.tool == "argilla" else "/import"
    method = "PUT" if desk.tool == "argilla" else "POST"
    desk.server.fail_after[method, end] = 1
    cut = desk.push()
    arrived = desk.server.record_ids()
    assert (cut.code, "answers 500" in cut.err, 0 < len(arrived) < 2 * len(desk.steps())) == (3, True, True), cut.err
    done = desk.push_again()
    assert (done.code, len(desk.server.record_ids())) == (0, 2 * len(desk.steps())), done.err
    assert len(set(desk.server.record_ids())) == 2 * len(desk.steps())
    assert f"{len(arrived)} were there" in done.out


def test_a_server_that_is_down_stops_it_and_the_same_command_goes_on(pushed: Desk) -> None:
    pushed.server.answer(pushed.steps()[0], "ana", "tight")
    pushed.server.__exit__()
    result = pushed.pull()
    assert (result.code, result.err.count("\n")) == (3, 1)
    assert f"stepdown: {pushed.server.url} can not be reached: " in result.err


NONSENSE: dict[str, Any] = {
    "HTML": b"<html>welcome</html>",
    "nothing": None,
    "a list": [],
    "items of no kind": {"items": [1, None], "tasks": [1, None], "results": [1, None]},
    "deeper than can be read": b"[" * 100_000,
}


@pytest.mark.parametrize("what", NONSENSE)
def test_what_no_server_of_its_tool_answers_ends_in_a_line_and_no_verdict_is_lost(what: str, pushed: Desk) -> None:
    pushed.server.answer(pushed.steps()[0], "ana", "tight")
    for end in ("/users", "/records", "/tasks", "/datasets", "/projects", "/me", "/workspaces"):
        pushed.server.nonsense = {end: NONSENSE[what]}
        result = pushed.pull()
        assert result.code in (0, 2, 3)
        assert result.err.count("\n") < 5
    pushed.server.nonsense = {}
    assert pushed.pull().code == 0
    assert said(pushed.run)["ana", pushed.steps()[0]] == ("tight", "")


@pytest.mark.parametrize("key", ["", "of-nobody-0123456789", READ_ONLY_KEY])
def test_a_key_that_will_not_do_is_told_by_its_variable(key: str, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_OWN_KEY", key)
    result = desk.push("--key", "MY_OWN_KEY")
    assert (result.code, "MY_OWN_KEY" in result.err, desk.server.record_ids()) == (2, True, []), result.err
    assert result.err.count("\n") == 1
    assert not key or key not in result.err + result.out


def test_a_key_is_kept_nowhere(pushed: Desk) -> None:
    pushed.pull()
    files = [path for path in pushed.run.rglob("*") if path.is_file()]
    assert not [path for path in files if OWNER_KEY.encode() in path.read_bytes()]


def test_a_server_that_somebody_else_wrote_into_a_run_is_sent_no_key(
    pushed: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SERVERS[pushed.tool]() as other:
        with AuditStore(pushed.run) as store:
            store.set_meta("server", store.meta("server") | {"address": other.url})
        for command in (pushed.pull, pushed.push_again):
            result = command()
            assert (result.code, "not one that was pushed to with your key" in result.err) == (2, True), result.err
        assert other.requests == []
    assert pushed.push().code == 0
    monkeypatch.setenv(KEYS[pushed.tool], "another-key-0123456789")
    assert pushed.pull().code == 2


def test_what_belongs_to_somebody_else_there_is_left_alone(pushed: Desk) -> None:
    pushed.server.change(pushed.steps()[0], id="other/run/1")
    if pushed.tool == "label-studio":
        foreign = pushed.push_again()
        assert (foreign.code, "holds records of something else ('other/run/1')" in foreign.err) == (2, True)
    pushed.server.rename()
    pushed.server.requests.clear()
    result = pushed.push_again()
    assert (result.code, "asks other questions: choose another --name" in result.err) == (2, True), result.err
    assert pushed.server.written() == []


WRONG = {
    "nothing known": ([], "ADDRESS: where to? name the server"),
    "no tool": (["http://127.0.0.1:9"], "--tool: say what runs at"),
    "no address": (["localhost:6900", "--tool", "argilla"], "ADDRESS: must be an http or https address"),
    "no address at all": (["http://[::1", "--tool", "argilla"], "ADDRESS: must be an http or https address"),
    "a key in the address": (["http://me:secret@127.0.0.1:9", "--tool", "argilla"], "name its variable with --key"),
    "a key for a variable": (["http://127.0.0.1:9", "--tool", "argilla", "--key", "a b"], "--key: must be the name"),
    "a workspace": (
        ["http://127.0.0.1:9", "--tool", "label-studio", "--workspace", "x"],
        "--workspace: is for Argilla",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_push_that_can_not_be_meant_is_told_in_a_line(case: str, sampled: Path) -> None:
    options, words = WRONG[case]
    result = stepdown("audit", "push", str(sampled), *options)
    assert (result.code, words in result.err, "secret" in result.err) == (2, True, False), result.err


def test_a_pull_before_any_push_says_what_comes_first(sampled: Path) -> None:
    result = stepdown("audit", "pull", str(sampled))
    assert (result.code, "no server is known: stepdown audit push" in result.err) == (2, True)


# Label Studio alone.


@pytest.fixture
def studio(sampled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Desk, LoopbackLabelStudio]]:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", OWNER_KEY)
    server = LoopbackLabelStudio()
    with server:
        yield Desk(sampled, "label-studio", server), server


def test_a_personal_token_buys_access_and_buys_it_again_when_that_has_expired(
    studio: tuple[Desk, LoopbackLabelStudio], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, server = studio
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", server.personal)
    assert desk.push().code == 0
    server.answer(desk.steps()[0], "ana", "tight")
    server.access = set()
    assert desk.pull().out == "1 verdicts taken, 0 stood already\n"


def test_a_server_that_gives_shorter_pages_than_were_asked_for_is_read_to_the_end(
    studio: tuple[Desk, LoopbackLabelStudio],
) -> None:
    desk, server = studio
    server.longest_page = 2
    assert desk.push().code == 0
    assert desk.push_again().out.startswith(f"0 records pushed, {len(desk.steps())} were there")
    for step in desk.steps():
        server.answer(step, "ana", "tight")
    assert desk.pull().out.startswith(f"{len(desk.steps())} verdicts taken")


def test_a_server_that_keeps_items_back_is_not_believed_to_have_no_more(
    studio: tuple[Desk, LoopbackLabelStudio],
) -> None:
    desk, server = studio
    assert desk.push().code == 0
    arrived = server.record_ids()
    for step in desk.steps():
        server.answer(step, "ana", "tight")
    server.longest_page, server.only_page = 2, True
    for command in (desk.pull, desk.push_again):
        result = command()
        assert (result.code, f"gave 2 of {len(arrived)} tasks; the same command goes on" in result.err) == (3, True)
    assert (server.record_ids(), said(desk.run)) == (arrived, {})
    server.only_page = False
    assert desk.pull().out.startswith(f"{len(arrived)} verdicts taken")


@pytest.mark.parametrize("users", [b"<html>welcome</html>", None, {"detail": "busy"}])
def test_a_reviewer_is_not_another_one_where_accounts_are_not_told(
    users: object, studio: tuple[Desk, LoopbackLabelStudio]
) -> None:
    desk, server = studio
    assert desk.push().code == 0
    server.answer(desk.steps()[0], "ana", "tight")
    server.nonsense = {"/users": users}
    assert (desk.pull().code, said(desk.run)) == (2, {})
    server.nonsense = {"/users": [{"id": [], "email": "bo"}, {"id": 2, "email": "ana"}]}
    assert (desk.pull().code, set(said(desk.run))) == (0, {("ana", desk.steps()[0])})


def test_a_redirect_is_not_followed_so_the_key_goes_nowhere_else(studio: tuple[Desk, LoopbackLabelStudio]) -> None:
    desk, server = studio
    with LoopbackLabelStudio() as other:
        server.moved = other.url
        result = desk.push()
        assert (result.code, "answers 302" in result.err, other.requests) == (2, True, [])


def test_a_server_that_answers_otherwise_is_told_in_a_line(studio: tuple[Desk, LoopbackLabelStudio]) -> None:
    desk, server = studio
    assert desk.push().code == 0
    server.tasks[0]["annotations"] = "nonsense"
    server.tasks[1]["data"] = ["nonsense"]
    result = desk.pull()
    assert (result.code, result.err.count("no task with `data` and `annotations`")) == (2, 2)
