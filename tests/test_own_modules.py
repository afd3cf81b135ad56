"""Where a workload of one's own is found: beside its config, whatever folder one works in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stepdown.builder.run.ledger import Ledger
from stepdown.releases.layout import read_manifest
from tests.conftest import started, stepdown
from tests.test_plug_ins import PLUG_IN, config


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test loads is loaded by no later one."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in [name for name in sys.modules if name.startswith("echo_")]:
        del sys.modules[name]


def write(folder: Path, module: str, harness: str = "Echo", code: str = PLUG_IN) -> Path:
    """A workload and its config, side by side."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(code)
    path = folder / "config.yaml"
    path.write_text(json.dumps(config(f"{module}:{harness}")))
    return path


def test_it_lies_beside_its_config_and_commands_are_given_anywhere(tmp_path: Path) -> None:
    path, run = write(tmp_path / "mine", "echo_beside"), tmp_path / "run"
    build = started("build", str(path), "--run", str(run))
    assert f"from {tmp_path}/mine/echo_beside.py: its code runs here" in build.communicate()[1]
    assert build.returncode == 0
    (run / "manifest.json").unlink()
    resume = started("resume", str(run))  # the run knows where it lay
    assert (resume.communicate()[1].count("echo_beside.py"), resume.returncode) == (1, 0)
    frozen = json.loads((run / "manifest.json").read_text())["protocol"]
    assert str(tmp_path) not in json.dumps(frozen)
    (tmp_path / "mine").rename(tmp_path / "moved")
    lost = started("audit", "sample", str(run), "--include", "echo")
    assert "No module named 'echo_beside': looked for in" in lost.communicate()[1]
    moved = started("resume", str(run), "--config", str(tmp_path / "moved" / "config.yaml"))
    assert (f"from {tmp_path}/moved/echo_beside.py" in moved.communicate()[1], moved.returncode) == (True, 0)


def test_no_code_comes_with_a_run(tmp_path: Path) -> None:
    path, run = write(tmp_path / "mine", "echo_brought"), tmp_path / "run"
    assert stepdown("build", str(path), "--run", str(run)).code == 0
    sys.modules.pop("echo_brought")
    (run / "code").mkdir()
    (tmp_path / "mine" / "echo_brought.py").rename(run / "code" / "echo_brought.py")
    for folder in (str(run / "code"), str(run), "run/code"):
        with closing(Ledger(run)) as ledger:
            ledger.meta.keep_operation({**ledger.meta.run.operation, "modules": folder})
        for command in (("resume", str(run)), ("audit", "sample", str(run))):
            done = stepdown(*command)
            assert (done.code, "No module named 'echo_brought'" in done.err) == (2, True), (command, done.err)


def test_the_config_may_name_another_folder_and_a_workload_imports_what_lies_beside_it(tmp_path: Path) -> None:
    path = write(tmp_path / "mine", "echo_split", code="from echo_split_parts import Echo as Echo\n")
    (tmp_path / "mine" / "echo_split_parts.py").write_text(PLUG_IN)
    written = json.loads(path.read_text())
    written["operation"]["modules"] = "../code"
    path.write_text(json.dumps(written))
    (tmp_path / "code").mkdir()
    for name in ("echo_split.py", "echo_split_parts.py"):
        (tmp_path / "mine" / name).rename(tmp_path / "code" / name)
    done = stepdown("build", str(path), "--run", str(tmp_path / "run"))
    assert (done.code, f"from {tmp_path}/code/echo_split.py" in done.err) == (0, True), done.err


def test_beside_the_config_comes_before_the_folder_one_works_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "mine", "echo_twice")
    write(tmp_path / "here", "echo_twice", code="raise RuntimeError('the other one')\n")
    monkeypatch.chdir(tmp_path / "here")
    done = stepdown("build", str(path), "--run", str(tmp_path / "run"))
    assert (done.code, f"from {tmp_path}/mine/echo_twice.py" in done.err) == (0, True), done.err


def test_one_folders_module_never_stands_in_for_anothers(tmp_path: Path) -> None:
    first, second = (write(tmp_path / name, "echo_both") for name in ("first", "second"))
    assert stepdown("build", str(first), "--run", str(tmp_path / "run-1")).code == 0
    done = stepdown("build", str(second), "--run", str(tmp_path / "run-2"))
    told = f"another module 'echo_both' is loaded already, {tmp_path}/first/echo_both.py: give {tmp_path}/second/"
    assert (done.code, told in done.err) == (2, True), done.err


@pytest.mark.parametrize("name", ["queue", "wave", "stepdown"])
def test_a_module_of_python_s_or_stepdown_s_name_is_not_replaced_and_the_file_is_named(
    name: str, tmp_path: Path
) -> None:
    before = sys.modules.get(name)
    path = write(tmp_path / "mine", name, harness="Ech0")
    done = stepdown("doctor", str(path))
    assert done.code == 2
    passed_over = f"{tmp_path}/mine/{name}.py is not loaded: give it another name"
    assert passed_over in done.out + done.err
    assert before is None or sys.modules[name] is before


def test_a_module_of_an_installed_one_s_name_is_told_which_was_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "site", "echo_known", code="raise RuntimeError('the installed one')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    path = write(tmp_path / "mine", "echo_known")
    done = stepdown("build", str(path), "--run", str(tmp_path / "run"))
    told = f"from {tmp_path}/mine/echo_known.py, and not the installed {tmp_path}/site/echo_known.py: its code"
    assert (done.code, told in done.err) == (0, True), done.err


@pytest.mark.parametrize("name", ["../echo:Echo", "/tmp/echo:Echo", "..echo:Echo", "echo.:Echo", "echo:"])
def test_what_is_no_module_s_name_is_refused(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, "echo")
    path.write_text(json.dumps(config(name)))
    done = stepdown("build", str(path), "--run", str(tmp_path / "run"))
    assert (done.code, "is no workload: `module:Class` is needed" in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ('terms = Terms("CC0-1.0", "Words.")', 'terms = ("CC0-1.0", "Words.")', "`terms` must be stepdown.Terms"),
        ('("Words are easy.",)', '"Words are easy."', "`known_limits` must be a tuple of sentences"),
    ],
)
def test_facts_of_a_wrong_kind_are_told_by_build_and_doctor(
    right: str, wrong: str, problem: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "mine", "echo_facts", code=PLUG_IN.replace(right, wrong))
    built, told = stepdown("build", str(path), "--run", str(tmp_path / "run")), stepdown("doctor", str(path))
    assert (built.code, told.code) == (2, 2)
    line = PLUG_IN.splitlines().index("class Echo(Harness):") + 1
    assert f"{tmp_path}/mine/echo_facts.py:{line}: Echo: {problem}" in built.err
    assert problem in told.out


def test_its_terms_and_limits_stand_in_a_release_and_publishing_runs_none_of_its_code(tmp_path: Path) -> None:
    path = write(tmp_path / "mine", "echo_terms")
    assert stepdown("build", str(path), "--run", str(tmp_path / "run")).code == 0
    (tmp_path / "mine" / "echo_terms.py").write_text("raise RuntimeError('run at publishing')\n")
    sys.modules.pop("echo_terms")
    release = tmp_path / "release"
    done = stepdown("publish", str(tmp_path / "run"), "--out", str(release))
    assert done.code == 0, done.out + done.err
    assert read_manifest(release).licenses["echo"].license == "CC0-1.0"
    assert "**echo**: CC0-1.0. Words." in (release / "LICENSE.md").read_text()
    assert "Words are easy." in (release / "README.md").read_text()
    assert stepdown("verify", str(release)).code == 0
