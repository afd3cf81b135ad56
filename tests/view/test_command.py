"""`stepdown view` as a process: its link, its end, its refusals."""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path

import httpx
import pytest

from tests.conftest import Shop, started, stepdown
from tests.provider import Provider
from tests.workshop import ABILITIES, config


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shop = Shop(tmp_path_factory.mktemp("view"))
    with Provider(ABILITIES) as one:
        assert shop.build(config(one.url, [[0, 1]])).code == 0
    return shop.run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_link_is_printed_and_ctrl_c_ends_it_with_the_run_unchanged(run: Path, number: int) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file() and "-" not in path.name}
    process = started("view", str(run))
    assert process.stdout is not None
    link = process.stdout.readline().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?run=run&token=\S{40,}", link)
    with httpx.Client(follow_redirects=True) as client:
        page = client.get(link)
        assert "workshop/job-0" in page.text
        assert "token" not in str(page.url)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert "token" not in err
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.name in before} == before


def test_wrong_input_is_one_line_and_exit_code_2(run: Path, tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("no database")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = str(other.getsockname()[1])
        for arguments, words in (
            ([str(tmp_path / "none")], "no run is here"),
            ([str(tmp_path)], "can not be used"),
            ([str(run), "--port", taken], "Address already in use"),
        ):
            answer = stepdown("view", *arguments)
            assert (answer.code, answer.out) == (2, "")
            assert words in answer.err
            assert answer.err.count("\n") == 1
    assert stepdown("view", str(run), "--port", "70000").code == 2
