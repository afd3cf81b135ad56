"""Files that stand whole or not at all."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from stepdown.builder.common.files import RecordFile, whole_file, whole_text_file, write_document, write_text
from stepdown.builder.common.reading import read_json_lines


def write_half(path: Path, *, shared: bool) -> None:
    with whole_file(path, shared=shared) as file:
        file.write(b"half")
        raise OSError("the disk is full")


@pytest.mark.parametrize("shared", [False, True])
def test_what_stood_there_stands_where_writing_fails_and_no_draft_is_left(tmp_path: Path, shared: bool) -> None:
    path = tmp_path / "seeds.jsonl"
    write_text(path, "before")
    with pytest.raises(OSError, match="the disk is full"):
        write_half(path, shared=shared)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_that_a_crash_left_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    (tmp_path / ".page.html.part").write_text("what a killed process had written so far, which was longer")
    write_text(path, "whole")
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_two_who_share_a_file_do_not_write_into_each_others_draft(tmp_path: Path) -> None:
    path = tmp_path / "grading.json"
    with whole_file(path, shared=True) as mine, whole_file(path, shared=True) as theirs:
        mine.write(b"mine")
        theirs.write(b"theirs")
    assert path.read_bytes() == b"mine"
    assert list(tmp_path.iterdir()) == [path]


def test_text_keeps_its_ends_of_lines(tmp_path: Path) -> None:
    with whole_text_file(tmp_path / "a.csv") as out:
        out.write("id\r\n\u00e9\r\n")
    assert (tmp_path / "a.csv").read_bytes() == "id\r\n\u00e9\r\n".encode()


def test_a_record_is_one_line_for_any_reader_and_its_digest_is_the_files(tmp_path: Path) -> None:
    path, record = tmp_path / "rows.jsonl", {"text": "a\u2028b\x85c\nd"}
    with RecordFile(path) as file:
        file.write(record)
        file.copy(b'{"id": 1}\n')
        said = file.finish()
    assert len(path.read_text().splitlines()) == 2
    assert [value for _, value in read_json_lines(path)] == [record, {"id": 1}]
    assert (said.sha256, said.lines) == (hashlib.sha256(path.read_bytes()).hexdigest(), 2)
    assert said.bytes == path.stat().st_size


def test_records_that_were_not_finished_leave_no_file(tmp_path: Path) -> None:
    with RecordFile(tmp_path / "rows.jsonl") as file:
        file.write({"id": 1})
    assert list(tmp_path.iterdir()) == []


def test_a_document_is_written_with_the_digest_that_is_told(tmp_path: Path) -> None:
    digest = write_document(tmp_path / "manifest.json", {"rows": 3})
    data = (tmp_path / "manifest.json").read_bytes()
    assert (json.loads(data), hashlib.sha256(data).hexdigest()) == ({"rows": 3}, digest)
