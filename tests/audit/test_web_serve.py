"""`stepdown audit serve` as a process: its links, its end, its refusals, and what a kill leaves."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from stepdown.audit.store import AuditStore
from tests.audit.web_review import CHROMIUM, CHROMIUM_OPTIONS, fields, sampled
from tests.conftest import ROOT, Shop, started, stepdown

if TYPE_CHECKING:
    from playwright.sync_api import Page

STEPS = ["gallery/job-0/1", "gallery/job-0/2"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sampled(Shop(tmp_path_factory.mktemp("built")), [[1, 1]])


@pytest.fixture
def run(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / "run")


@contextmanager
def serving(run: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command at work in a process of its own, and the links that it printed."""
    process = started("audit", "serve", str(run), *options)
    try:
        yield process, links(process, options)
    finally:
        process.kill()
        process.communicate()


def links(process: subprocess.Popen[str], options: tuple[str, ...]) -> list[str]:
    assert process.stdout is not None
    count = options[options.index("--reviewers") + 1].count(",") + 1 if "--reviewers" in options else 1
    return [process.stdout.readline().rsplit(": ", 1)[1].strip() for _ in range(count)]


def saved(run: Path) -> dict[str, str]:
    with AuditStore(run) as store:
        return {step: said.verdict.value for step, said in store.current("ann").items()}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_link_is_printed_for_every_reviewer_and_ctrl_c_ends_it_cleanly(run: Path, number: int) -> None:
    with serving(run, "--reviewers", "ann,bo b") as (process, printed):
        tokens = {
            re.fullmatch(r"http://127\.0\.0\.1:\d+/\?reviewer=(?:ann|bo%20b)&token=(\S{40,})", link) for link in printed
        }
        assert len({match[1] for match in tokens if match}) == 2
        with httpx.Client(follow_redirects=True) as client:  # its connection stays open
            page = client.get(printed[0])
            origin = f"http://{page.url.netloc.decode()}"
            form = {**fields(page.text), "verdict": "tight"}
            assert client.post(f"{origin}/review/ann/verdict", data=form, headers={"origin": origin}).status_code == 200
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert "ended; ann (1 of 2 reviewed)" in err
    assert "token" not in err
    assert "Traceback" not in err
    assert saved(run) == {STEPS[0]: "tight"}


def test_without_a_sample_the_command_that_draws_one_is_named(shop: Shop, built: Path, tmp_path: Path) -> None:
    unsampled = shutil.copytree(built, tmp_path / "unsampled", ignore=shutil.ignore_patterns("audit.sqlite*"))
    answer = stepdown("audit", "serve", str(unsampled))
    assert (answer.code, answer.out) == (2, "")
    assert f"stepdown audit sample {unsampled}" in answer.err
    assert not (unsampled / "audit.sqlite").exists()


def test_wrong_input_is_one_line_and_exit_code_2(run: Path, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = str(other.getsockname()[1])
        for arguments, words in (
            ([str(tmp_path / "none")], "no run is here"),
            ([str(run), "--reviewers", ""], "--reviewers"),
            ([str(run), "--reviewers", "ann,ann"], "named twice"),
            ([str(run), "--reviewers", "ann,../bo"], "slashes"),
            ([str(run), "--reviewers", "a\x1b[31m"], "printable"),
            ([str(run), "--port", taken], "Address already in use"),
        ):
            answer = stepdown("audit", "serve", *arguments)
            assert (answer.code, answer.out) == (2, "")
            assert words in answer.err
            assert answer.err.count("\n") == 1
    with AuditStore(run) as store:
        assert store.reviewers.names() == []
    assert stepdown("audit", "serve", str(run), "--port", "70000").code == 2


# A server that is killed at the worst moment: while it saves, before or after the verdict is on disk.
DYING = """
import os, signal, sys
from stepdown.audit.store import AuditStore
from stepdown.builder.cli.main import main

saving = AuditStore.record_all

def dying(self, verdicts):
    if sys.argv[1] == "after":
        saving(self, verdicts)
    os.kill(os.getpid(), signal.SIGKILL)

AuditStore.record_all = dying
main(["audit", "serve", sys.argv[2], "--reviewers", "ann"])
"""


@pytest.mark.browser
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_server_killed_between_key_and_answer_loses_nothing_acknowledged(run: Path, moment: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS).new_page()
        with serving(run, "--reviewers", "ann") as (process, printed):
            page.goto(printed[0])
            shown(page, 1)
            page.keyboard.press("1")
            shown(page, 2)  # acknowledged
            os.kill(process.pid, signal.SIGKILL)
        assert saved(run) == {STEPS[0]: "tight"}

        dying = subprocess.Popen(
            [sys.executable, "-c", DYING, moment, str(run)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        page.goto(links(dying, ("--reviewers", "ann"))[0])
        shown(page, 2)
        page.keyboard.press("n")
        page.keyboard.type("why")
        page.keyboard.press("Escape")
        page.keyboard.press("2")
        page.wait_for_selector("#problem:not([hidden])")
        assert "Not saved: the server does not answer" in page.inner_text("#problem")
        assert page.get_attribute("main", "data-place") == "2"  # no other step was shown
        assert page.input_value("#notes") == "why"
        dying.communicate()
        assert dying.returncode == -signal.SIGKILL
        assert saved(run) == ({STEPS[0]: "tight"} | ({STEPS[1]: "uncertain"} if moment == "after" else {}))

        with serving(run, "--reviewers", "ann") as (_, printed):
            page.goto(printed[0])
            if moment == "before":
                shown(page, 2)
                page.keyboard.press("2")
            page.wait_for_selector("main[data-end=done]")
        assert saved(run) == {STEPS[0]: "tight", STEPS[1]: "uncertain"}


def shown(page: Page, place: int) -> None:
    page.wait_for_selector(f'main[data-place="{place}"]')
    page.wait_for_selector("body[data-ready]", state="attached")
