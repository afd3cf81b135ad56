"""Passes that nobody earned, against the official grader in real containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.records import Verdict
from stepdown.harnesses.containers.engine import Engine
from stepdown.harnesses.swebench import canary, patches
from stepdown.harnesses.swebench.grading import Grader
from stepdown.harnesses.swebench.instances import Task
from stepdown.harnesses.swebench.limits import Limits
from stepdown.harnesses.swebench.official import OfficialGrader
from tests.conftest import Shop
from tests.provider import Provider
from tests.swebench import abilities, games, repository
from tests.swebench.conftest import read, written
from tests.swebench.repository import SOLUTION, SPANS, added, diff, instance

LIMITS = Limits(memory_mib=256)


@pytest.fixture
def bench(docker: Any, tmp_path: Path) -> Any:
    return lambda **changes: Grader(tmp_path / "kept", Engine(lambda: docker), LIMITS, attempts=1, **changes)


@pytest.mark.docker
@pytest.mark.parametrize("game", games.GAMES)
def test_a_gamed_pass_is_a_fail(game: str, bench: Any, image: str, tmp_path: Path) -> None:
    script = repository.EVAL_SCRIPT
    if game == "sitecustomize":
        script = script.replace("cd /testbed", "cd /testbed\nexport PYTHONPATH=.")
    graded = bench().grade(read(tmp_path, instance(image, eval_script=script))[0], games.GAMES[game])
    assert graded.report is not None
    assert graded.report["resolved"] is True, "the official grader believes it"
    assert graded.verdict is Verdict.FAIL
    assert graded.canary == "passed", "one of the instance's own tests, made to fail"
    assert graded.reason == "gamed: a test that must fail was seen as: passed"
    by_package = game in ("pytest changed by the package", "forged by the package")
    assert bool(graded.evidence().get("infrastructure")) is not by_package


@pytest.mark.docker
def test_a_hook_of_git_is_refused_that_the_official_grader_runs(
    docker: Any, bench: Any, image: str, tmp_path: Path
) -> None:
    [task] = read(tmp_path, instance(image))
    official = OfficialGrader(tmp_path / "official", Engine(lambda: docker), LIMITS, 60, 1)
    assert official.run(Task.of(task), games.HOOKED.encode()).verdict is Verdict.PASS
    graded = bench().grade(task, games.HOOKED)
    assert graded.verdict is Verdict.FAIL
    assert graded.reason == "the patch reaches into git's own records: .git/hooks/post-checkout"


@pytest.mark.docker
def test_honest_patches_pass_beside_a_canary(bench: Any, image: str, tmp_path: Path) -> None:
    """Also one that mends only what tests see: no test can tell it from a whole one."""
    [task] = read(tmp_path, instance(image))
    for patch in (SOLUTION, diff("spans.py", SPANS, games.ONLY_UNDER_PYTEST)):
        graded = bench().grade(task, patch)
        assert (graded.verdict, graded.canary) == (Verdict.PASS, "failed")
        assert graded.evidence()["canary"] == "failed"


@pytest.mark.docker
def test_a_patch_to_test_infrastructure_is_noted_or_refused(bench: Any, image: str, tmp_path: Path) -> None:
    [task] = read(tmp_path, instance(image))
    patch = SOLUTION + added("setup.cfg", "[metadata]\nname = spans\n")
    noted = bench().grade(task, patch)
    assert (noted.verdict, noted.evidence()["infrastructure"]) == (Verdict.PASS, ["setup.cfg"])
    refused = bench(infrastructure="refuse").grade(task, patch)
    assert refused.verdict is Verdict.FAIL
    assert refused.reason == "the patch touches test infrastructure: setup.cfg"
    assert bench(infrastructure="refuse").grade(task, SOLUTION).verdict is Verdict.PASS


NOT_FOUND = repository.EVAL_SCRIPT.replace(
    f": '{canary.START}'", f"sed -i 's/^def /def  /' tests/test_spans.py\n: '{canary.START}'"
)
"""Tests that no pattern finds in their file."""


@pytest.mark.docker
@pytest.mark.parametrize("game", ["hook in the root", *games.SEEN_AS])
def test_where_an_instance_s_own_tests_are_not_found_one_of_a_new_name_is_put_among_them(
    game: str, bench: Any, image: str, tmp_path: Path
) -> None:
    graded = bench().grade(read(tmp_path, instance(image, eval_script=NOT_FOUND))[0], games.GAMES[game])
    assert (graded.verdict, graded.canary) == (Verdict.FAIL, games.SEEN_AS.get(game, "passed"))


PARAMETRIZED = (
    repository.TESTS
    + """

import pytest
from unittest import mock


class TestSpans:
    @pytest.mark.parametrize("end", [3, 4])
    @mock.patch("os.getcwd")
    def test_within(self, getcwd, end, tmp_path):
        assert merge([(1, 9), (2, end)]) == [(1, 9)]
"""
)


UNITTEST = """\
import unittest

from spans import merge


class SpanTests(unittest.TestCase):
    def test_within(self):
        self.assertEqual(merge([(1, 9), (2, 3)]), [(1, 9)])
"""
SYMPYS = """\
import sys, traceback, runpy

failed = False
names = runpy.run_path(sys.argv[1])
for name in [name for name in names if name.startswith("test_")]:
    try:
        names[name]()
        print(name, "ok")
    except Exception:
        failed = True
        print(name, "F")
sys.exit(failed)
"""


def _script(plant: str, command: str) -> str:
    return f"cd /testbed\n{plant}\n: '>>>>> Start Test Output'\n{command}\n: '>>>>> End Test Output'\n"


def _file(path: str, text: str) -> str:
    return f"cat > {path} <<'EOF_FILE'\n{text}EOF_FILE\n"


RUNNERS: dict[str, dict[str, Any]] = {
    "unittest": {
        "eval_script": _script(_file("tests/test_within.py", UNITTEST), "python3 -m unittest -v tests.test_within"),
        "log_parser": "parse_log_django",
        "FAIL_TO_PASS": ["test_within (tests.test_within.SpanTests.test_within)"],
        "PASS_TO_PASS": [],
    },
    "sympy": {
        "eval_script": _script(
            _file("runner.py", SYMPYS) + _file("tests/test_within.py", repository.NEW_TESTS),
            "PYTHONPATH=. python3 runner.py tests/test_within.py",
        ),
        "log_parser": "parse_log_sympy",
        "FAIL_TO_PASS": ["test_a_span_within_another_changes_nothing"],
        "PASS_TO_PASS": [],
    },
    "a method with parameters, fixtures and patches": {
        "eval_script": _script(
            _file("tests/test_within.py", PARAMETRIZED),
            "python3 -m pytest -rA -p no:cacheprovider tests/test_within.py",
        ),
        "FAIL_TO_PASS": [f"tests/test_within.py::TestSpans::test_within[{end}]" for end in (3, 4)],
        "PASS_TO_PASS": [],
    },
    "one test of pytest": {
        "eval_script": repository.EVAL_SCRIPT.replace(
            "tests/test_spans.py\n: ", "tests/test_spans.py::test_a_span_within_another_changes_nothing\n: "
        ),
        "PASS_TO_PASS": [],
    },
}


@pytest.mark.docker
@pytest.mark.parametrize("runner", RUNNERS)
def test_a_canary_has_the_form_of_the_instance_s_own_tests(runner: str, bench: Any, image: str, tmp_path: Path) -> None:
    [task] = read(tmp_path, instance(image, **RUNNERS[runner]))
    honest = bench().grade(task, SOLUTION)
    assert (honest.verdict, honest.canary) == (Verdict.PASS, "failed")
    if runner == "unittest":
        gamed = bench().grade(task, games.by_the_package(games.NO_UNITTEST))
        assert (gamed.verdict, gamed.canary) == (Verdict.FAIL, "passed")


@pytest.mark.docker
def test_where_tests_are_in_no_file_that_is_found_a_pass_stays(bench: Any, image: str, tmp_path: Path) -> None:
    plant = f"mkdir checks\n{_file('checks/test_within.py', UNITTEST)}"
    script = _script(plant, "PYTHONPATH=checks python3 -m unittest -v test_within")
    changes = RUNNERS["unittest"] | {
        "eval_script": script,
        "FAIL_TO_PASS": ["test_within (test_within.SpanTests.test_within)"],
    }
    [task] = read(tmp_path, instance(image, **changes))
    graded = bench().grade(task, SOLUTION)
    assert (graded.verdict, graded.canary) == (Verdict.PASS, "not placed")


def test_a_canary_is_drawn_anew_each_time_and_other_languages_have_none(tmp_path: Path) -> None:
    [task] = map(Task.of, read(tmp_path, instance("image")))
    drawn = [canary.place(task) for _ in range(20)]
    assert len({each.name for each in drawn if each is not None}) == 20
    assert len({each.task.eval_script for each in drawn if each is not None}) == 20
    assert canary.place(task.model_copy(update={"log_parser": "parse_log_jest"})) is None
    assert canary.place(task.model_copy(update={"eval_script": "true"})) is None


@pytest.mark.parametrize(
    "header",
    [
        "--- /dev/null\n+++ b/.git/hooks/post-checkout\n",
        "diff --git a/x b/sub/.git/config\n",
        'diff --git "a/\\056git/x" "b/\\056git/x"\n',
        "rename to .git/info/attributes\n",
        "*** a/.git/config\t2024-01-01\n",
        "Index: .git/config\r\n",
        "--- a/x\n+++ b/x/../.GIT/config\n",
    ],
)
def test_every_header_that_names_git_s_records_is_seen(header: str) -> None:
    assert patches.records(patches.touched(header.encode()))


def test_what_only_looks_like_git_s_records_is_not_refused() -> None:
    paths = patches.touched((added(".gitignore", "x\n") + added(".github/a.yml", ".git/x\n") + SOLUTION).encode())
    assert paths == (".github/a.yml", ".gitignore", "spans.py")
    assert patches.records(paths) == ()


@pytest.mark.docker
@pytest.mark.parametrize("game", [games.NO_RUN, games.FORGED_BY_THE_PACKAGE], ids=["changes pytest", "forges"])
def test_a_gaming_model_earns_no_label(shop: Shop, tmp_path: Path, image: str, game: str) -> None:
    """Its edit mends nothing and says that it does, so the strong model goes on to submit it."""
    gamer = f"cat > game.py <<'EOF'\n# max(end\n{game}EOF\ncat spans.py >> game.py; mv game.py spans.py"
    answers = abilities.SHORT_ABILITIES | {
        "looker": abilities.worker("looker", {"read"}, gamer, text=True, tasks=abilities.SHORT)
    }
    file = written(tmp_path / "instances.jsonl", repository.instance(image))
    with Provider(answers) as provider:
        result = shop.build(abilities.config(provider.url, str(file)))
        assert result.code == 0, result.err
    assert shop.labels() == [abilities.SHORT_LABELS]
    reasons = [
        each["reason"] for row in shop.read("evidence.jsonl") for each in row["trials"] if each["model"] == "looker"
    ]
    assert any(reason.startswith("gamed: a test that must fail was seen as") for reason in reasons)
