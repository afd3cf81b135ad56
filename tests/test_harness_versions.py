"""What was paid for is found again by a harness's version, so its code must not change under an unchanged one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import harness_digests
from tests.conftest import ROOT

KNOWN = json.loads(harness_digests.FILE.read_text(encoding="utf-8"))
HOW = "raise its VERSION if a prefix, an answer or a verdict can change; then `python -m tests.harness_digests`"


def test_every_workload_that_comes_with_stepdown_is_watched() -> None:
    assert KNOWN.keys() == harness_digests.of_all().keys()


@pytest.mark.parametrize("name", KNOWN)
def test_no_harness_has_changed_since_its_version_was_noted(name: str) -> None:
    assert harness_digests.version_of(name) == KNOWN[name]["version"], f"{name} has another version: {HOW}"
    assert harness_digests.digest_of(name) == KNOWN[name]["digest"], f"{name} has changed: {HOW}"


def test_comments_and_docstrings_are_no_change_and_code_is(tmp_path: Path) -> None:
    def meaning(text: str) -> object:
        (tmp_path / "x.py").write_text(text)
        return harness_digests.meaning_of(tmp_path / "x.py")

    plain = meaning('def f():\n    return "a"\n')
    assert meaning('"""Doc."""\n# why\ndef f():\n    """Doc."""\n    return ("a")\n') == plain
    assert meaning('def f():\n    return "b"\n') != plain


def test_what_workloads_share_is_part_of_each() -> None:
    qa = sorted((ROOT / "harnesses" / "qa").glob("*.py"))
    assert {file.name for file in harness_digests.shared_by(qa)} == {"selection.py", "single_answer.py", "task_file.py"}
