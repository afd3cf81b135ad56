"""`stepdown push` and `publish --push`, against a loopback Hub that speaks the protocol of Hugging Face's client.

Each command runs in a process of its own: the client reads its environment when it is imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.release import write_run
from stepdown.releases.layout import Holdout
from stepdown.releases.publish import publish
from tests.conftest import ROOT, Result, stepdown
from tests.releases.loopback_hub import READER, WRITER, LoopbackHub, Trouble
from tests.releases.sealed import SETTINGS
from tests.releases.test_planted_defects import copied
from tests.releases.test_published import bank, read_back

NAME = "lab/step-tiers"
LOAD = """
import datasets, json, sys
splits = datasets.load_dataset(sys.argv[1], revision="1.0.0")
print(json.dumps(datasets.concatenate_datasets(list(splits.values())).to_list()))
"""
Push = Callable[..., Result]


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as running:
        yield running


@pytest.fixture
def push(hub: LoopbackHub, tmp_path: Path) -> Push:
    """Runs a command of stepdown towards the loopback Hub, with the token that may write."""
    return lambda *arguments, **settings: run(hub.url, tmp_path, *map(str, arguments), **settings)


def run(address: str, home: Path, *arguments: str, token: str = WRITER) -> Result:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    hub = {"HF_ENDPOINT": address, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(home / "hf"), "HF_TOKEN": token}
    done = subprocess.run(
        [sys.executable, "-m", "stepdown", *arguments],
        cwd=ROOT,
        env=environment | hub,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Result(done.returncode, done.stdout, done.stderr)


def contents(release: Path) -> dict[str, bytes]:
    return {str(path.relative_to(release)): path.read_bytes() for path in release.rglob("*") if path.is_file()}


def test_every_byte_of_the_release_arrives_in_one_private_tagged_commit_and_goes_only_once(
    sound_release: Path, hub: LoopbackHub, push: Push
) -> None:
    first = push("push", sound_release, NAME)
    assert (first.code, hub.files(NAME)) == (0, contents(sound_release)), first.err
    repository = hub.repositories[NAME]
    assert (repository.private, repository.messages) == (
        True,
        ["initial commit", "office 1.0.0: 30 rows of 10 instances"],
    )
    assert repository.tags == {"1.0.0": repository.head}
    assert first.out == f"{hub.url}/datasets/{NAME} (private, version 1.0.0, commit {repository.head[:12]})\n"
    assert hub.sent("PUT", "^/lfs/") == 2

    hub.requests.clear()
    again = push("push", sound_release, NAME, "--public")
    assert (again.code, "nothing to send: all 8 files are there" in again.err) == (0, True)
    assert [request for request in hub.requests if request[0] != "GET"] == [("PUT", f"/api/datasets/{NAME}/settings")]
    assert not repository.private
    assert "(public, version 1.0.0" in again.out


def test_hugging_faces_datasets_loads_what_was_pushed(
    sound_release: Path, hub: LoopbackHub, push: Push, tmp_path: Path
) -> None:
    assert push("push", sound_release, NAME, "--public").code == 0
    environment = os.environ | {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_XET": "1"}
    environment.pop("HF_HUB_OFFLINE", None)
    done = subprocess.run([sys.executable, "-c", LOAD, NAME], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [read_back(row) for row in json.loads(done.stdout)] == bank(sound_release)


def test_a_dry_run_shows_all_that_would_go_and_sends_nothing(
    sound_release: Path, hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    shown = stepdown("push", str(sound_release), NAME, "--dry-run", "--message", "The first of its kind")
    assert (shown.code, hub.requests) == (0, [])
    for name, content in contents(sound_release).items():
        line = next(line for line in shown.out.splitlines() if line.startswith(name))
        assert f"{len(content)} B" in line or f"{len(content) / 1000:.1f} kB" in line
    assert f"to: {hub.url}/datasets/{NAME} (private" in shown.out
    assert "commit: The first of its kind\ntag: 1.0.0\ndry run: nothing was sent\n" in shown.out


def test_publish_pushes_what_it_made_and_names_the_page_in_it(
    sound_run: Path, hub: LoopbackHub, push: Push, tmp_path: Path
) -> None:
    done = push("publish", sound_run, "--out", tmp_path / "may", "--push", NAME, "--version", "2.0.0")
    assert (done.code, hub.files(NAME, "2.0.0")) == (0, contents(tmp_path / "may")), done.err
    assert json.loads((tmp_path / "may" / "manifest.json").read_text())["url"] == f"{hub.url}/datasets/{NAME}"


def test_an_interrupted_push_goes_on_with_what_is_missing(sound_release: Path, hub: LoopbackHub, push: Push) -> None:
    hub.troubles.append(("POST", "/commit/", Trouble(None)))
    cut = push("push", sound_release, NAME)
    assert (cut.code, "the same command goes on" in cut.err) == (3, True), cut.err
    assert hub.files(NAME) == {}
    hub.requests.clear()
    hub.troubles.append(("POST", "/tag/", Trouble(503, "busy")))
    untagged = push("push", sound_release, NAME)
    assert (untagged.code, hub.sent("PUT", "^/lfs/"), hub.files(NAME)) == (3, 0, contents(sound_release))
    assert "the Hub answers 503: busy; the same command goes on" in untagged.err
    hub.requests.clear()
    assert push("push", sound_release, NAME).code == 0
    assert (hub.sent("POST", "/commit/"), list(hub.repositories[NAME].tags)) == (0, ["1.0.0"])


def test_a_further_version_is_a_further_commit_and_both_stay_as_they_are(
    sound_release: Path, hub: LoopbackHub, push: Push, tmp_path: Path
) -> None:
    write_run(tmp_path / "run", rows=30, steps=3)
    further = tmp_path / "further"
    publish([tmp_path / "run"], further, replace(SETTINGS, version="1.1.0", holdout=Holdout(share=0, seed=0)))
    assert push("push", sound_release, NAME).code == 0
    done = push("push", further, NAME)
    assert (done.code, hub.files(NAME)) == (0, contents(further)), done.err
    assert "no longer there: data/test-00000-of-00001.parquet" in done.err
    assert hub.files(NAME, "1.0.0") == contents(sound_release)
    # The older one is there already: pushing it again does not bring it to the top.
    assert push("push", sound_release, NAME).code == 0
    assert hub.files(NAME) == contents(further)
    assert hub.files(NAME, "1.1.0") == contents(further)


def test_a_version_that_is_there_with_other_content_is_left_alone(
    sound_release: Path, sound_run: Path, hub: LoopbackHub, push: Push, tmp_path: Path
) -> None:
    publish([sound_run], tmp_path / "other", replace(SETTINGS, creator="Somebody"))
    assert push("push", sound_release, NAME).code == 0
    refused = push("push", tmp_path / "other", NAME)
    assert (refused.code, hub.files(NAME)) == (2, contents(sound_release))
    assert f"{NAME} has a version 1.0.0 with other content: publish with another --version" in refused.err


FOREIGN = {
    "other files": ({"model.bin": b"x", "README.md": b"hello"}, "holds other files: model.bin"),
    "another data set": ({"question_bank.jsonl": b"{}"}, "holds another data set"),
    "a manifest of something else": ({"manifest.json": b"[1]"}, "has a manifest.json that is no release's"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_repository_that_holds_something_else_is_left_alone(
    what: str, sound_release: Path, hub: LoopbackHub, push: Push
) -> None:
    files, words = FOREIGN[what]
    hub.create(NAME, files)
    refused = push("push", sound_release, NAME)
    assert (refused.code, words in refused.err, hub.files(NAME)) == (2, True, files), refused.err


def test_a_card_alone_is_no_data_set_and_the_release_takes_its_place(
    sound_release: Path, hub: LoopbackHub, push: Push
) -> None:
    hub.create(NAME, {"README.md": b"to come"}, private=False)
    done = push("push", sound_release, NAME)
    assert (done.code, hub.files(NAME)) == (0, contents(sound_release)), done.err
    assert "the repository is public already" in done.err


def test_what_somebody_pushed_meanwhile_is_not_pushed_over(sound_release: Path, hub: LoopbackHub, push: Push) -> None:
    repository = hub.create(NAME)
    hub.meanwhile = lambda: repository.add(dict(repository.commits[repository.head]), "theirs")
    done = push("push", sound_release, NAME)
    assert (done.code, repository.messages[-1]) == (3, "theirs")
    assert f"{NAME} was changed meanwhile (412)" in done.err


def test_a_repository_or_a_tag_that_somebody_else_makes_meanwhile_only_wants_the_same_command_again(
    sound_release: Path, hub: LoopbackHub, push: Push
) -> None:
    for road in ("/repos/create", "/tag/"):
        hub.troubles.append(("POST", road, Trouble(409, "exists already")))
        done = push("push", sound_release, NAME)
        assert (done.code, f"{NAME} was changed meanwhile (409): exists already" in done.err) == (3, True), done.err
    assert push("push", sound_release, NAME).code == 0
    assert list(hub.repositories[NAME].tags) == ["1.0.0"]


def test_an_address_that_answers_what_no_hub_does_is_told_in_a_line(
    sound_release: Path, hub: LoopbackHub, push: Push
) -> None:
    hub.troubles.append(("GET", "/refs", Trouble(200, "welcome")))
    done = push("push", sound_release, NAME)
    assert (done.code, f"stepdown: {hub.url} does not answer as the Hub does: " in done.err) == (2, True), done.err


REFUSED = {
    "no token": ("", NAME, 2, "no token for the Hub: `hf auth login`, or set HF_TOKEN"),
    "a token of nobody": ("hf_" + "x" * 20, NAME, 2, "the Hub does not know this token (401)"),
    "a token that may not write": (READER, NAME, 2, f"this token may not write to {NAME} (403): You don't have the"),
    "an organisation of others": (WRITER, "others/data", 2, "this token may not write to others/data (403)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_who_may_not_push_is_told_in_a_line_that_holds_no_token(
    case: str, sound_release: Path, hub: LoopbackHub, push: Push
) -> None:
    token, name, code, words = REFUSED[case]
    done = push("push", sound_release, name, token=token)
    assert (done.code, words in done.err, hub.repositories) == (code, True, {}), done.err
    assert done.err.splitlines()[-1].startswith("stepdown: ")
    assert not token or token not in done.out + done.err


def test_a_hub_that_is_not_there_is_told_in_a_line(sound_release: Path, tmp_path: Path) -> None:
    done = run("http://127.0.0.1:9", tmp_path, "push", str(sound_release), NAME)
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "the Hub can not be reached: " in done.err


@pytest.mark.parametrize(
    "name", ["tiers", "lab/", "lab/a/b", "lab/-x", "lab/a--b", "lab/x.git", "lab/a b", "lab/\x1b[2J"]
)
def test_a_malformed_name_is_refused_before_anything_is_read(name: str) -> None:
    done = stepdown("push", "nowhere", name, "--dry-run")
    assert (done.code, "ORG/NAME: " in done.err, "\x1b" in done.err) == (2, True, False)


@pytest.mark.parametrize(
    "address", ["http://[", "hub.example.org", "ftp://hub.example.org", "https://hub.example.org?a"]
)
def test_an_environment_that_names_no_hub_is_told_of(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    done = stepdown("push", "nowhere", NAME)
    assert (done.code, done.err) == (2, "stepdown: HF_ENDPOINT: must be an http or https address\n")


def test_a_key_in_the_hubs_address_is_neither_shown_nor_published(
    sound_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://me:of-nobody-else@hub.example.org")
    done = stepdown("publish", str(sound_run), "--out", str(tmp_path / "x"), "--push", NAME, "--dry-run")
    assert (done.code, "HF_ENDPOINT: a key does not belong into an address" in done.err) == (2, True), done.err
    assert "of-nobody-else" not in done.out + done.err
    assert not (tmp_path / "x").exists()


def test_a_release_that_does_not_verify_stays_at_home(sound_release: Path, tmp_path: Path) -> None:
    spoilt = copied(sound_release, tmp_path / "spoilt")
    (spoilt / "README.md").write_text("key: hf_" + "a1" * 20)
    done = stepdown("push", str(spoilt), NAME, "--dry-run")
    assert (done.code, "README.md: " in done.out, "not pushed: " in done.err) == (2, True, True)


def test_what_belongs_to_a_push_is_refused_without_one(sound_run: Path, tmp_path: Path) -> None:
    for option in ("--public", "--dry-run"):
        done = stepdown("publish", str(sound_run), "--out", str(tmp_path / "x"), option)
        assert (done.code, f"{option}: goes with --push" in done.err) == (2, True)
    assert not (tmp_path / "x").exists()


def test_a_key_in_the_message_of_a_commit_is_refused(sound_release: Path) -> None:
    done = stepdown("push", str(sound_release), NAME, "--dry-run", "--message", "hf_" + "a1" * 20)
    assert (done.code, "--message: holds what looks like a Hugging Face token" in done.err) == (2, True)
