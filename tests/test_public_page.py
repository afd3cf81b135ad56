"""`import stepdown`: the names a user has, what importing them loads, and a run as a program sees it."""

from __future__ import annotations

import ast
import inspect
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

import stepdown
from benchmarks.startup import HEAVY
from stepdown.builder.common.bundled import CONFIGS
from tests import workshop
from tests.conftest import ROOT
from tests.provider import Answer, Fault, Provider, Request

EXAMPLE: dict[str, Any] = yaml.safe_load((CONFIGS / "example.yaml").read_text())


def loaded_by(code: str) -> set[str]:
    """The heavy libraries that a fresh process has loaded after some code."""
    shown = f"{code}\nimport sys; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", shown], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_page_loads_no_library() -> None:
    assert loaded_by("import stepdown; dir(stepdown)") == set()


def test_a_run_without_a_provider_loads_no_provider_library(tmp_path: Path) -> None:
    build = f"import stepdown; stepdown.build('example', {str(tmp_path / 'run')!r})"
    assert loaded_by(build) & {"litellm", "pandas", "numpy"} == set()


def test_names_for_type_checkers_are_those_that_are_there() -> None:
    page = ast.parse(Path(inspect.getsourcefile(stepdown) or "").read_text())
    (branch,) = (node for node in page.body if isinstance(node, ast.If))
    named = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    public: list[str] = vars(stepdown)["__all__"]
    assert sorted(filter(None, named)) == public
    for name in public:
        module, _, own = named[name].rpartition(".")
        assert getattr(stepdown, name) is getattr(sys.modules[module], own), name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'stepdown' has no attribute 'Harnes'"):
        _ = getattr(stepdown, "Harnes")  # noqa: B009 - type checkers know that it is not there


def test_a_harness_s_help_tells_of_every_attribute_that_a_user_may_set() -> None:
    told = inspect.getdoc(stepdown.Harness) or ""
    for name in ("name", "version", "multi_step", "mask", "early_verdicts", "needs_judge", "tells_states"):
        assert f"- `{name}`" in told, name


def test_definitions_are_found() -> None:
    for name in ("Harness", "Episode", "build", "Row"):
        assert Path(inspect.getsourcefile(getattr(stepdown, name)) or "").is_file()


@pytest.fixture
def run(tmp_path: Path) -> stepdown.Run:
    return stepdown.build(EXAMPLE, tmp_path / "run")


def test_rows_and_evidence_go_side_by_side(run: stepdown.Run) -> None:
    rows, evidence = list(run.rows()), list(run.evidence())
    assert [row.id for row in rows] == [one["id"] for one in evidence]
    assert rows == list(stepdown.read_rows(run.folder)) == list(stepdown.read_rows(run.folder / "question_bank.jsonl"))
    assert run.manifest()["labels"] == {"till": {"high": 3, "low": 10}}
    assert run.status().labels == {"till": {"low": 10, "high": 3}}


def test_a_dict_and_a_file_of_the_same_config_make_the_same_files(run: stepdown.Run, tmp_path: Path) -> None:
    other = stepdown.build("example", tmp_path / "other")
    for name in ("question_bank.jsonl", "evidence.jsonl", "audit_queue.jsonl", "manifest.json"):
        assert (run.folder / name).read_bytes() == (other.folder / name).read_bytes()


def test_paths_of_a_dict_are_relative_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pool, protocol = EXAMPLE["protocol"]["pool"], EXAMPLE["protocol"]
    Path("pool.yaml").write_text(yaml.safe_dump(pool))
    config = {"protocol": {**protocol, "pool": "pool.yaml"}, "operation": {"cache": "shared"}}
    assert stepdown.build(config, "run").status().pool == "example-1"
    assert (tmp_path / "shared").is_dir()


def test_progress_is_told_only_where_asked_and_nothing_else_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGINT)
    told: list[str] = []
    stepdown.build(EXAMPLE, tmp_path / "run", tell=told.append)
    assert told[-1].startswith("3/3 instances")
    assert capfd.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is before


def test_wrong_input_raises_and_does_not_exit(tmp_path: Path) -> None:
    with pytest.raises(stepdown.BadInput, match=r"^protocol\.wrong: unknown key$"):
        stepdown.build({"protocol": {**EXAMPLE["protocol"], "wrong": 1}}, tmp_path / "run")
    key = "sk-" + "a1" * 12
    with pytest.raises(stepdown.BadInput, match=r"^operation\.endpoints\.default\.api_key: this looks like an API key"):
        stepdown.build({**EXAMPLE, "operation": {"endpoints": {"default": {"api_key": key}}}}, tmp_path / "run")
    for use in (stepdown.open_run, stepdown.resume):
        with pytest.raises(stepdown.BadInput, match="no run is here"):
            use(tmp_path / "run")


def test_ctrl_c_ends_a_programs_build_after_the_calls_in_hand(tmp_path: Path, provider: Any) -> None:
    asked, interrupted = threading.Event(), threading.Event()

    def novice(request: Request) -> Answer | Fault:
        """Answers the first call only when the program has been interrupted: it is in hand then.

        Later ones take their time: a signal that comes to another thread is seen by the main one a moment later.
        """
        asked.set()
        assert interrupted.wait(60)
        answer: Answer | Fault = workshop.apprentice(0)(request)
        return replace(answer, delay=0.3) if isinstance(answer, Answer) else answer

    served: Provider = provider({**workshop.ABILITIES, "novice": novice})
    run, config = tmp_path / "run", workshop.config(served.url, [[0, 9]] * 12)
    # As where somebody types: a suite that a shell runs in the background has the signal ignored, and hands that on.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heard}; import stepdown; stepdown.build({config!r}, {str(run)!r})"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert asked.wait(60)
    process.send_signal(signal.SIGINT)
    interrupted.set()
    _, said = process.communicate()
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert "Exception in thread" not in said
    assert not stepdown.open_run(run).status().is_finished
    after = stepdown.resume(run, config).status()
    assert after.is_finished
    assert sum(after.labels["workshop"].values()) == 24


def test_a_budget_leaves_work_that_a_resume_goes_on_with(tmp_path: Path) -> None:
    run = stepdown.build({**EXAMPLE, "operation": {"budget": {"calls": 9}, "workers": 1}}, tmp_path / "run")
    assert not run.status().is_finished
    assert run.status().paid.calls <= 9
    assert stepdown.resume(run.folder, {**EXAMPLE, "operation": {}}).status().is_finished


def test_blocked_instances_are_said_by_status_and_given_up_on_demand(tmp_path: Path, provider: Any) -> None:
    def down(request: Request) -> Fault:
        return Fault(503)

    served: Provider = provider({"novice": down, "hand": down, "master": down})
    config = workshop.config(served.url, [[0, 9]])
    run = stepdown.build(config, tmp_path / "run")
    (held,) = run.status().held_back
    assert (held.state, held.instance_id) == ("blocked", "job-0")
    given_up = stepdown.resume(run.folder, drop_blocked=True)
    assert given_up.status().is_finished
    assert given_up.status().held_back[0].state == "dropped"


def test_a_router_is_scored_from_a_dict_as_from_a_file(run: stepdown.Run, tmp_path: Path) -> None:
    routed = {row.id: row.target_tier for row in run.rows()}
    file = tmp_path / "predictions.csv"
    file.write_text("id,tier\n" + "".join(f"{row_id},{tier}\n" for row_id, tier in routed.items()))
    by_dict, by_file = (stepdown.score(run.folder, given, resamples=0) for given in (routed, file))
    assert by_dict == by_file
    assert by_dict.overall.metrics["RowExact"].value == 100


def test_a_table_of_rows_needs_pandas(run: stepdown.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("pandas") is not None:
        table = run.to_pandas()
        assert list(table["id"]) == [row.id for row in run.rows()]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(stepdown.BadInput, match=r"^this needs pandas: pip install pandas$"):
        run.to_pandas()
