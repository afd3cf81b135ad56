"""mini-swe-agent's trajectory files become seed files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.config.pool import Pool
from stepdown.builder.config.validation import validated
from stepdown.builder.engine.seeds import SeedFile
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Response, ToolCall, Verdict
from stepdown.harnesses.swebench.harness import SWEBench
from tests.conftest import stepdown
from tests.swebench import repository
from tests.swebench.conftest import read

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt"
STEPS = (("I look.", "ls"), ("I edit.", "echo 'a \"b\"' > patch.txt"), ("Done.", SUBMIT))
EXPECTED = [Response(text, (ToolCall("bash", json.dumps({"command": command})),)) for text, command in STEPS]
POOL = validated(
    Pool,
    {
        "version": "1",
        "tiers": [
            {"name": "low", "id": 0, "models": [{"name": "small", "model": "openai/small"}]},
            {"name": "high", "id": 1, "models": [{"name": "strong", "model": "openai/strong"}]},
        ],
    },
)


def call(number: int, command: str) -> dict[str, Any]:
    arguments = json.dumps({"command": command})
    return {"id": f"id-{number}", "type": "function", "function": {"name": "bash", "arguments": arguments}}


def tool_outputs() -> list[dict[str, Any]]:
    from minisweagent.models.test_models import make_toolcall_output

    return [
        make_toolcall_output(text, [call(number, command)], [{"command": command, "tool_call_id": f"id-{number}"}])
        for number, (text, command) in enumerate(STEPS)
    ]


def recorded(folder: Path, model: Any, name: str = "spans__spans-1") -> Path:
    """A trajectory file that mini-swe-agent's own agent writes, with its commands executed."""
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.environments.local import LocalEnvironment

    path = folder / name / f"{name}.traj.json"
    path.parent.mkdir(parents=True)
    agent = DefaultAgent(
        model, LocalEnvironment(cwd=str(path.parent)), system_template="s", instance_template="{{task}}", cost_limit=0
    )
    assert agent.run("mend it")["exit_status"] == "Submitted"
    agent.save(path, {"instance_id": name})
    return path


@pytest.fixture(autouse=True)
def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "MSWEA_SILENT_STARTUP", "1")


def converted(path: Path, *options: str) -> list[Response]:
    """The responses that the seed file of a trajectory holds, as a build reads them."""
    out = path.parent / "seeds.jsonl"
    done = stepdown("seeds", "convert", str(path), "--out", str(out), *(options or ("--model", "strong")))
    assert done.code == 0, done.err
    [seed] = SeedFile(out, POOL, "swebench").read("spans__spans-1")
    assert seed.model == "strong"
    return list(seed.responses)


def version_1(folder: Path, *texts: str, status: str = "Submitted", **changes: Any) -> Path:
    """A file as mini-swe-agent 1 wrote it."""
    said = [{"role": "assistant", "content": text} for text in texts]
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "mend it"}]
    for answer in said:
        messages += [answer, {"role": "user", "content": "<returncode>0</returncode>"}]
    data = {
        "info": {"exit_status": status, "submission": "", "config": {"model": {"model_name": "strong"}}},
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1",
        **changes,
    }
    path = folder / "spans__spans-1.traj.json"
    path.write_text(json.dumps(data))
    return path


def fenced(text: str, command: str, fence: str = "bash") -> str:
    return f"{text}\n\n```{fence}\n{command}\n```"


def test_tool_calls_of_version_2(tmp_path: Path) -> None:
    from minisweagent.models.test_models import DeterministicToolcallModel

    assert converted(recorded(tmp_path, DeterministicToolcallModel(outputs=tool_outputs()))) == EXPECTED


def test_the_responses_api_of_version_2(tmp_path: Path) -> None:
    from minisweagent.models.test_models import DeterministicResponseAPIToolcallModel, make_response_api_output

    outputs = []
    for number, (text, command) in enumerate(STEPS):
        output = make_response_api_output(text, [{"command": command, "tool_call_id": f"id-{number}"}])
        output["output"][-1]["arguments"] = json.dumps({"command": command})
        outputs.append(output)
    assert converted(recorded(tmp_path, DeterministicResponseAPIToolcallModel(outputs=outputs))) == EXPECTED


def test_text_of_version_2(tmp_path: Path) -> None:
    from minisweagent.models.test_models import DeterministicModel, make_output

    outputs = [
        make_output(fenced(text, command, "mswea_bash_command"), [{"command": command}]) for text, command in STEPS
    ]
    assert converted(recorded(tmp_path, DeterministicModel(outputs=outputs))) == EXPECTED


def test_text_of_version_1_with_its_own_word_for_submitting(tmp_path: Path) -> None:
    *steps, (last, command) = STEPS
    old = command.replace("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
    path = version_1(tmp_path, *(fenced(*step) for step in steps), fenced(last, old))
    assert converted(path) == EXPECTED


def test_the_file_s_own_name_of_the_model_is_taken_where_none_is_given(tmp_path: Path) -> None:
    path = version_1(tmp_path, *(fenced(*step) for step in STEPS))
    out = tmp_path / "seeds.jsonl"
    assert stepdown("seeds", "convert", str(tmp_path), "--out", str(out)).out.startswith("1 seeds of 1 instances in ")
    assert json.loads(out.read_text())["model"] == "strong"
    assert path.exists()


def test_a_bare_list_of_messages_is_read_where_its_last_answer_submits(tmp_path: Path) -> None:
    path = version_1(tmp_path, *(fenced(*step) for step in STEPS))
    path.write_text(json.dumps(json.loads(path.read_text())["messages"]))
    assert converted(path) == EXPECTED
    path.write_text(json.dumps(json.loads(path.read_text())[:-2]))
    done = stepdown("seeds", "convert", str(path), "--model", "strong", "--out", str(tmp_path / "none.jsonl"))
    assert (done.code, "passed over: 1, it ended with an answer that does not submit" in done.err) == (2, True)


@pytest.mark.parametrize("config", [None, {}, {"model": None}, {"model": {"model_name": None}}])
def test_a_model_that_no_file_names_is_asked_for(tmp_path: Path, config: Any) -> None:
    path = version_1(tmp_path, fenced(*STEPS[-1]), info={"exit_status": "Submitted", "config": config})
    done = stepdown("seeds", "convert", str(path), "--out", str(tmp_path / "seeds.jsonl"))
    assert (done.code, done.err.strip().splitlines()) == (
        2,
        [
            f"stepdown: {path}: info.config.model.model_name: it does not name its model: say which of the pool's "
            "strong models it was, with --model NAME"
        ],
    )
    assert len(converted(path)) == 1


def test_an_answer_that_the_agent_rejected_is_a_step_too(tmp_path: Path) -> None:
    """Version 2 keeps it beside its complaint, not among the messages."""
    from minisweagent.exceptions import FormatError
    from minisweagent.models.test_models import DeterministicToolcallModel
    from minisweagent.models.utils.actions_toolcall import parse_toolcall_actions

    class Rejecting(DeterministicToolcallModel):  # type: ignore[misc]
        def query(self, messages: list[dict[str, str]], **options: Any) -> Any:
            answer = super().query(messages, **options)
            if not answer.get("tool_calls"):
                try:
                    parse_toolcall_actions([], format_error_template="{{error}}")
                except FormatError as error:
                    error.messages[0]["extra"]["response"] = {"choices": [{"message": answer}]}
                    raise
            return answer

    first, *others = tool_outputs()
    prose = {"role": "assistant", "content": "I think.", "extra": {"actions": []}}
    path = recorded(tmp_path, Rejecting(outputs=[first, prose, *others]))
    assert converted(path) == [EXPECTED[0], Response("I think."), *EXPECTED[1:]]


HOSTILE = [
    '{"command": "echo \\ud800"}',
    '{"command": "echo \\u0000"}',
    '{"command": NaN}',
    '{"command": ' + "[" * 9000,
]


@pytest.mark.parametrize("arguments", HOSTILE, ids=["surrogate", "NUL", "NaN", "depth"])
def test_a_recorded_call_that_no_client_lets_through_is_kept_as_words(tmp_path: Path, arguments: str) -> None:
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "bash", "arguments": arguments}}]}
    path = version_1(tmp_path, trajectory_format="mini-swe-agent-1.1", messages=[message], instance_id="spans__spans-1")
    assert converted(path) == [Response(arguments)]


@pytest.mark.parametrize("arguments", [*HOSTILE[:3], json.loads(HOSTILE[0])])
def test_a_seed_with_such_a_call_is_refused_with_its_place(tmp_path: Path, arguments: Any) -> None:
    step = {"tool_calls": [{"name": "bash", "arguments": arguments}]}
    (tmp_path / "seeds.jsonl").write_text(json.dumps({"instance_id": "a", "model": "strong", "steps": [step]}))
    with pytest.raises(BadInput, match=r"seeds.jsonl:1: steps.0.tool_calls: no sound call: "):
        SeedFile(tmp_path / "seeds.jsonl", POOL, "swebench")


def test_what_did_not_submit_is_passed_over_and_counted(tmp_path: Path) -> None:
    for name, status in (("one", "Submitted"), ("two", "LimitsExceeded"), ("three", "LimitsExceeded")):
        (tmp_path / name).mkdir()
        version_1(tmp_path / name, *(fenced(*step) for step in STEPS), status=status, instance_id=name)
    done = stepdown("seeds", "convert", str(tmp_path), "--out", str(tmp_path / "seeds.jsonl"))
    assert (done.code, done.err) == (0, "passed over: 2, it ended with LimitsExceeded, not Submitted\n")
    assert [json.loads(line)["instance_id"] for line in (tmp_path / "seeds.jsonl").read_text().splitlines()] == ["one"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"trajectory_format": "mini-swe-agent-9"}, "trajectory_format: Input should be 'mini-swe-agent-1' or"),
        ({"messages": []}, "messages: Tuple should have at least 1 item"),
        ({"messages": [{"role": "system", "content": "s"}]}, "messages: no step in it was made by a model"),
        ({"messages": [{"role": "assistant", "content": 7}]}, "messages.0.content"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]}, "messages.0.tool_calls.0.function"),
        (
            {"messages": [{"role": "user", "extra": {"interrupt_type": "FormatError"}}]},
            "messages.0: the answer that was",
        ),
        ({"messages": [{"role": "assistant", "content": "", "extra": {"actions": [{}]}}]}, "does not hold the one"),
        ({"instance_id": "a\nb"}, "instance_id: not 1 to 200 printable characters"),
        ({"info": {"exit_status": "Submitted"}}, "info.config.model.model_name: it does not name its model"),
        ({"info": {}}, "no trajectory in it can be a seed"),
    ],
)
def test_a_broken_trajectory_is_named_with_its_field(tmp_path: Path, changes: Mapping[str, Any], problem: str) -> None:
    version_1(tmp_path, *(fenced(*step) for step in STEPS), **changes)
    done = stepdown("seeds", "convert", str(tmp_path), "--out", str(tmp_path / "seeds.jsonl"))
    assert done.code == 2
    assert problem in done.err.splitlines()[-1]
    assert str(tmp_path) in done.err.splitlines()[-1]
    assert not (tmp_path / "seeds.jsonl").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"messages": []}', "\xff", '{"trajectory_format": ' + "[" * 100_000])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.traj.json").write_text(text, encoding="latin-1")
    done = stepdown("seeds", "convert", str(tmp_path), "--out", str(tmp_path / "seeds.jsonl"))
    assert done.code == 2
    assert len(done.err.splitlines()) == 1


def test_a_folder_without_trajectories_is_refused(tmp_path: Path) -> None:
    done = stepdown("seeds", "convert", str(tmp_path), "--out", str(tmp_path / "seeds.jsonl"))
    assert (done.code, "there is no file *.traj.json" in done.err) == (2, True)
    done = stepdown("seeds", "convert", str(tmp_path / "nowhere"), "--out", str(tmp_path / "seeds.jsonl"))
    assert (done.code, done.err) == (2, f"stepdown: {tmp_path / 'nowhere'}: no such file or folder\n")


@pytest.mark.docker
def test_a_recorded_trajectory_of_version_1_is_played_and_resolved(tmp_path: Path, image: str) -> None:
    responses = converted(version_1(tmp_path, *(fenced(*step) for step in repository.TRAJECTORY)))
    harness = SWEBench(verify_grading=2)
    harness.keep_in(tmp_path / "kept")
    [instance] = read(tmp_path, repository.instance(image))
    with harness.open(instance) as episode:
        going = [episode.advance(response) for response in responses]
        assert going == [True] * 7 + [False]
        ruling = episode.seed_verdict()
    assert (ruling.verdict, ruling.reason) == (Verdict.PASS, "")
    assert ruling.grading is not None
    assert ruling.grading["FAIL_TO_PASS"] == {"success": 1, "failure": []}
    assert len(list((tmp_path / "kept" / "gradings").rglob("*.json"))) == 5, (
        "two gradings, one with a canary, the patch's, and what the seed took"
    )
