"""Tasks of our own in PinchBench's form: any agent program works at them, and their own graders say what passes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.errors import BadInput
from stepdown.builder.records import Instance, Response, ToolCall, Verdict
from stepdown.harnesses.agent.grading import CommandGrader
from stepdown.harnesses.agent.tasks import task_of
from stepdown.harnesses.pinchbench.harness import PinchBench
from tests.agents import orders, pieces
from tests.agents.checkout import GRADER, RUBRIC, checkout, page
from tests.conftest import Shop
from tests.judged.scripted_judge import judge
from tests.provider import Provider

SCRIBE = f"{{python}} {orders.PROGRAMS}/scribe.py {{prompt}}"
OPTIONS: dict[str, Any] = {"sandbox": "process", "command": SCRIBE}
GUIDE = "workspace_files:\n  - source: guide.txt\n    dest: notes/guide.txt\n"


def made(number: int, text: str) -> tuple[str, dict[str, Any]]:
    text = text if text.startswith("well made") else "some scrap\n"
    return "write", {"path": f"/workspace/piece-{number}.txt", "text": text}


ABILITIES = {**pieces.makers(made), "judge": judge}


def prompt(*skills: int) -> str:
    return str(pieces.task("x", skills)["prompt"])


def listed(folder: Path, take: Any = "all", **options: Any) -> dict[str, Instance]:
    harness = PinchBench(**{**OPTIONS, **options})
    return {instance.id: instance for instance in harness.instances({"assets": str(folder), "take": take})}


def test_tasks_are_labelled_and_those_that_can_not_be_are_dropped_by_name(shop: Shop) -> None:
    sessions = "sessions:\n  - {id: one, prompt: Hello}\n  - {id: two, prompt: Hello again, new_session: true}\n"
    checkout(
        shop.folder / "skill",
        graded=page("graded", prompt(0, 1)),
        hybrid=page("hybrid", prompt(1), GUIDE, rubric=RUBRIC),
        judged=page("judged", prompt(1), GUIDE, grader="", rubric=RUBRIC),
        written=page("written", prompt(0), grader="", rubric=RUBRIC),
        network=page("task_02_stock", prompt(0)),
        recalled=page("recalled", prompt(0), f"multi_session: true\n{sessions}"),
    )
    with Provider(ABILITIES) as provider:
        options = {**OPTIONS, "judged": True}
        settings = pieces.config(provider.url, "pinchbench", {"assets": "skill"}, options)
        settings["protocol"]["judge"] = {"models": [{"name": "judge", "model": "openai/judge"}], "panel": "single"}
        done = shop.build(settings)
        assert done.code == 0, done.err + done.out
        shown = [str(seen.body["messages"]) for seen in provider.requests if seen.model == "judge"]
    # By ability; a last answer that only says that all is made is one that any model can give.
    assert shop.labels() == [["low", "high", "low"], ["high", "low"], ["high", "low"]]
    assert shop.manifest()["dropped"]["pinchbench"] == {
        "it asks for the price of a share, and there is no network": 1,
        "it goes over several sessions of the program": 1,
        "the judge goes by evidence, and there is no text file in its workspace": 1,
    }
    assert all("Made by skill (Weight: 30%)" in text and "where that is enough" in text for text in shown)
    assert any("some scrap" in text for text in shown)


def test_without_a_judge_judged_tasks_are_dropped_and_others_kept(tmp_path: Path) -> None:
    pages = {"graded": page("graded", prompt(0)), "hybrid": page("hybrid", prompt(0), rubric=RUBRIC)}
    found = listed(checkout(tmp_path, **pages))
    assert {name: instance.dropped for name, instance in found.items()} == {
        "graded": None,
        "hybrid": "a judge grades it, and the option `judged` is not set",
    }


@pytest.mark.parametrize(
    ("weights", "threshold", "needed"),
    [
        ((0.4, 0.6), 0.8, 0.5),  # with the judge's 0.6, half of 0.4 is enough
        ((0.6, 0.4), 0.8, 0.666666667),
        ((2, 2), 1.0, 1.0),
        ((0.1, 0.9), 0.8, 0.0),
        (None, 0.75, 0.5),
    ],
)
def test_a_hybrid_grade_is_by_weights_where_the_judge_passes(
    tmp_path: Path, weights: tuple[float, float] | None, threshold: float, needed: float
) -> None:
    head = f"grading_weights: {{automated: {weights[0]}, llm_judge: {weights[1]}}}\n" if weights else ""
    found = listed(
        checkout(tmp_path, one=page("one", prompt(0), head, rubric=RUBRIC)), judged=True, threshold=threshold
    )
    task, _ = task_of(found["one"])
    grader = task.grader[0]
    assert isinstance(grader, CommandGrader)
    assert grader.threshold == needed


@pytest.mark.skipif(shutil.which("faketime") is None, reason="faketime is not installed")
def test_a_grader_that_goes_by_the_day_has_the_programs_clock(tmp_path: Path) -> None:
    """Without a clock such a task of the published ones is dropped, with the reason."""
    day = "def grade(transcript, workspace_path):\n    from datetime import date\n"
    day += "    return {'day': float(date.today() == date(2031, 5, 6))}\n"
    folder = checkout(tmp_path, day=page("task_01_calendar", prompt(0), grader=day))
    dropped = listed(folder)["task_01_calendar"].dropped
    assert dropped is not None
    assert dropped.endswith("the option `clock` is not set")
    harness = PinchBench(**OPTIONS, clock="2031-05-06 07:00:00")
    (instance,) = harness.instances({"assets": str(folder)})
    assert instance.dropped is None
    with harness.open(instance) as episode:
        episode.prefix()
        assert not episode.advance(Response("done"))
        assert episode.verdict().verdict is Verdict.PASS


HOSTILE = {
    "a module of the grader's": [("re.py", "raise SystemExit('hijacked')"), ("pathlib.py", "raise SystemExit()")],
    "scores of its own": [("scores.json", '{"scores": {"all": 1}}')],
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_workspace_changes_no_grade(tmp_path: Path, what: str) -> None:
    """Whatever lies in the workspace, the grader's own word is the verdict."""
    files = [*HOSTILE[what], ("piece-0.txt", "well made")]
    assert ruled(tmp_path, files).verdict is Verdict.PASS
    assert ruled(tmp_path, [*HOSTILE[what], ("piece-0.txt", "botched")]).verdict is Verdict.FAIL


def test_a_link_to_endless_data_fails_the_task_and_nothing_else(tmp_path: Path) -> None:
    reading = 'def grade(transcript, workspace_path):\n    return {"read": len(open(workspace_path + "/out").read())}\n'
    folder = checkout(tmp_path, one=page("one", prompt(0), grader=reading))
    linking = "import os, sys; sys.path.insert(0, sys.argv[1]); import clerk; os.symlink('/dev/zero', 'out'); "
    linking += "clerk.ask([{'role': 'user', 'content': 'x'}])"
    command = ["{python}", "-c", linking, str(orders.PROGRAMS)]
    harness = PinchBench(sandbox="process", command=command, limits={"memory_mib": 256})
    (instance,) = harness.instances({"assets": str(folder)})
    with harness.open(instance) as episode:
        episode.prefix()
        episode.advance(Response("well"))
        ruling = episode.verdict()
    assert ruling.verdict is Verdict.FAIL
    assert "MiB of memory" in ruling.reason


def ruled(folder: Path, files: Sequence[tuple[str, str]]) -> Any:
    """The ruling on a program that wrote these files."""
    harness = PinchBench(**OPTIONS)
    (instance,) = harness.instances({"assets": str(checkout(folder, one=page("one", prompt(0))))})
    calls = [ToolCall("write", json.dumps({"path": f"/workspace/{name}", "text": text})) for name, text in files]
    with harness.open(instance) as episode:
        episode.prefix()
        assert episode.advance(Response("", tuple(calls)))
        episode.prefix()
        assert not episode.advance(Response("done"))
        return episode.verdict()


@pytest.mark.docker
def test_graders_run_in_a_container_without_network(tmp_path: Path) -> None:
    from tests.swebench.images import base_image

    image = base_image()
    alone = "    import os\n    scores['alone'] = os.listdir('/sys/class/net') == ['lo']\n    return"
    reaching = GRADER.replace("    return", alone)
    folder = checkout(tmp_path, one=page("one", prompt(0), grader=reaching))
    ask = "import json, os, urllib.request as u; "
    ask += "b = json.dumps({'model': 'm', 'messages': [{'role': 'user', 'content': 'x'}]}).encode(); "
    ask += "u.urlopen(u.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', b, "
    ask += "{'authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']})); open('piece-0.txt', 'w').write('well made')"
    harness = PinchBench(sandbox="docker", image=image, command=["python3", "-c", ask], threshold=0.6)
    (instance,) = harness.instances({"assets": str(folder)})
    with harness.open(instance) as episode:
        episode.prefix()
        assert not episode.advance(Response("well"))
        ruling = episode.verdict()
    assert ruling.verdict is Verdict.PASS
    assert ruling.grading is not None
    assert ruling.grading["graders"]["1"]["scores"]["alone"] == 1.0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# No head\n", "task_one.md:1: no YAML between two lines of --- at its start"),
        (page("one", prompt(0)).replace("grading_type: automated", "grading_type: magic"), "task_one.md: grading_type"),
        (page("one", " "), "task_one.md: there is no section `## Prompt` with words in it"),
        (page("one", prompt(0), grader="no code").replace("```python", "```"), "needs a ```python block"),
        (page("one", prompt(0), grader="def grade(:"), "task_one.md: its grader is no Python: invalid syntax"),
        (page("one", prompt(0), GUIDE.replace("guide.txt\n", "gone.txt\n", 1)), "there is no 'assets/gone.txt'"),
        (page("one", prompt(0), GUIDE.replace("notes/", "../")), "task_one.md: copies"),
        (page("one", prompt(0), "id: two\n"), "task_one.md:7: key 'id' is given twice"),
    ],
)
def test_a_page_that_can_not_be_read_is_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadInput) as error:
        listed(checkout(tmp_path, one=text))
    assert problem in str(error.value)


def test_a_folder_that_is_no_checkout_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no tasks/task_\*.md"):
        listed(tmp_path)
