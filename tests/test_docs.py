"""Every command that README and docs show runs here, or stands in a table that says why no test can run it."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from stepdown.builder.cli.main import main
from stepdown.builder.config.loading import config_of
from stepdown.builder.config.pool import Pool
from stepdown.builder.config.validation import validated, yaml_value
from stepdown.builder.continuations.plan import Plan
from stepdown.harnesses.registry import harness_class
from stepdown.routing.policies.asking import AskingFile
from stepdown.scoring.rates import Rate
from stepdown.testing import check_harness
from tests.conftest import ROOT, stepdown
from tests.documented import WALKED, Command, Example, commands, examples, links, paths, programs, quoted
from tests.judges import playing
from tests.judges.playing import entries, reporting, with_judges
from tests.provider import Provider
from tests.workplace import OWN_MODULES, Workplaces

RUN_AFTER = {
    "configured": (
        "stepdown doctor configs/bfcl.yaml",
        "stepdown build configs/bfcl.yaml --run runs/bfcl",
        "stepdown estimate configs/bfcl.yaml",
        "stepdown seeds convert TRAJECTORIES --model NAME --out seeds.jsonl",
        "stepdown seeds convert TRAJECTORIES --model claude-opus-4.6 --out seeds.jsonl",
        "stepdown seeds convert proxy.jsonl --config mine.yaml --model my-strong-model --out seeds.jsonl",
        "stepdown judge try case.json --config run.yaml",
        "stepdown judge calibrate rated.jsonl --plot picture.svg",
        "stepdown build example --run runs/example",
        "stepdown build agentdojo-quickstart --run runs/dojo",
        "stepdown build game.yaml --run runs/game",
        "stepdown build grid.yaml --run runs/grid",
        """stepdown harness check maze:Maze --source '{"mazes": [["S.#", "#..", "#.G"], ["SG"]]}'""",
        "stepdown schema > stepdown.schema.json",
        "stepdown judge try --question 'When does it open?' --evidence hours.txt --answer 'At nine, until 7 pm.'",
    ),
    "converted": ("stepdown build mine.yaml --run runs/mine",),
    "built": (
        "stepdown status runs/bfcl",
        "stepdown explain runs/game guessing/number-17/6",
        "stepdown resume runs/bfcl",
        "stepdown resume runs/bfcl --config configs/bfcl.yaml",
        "stepdown estimate configs/bfcl.yaml --run runs/bfcl",
        "stepdown relabel runs/may --config june.yaml --run runs/june",
        "stepdown audit sample runs/bfcl",
        "stepdown audit sample runs/q",
        "stepdown report runs/bfcl --out report.html",
        "stepdown continue plan.yaml --out continuations/first",
        "stepdown status runs/grid",
        "stepdown report runs/grid --tables-only",
        "stepdown compare runs/grid",
        "stepdown compare runs/grid --without my-strong-model --plot curves.png",
    ),
    "relabelled": (
        "stepdown diff runs/may runs/june",
        "stepdown explain runs/june bfcl/multi_turn_base_0/3",
        "stepdown explain runs/june bfcl/multi_turn_base_0",
        "stepdown continue continuations/first --by model,stage",
    ),
    "sampled": (
        "stepdown audit export runs/q -o steps.csv",
        "stepdown audit reassign runs/q ana cy",
        "stepdown audit repeat runs/q --times 3",
    ),
    "exported": ("stepdown audit import runs/q steps.csv",),
    "reviewed": (
        "stepdown audit summary runs/bfcl",
        "stepdown audit summary runs/q",
        "stepdown audit apply runs/bfcl",
        "stepdown audit apply runs/q",
    ),
    "applied": (
        "stepdown audit undo runs/q",
        "stepdown publish runs/bfcl --out releases/may --creator 'Example Lab'",
        "stepdown publish runs/bfcl runs/swe --out releases/may --creator 'Example Lab'",
    ),
    "trained": (
        "stepdown score releases/may --split test --policy policies/may --policy rules",
        "stepdown report releases/may --split test --policy policies/may --out policies.html",
        "stepdown estimate configs/bfcl.yaml --run runs/bfcl --policy policies/may",
        "stepdown live configs/bfcl.yaml --policy policies/may --policy always:high --out live/may",
    ),
    "released": (
        "stepdown route train releases/may --out policies/may",
        "stepdown verify releases/may",
        "stepdown push releases/may example-lab/step-tiers --dry-run",
        "stepdown score releases/may predictions.jsonl",
        "stepdown score DIR predictions.jsonl",
        "stepdown score DIR predictions.csv --split test --rows outcomes.jsonl",
        "stepdown report DIR --tables-only",
    ),
}
"""The commands that run here, by the stage of the workplace that they need. Each must end with exit code 0."""
RUN = [(stage, text) for stage, texts in RUN_AFTER.items() for text in texts]

IN_CONTAINER = "docker run --rm --volume '$PWD:/work' --user '$(id -u):$(id -g)'"
NOT_RUN = {
    "ray start --head --port 6379 --num-cpus 0": "starts what goes on: tests/cluster/nodes.py starts clusters",
    """ray start --address 10.0.0.1:6379 --resources '{"docker": 1}'""": "as above, on another machine",
    "stepdown cluster prepare run.yaml": "needs a cluster: tests/cluster/test_prepare.py runs it",
    "stepdown build run.yaml --run runs/mine": "needs a cluster: tests/cluster/test_cluster_builds.py builds on one",
    "stepdown status runs/mine": "needs a cluster's run: tests/cluster/test_nodes_told.py",
    "docker save --output /shared/images/first.tar IMAGE": "needs Docker: tests/cluster/test_cluster_swebench.py",
    "stepdown cluster prepare run.yaml --archives /shared/images":
        "needs a cluster: tests/cluster/test_cluster_swebench.py loads one",
    "sbatch configs/cluster/slurm.sh run.yaml runs/mine": "needs SLURM: tests/cluster/test_schedulers.py reads it",
    "kubectl create secret generic stepdown-keys --from-literal=OPENROUTER_API_KEY=...": "needs Kubernetes",
    "kubectl apply -f configs/cluster/raycluster.yaml": "needs Kubernetes: tests/cluster/test_schedulers.py reads it",
    "kubectl exec --stdin --tty service/stepdown-head-svc --container ray-head -- stepdown build /runs/run.yaml --run "
    "/runs/mine": "needs Kubernetes",
    "stepdown estimate configs/swebench.yaml --steps 12 --nodes 10": "reads the data set from Hugging Face",
    "make quickstart": "installs packages, runs local models for minutes: .ci/run runs it",
    "make test": "it is what runs this test",
    "make full": "installs packages: `make test` builds on it",
    "stepdown init --kind qa --sample --install": "installs packages: tests/test_init.py does the rest of it",
    "stepdown build run.yaml --run runs/first": "local models, a minute: tests/test_init.py runs it on fewer questions",
    "stepdown install local": "installs packages: tests/test_extras.py sees what it would run",
    "stepdown install agentdojo": "installs packages: tests/test_extras.py sees what it would run",
    "stepdown install bfcl": "installs packages: tests/test_extras.py sees what it would run",
    "stepdown build quickstart --run runs/q": "local models, minutes: tests/test_quickstart.py runs as much of it",
    ". .venv/bin/activate": "changes the shell that it is typed in",
    "export OPENROUTER_API_KEY=...": "stands for a key of one's own",
    "eval '$(_STEPDOWN_COMPLETE=bash_source stepdown)'": "changes the shell: tests/test_completion.py asks as it does",
    "eval '$(_STEPDOWN_COMPLETE=zsh_source stepdown)'": "changes the shell: tests/test_completion.py asks as it does",
    "pip install 'stepdown[audit]'": "installs packages",
    "pip install stepdown-0.1.0-py3-none-any.whl": "installs packages: see tests/test_packaging.py for the wheel alone",
    "stepdown audit serve runs/q --reviewers ana,bo": "serves until Ctrl-C: tests/audit/test_web_serve.py runs it",
    "stepdown audit serve runs/bfcl --reviewers ana,bo": "serves until Ctrl-C: tests/audit/test_web_serve.py runs it",
    "export ARGILLA_API_KEY=...": "stands for a key of one's own",
    "stepdown audit push runs/bfcl http://127.0.0.1:6900 --tool argilla": "needs a server: tests/audit/test_servers.py",
    "stepdown audit push runs/q http://127.0.0.1:6900 --tool argilla": "needs a server: tests/audit/test_servers.py",
    "stepdown audit push runs/q http://127.0.0.1:8080 --tool label-studio --name 'Audit of May'":
        "needs a server: tests/audit/test_servers.py has one",
    "stepdown audit push runs/q": "needs a server: tests/audit/test_servers.py has one",
    "stepdown audit pull runs/q": "needs a server: tests/audit/test_servers.py has one",
    "stepdown view runs/q": "serves until Ctrl-C: tests/view/test_command.py runs it",
    "stepdown view runs/june": "serves until Ctrl-C: tests/view/test_command.py runs it",
    "stepdown push releases/may example-lab/step-tiers": "needs a token of the Hub: tests/releases/test_hub.py has one",
    "stepdown push releases/may example-lab/step-tiers --public": "needs a token: tests/releases/test_hub.py has one",
    "docker build --tag stepdown .": "fetches an image and packages: .ci/image builds it without",
    f"{IN_CONTAINER} stepdown build quickstart --run runs/quickstart": ".ci/image runs it",
    f"{IN_CONTAINER} --env OPENROUTER_API_KEY stepdown build mine.yaml --run runs/mine": "needs the image, and a key",
    f"{IN_CONTAINER} --network host stepdown view runs/quickstart": "needs the image, and serves until Ctrl-C",
    "docker build -t stepdown-agents .": "fetches an image and packages",
    "stepdown doctor configs/swebench.yaml": "needs Docker: tests/swebench/test_swebench_doctor.py runs it",
    "stepdown estimate configs/swebench.yaml --steps 12": "reads the data set from Hugging Face",
    "stepdown build configs/swebench.yaml --run runs/swebench": "takes days, and a key",
    "stepdown resume runs/swebench": "takes days, and a key",
    "stepdown build configs/qa-quickstart.yaml --run runs/qa": "local models, a minute: tests/judged/test_qa_builds.py",
    "stepdown build configs/mtrag.yaml --run runs/mtrag": "upstream's data, a key: tests/judged/test_judged_builds.py",
    "stepdown build configs/qmsum.yaml --run runs/qmsum": "upstream's data, a key: tests/judged/test_judged_builds.py",
    "stepdown route serve policies/may --pool configs/pools/paper.yaml":
        "serves until Ctrl-C: tests/routing/test_serve.py runs it",
    "stepdown doctor agent.yaml": "asks a server of one's own: tests/agents/test_agents_page.py has one",
    "stepdown build agent.yaml --run runs/agent": "asks a server of one's own: tests/agents/test_agents_page.py",
    "stepdown status runs/agent": "that run is made by tests/agents/test_agents_page.py",
    "stepdown agent record agent.yaml --model strong --out seeds.jsonl":
        "asks a server of one's own: tests/agents/test_agents_page.py has one",
    "stepdown judge exam --config run.yaml": "a judge that reads: tests/judges/test_judge_exam.py",
    "stepdown judge calibrate ../shared/data/mtrag_human_calibration.jsonl --threshold 0.7 --plot calibration.svg":
        "reads a file beside the checkout: tests/judges/test_judge_calibration.py runs it where the file is",
}  # fmt: skip
"""Each command that can not run here, with the reason."""

SHOWN = [command for command in commands() if command.page not in WALKED]
ELSEWHERE = ("docs/agents.md", *WALKED)
"""Pages whose files belong together: tests/agents/test_agents_page.py and tests/test_walked_pages.py use them."""
EXAMPLES = [example for example in examples() if example.page not in ELSEWHERE]
PROGRAMS = [program for program in programs() if program.page not in ELSEWHERE]


@pytest.fixture(scope="module")
def workplaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplaces]:
    before = Path.cwd()
    yield Workplaces(tmp_path_factory.mktemp("workplaces"), os.chdir)
    os.chdir(before)


@pytest.fixture
def place(tmp_path: Path, workplaces: Workplaces, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    before = Path.cwd()
    monkeypatch.setattr("sys.path", list(sys.path))  # the command adds the working folder
    yield tmp_path
    os.chdir(before)
    for name in OWN_MODULES:
        sys.modules.pop(name, None)


def test_every_command_is_run_or_says_why_not() -> None:
    known = {*(text for _, text in RUN), *NOT_RUN}
    assert [f"{command.page}: {command.text}" for command in SHOWN if command.text not in known] == []


def test_the_tables_hold_no_command_that_is_shown_nowhere() -> None:
    shown = {command.text for command in SHOWN}
    assert len(shown) > 40
    run = [text for _, text in RUN]
    assert sorted({*run, *NOT_RUN} - shown) == []
    assert len({*run, *NOT_RUN}) == len(run) + len(NOT_RUN)


def test_the_tests_that_run_a_command_elsewhere_are_there() -> None:
    named = [file for reason in NOT_RUN.values() for file in re.findall(r"tests/\S+\.py", reason)]
    assert len(named) > 5
    assert [file for file in named if not (ROOT / file).exists()] == []


@pytest.mark.parametrize(("stage", "text"), RUN, ids=lambda part: part)
def test_a_documented_command_works(
    stage: str, text: str, place: Path, workplaces: Workplaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "...")
    monkeypatch.setenv("MSWEA_SILENT_STARTUP", "1")
    workplaces.make(stage, place)
    with Provider({"sloppy": reporting(playing.sloppy)}) as judge:
        Path("run.yaml").write_text(with_judges(judge.url, "sloppy").model_dump_json())
        Path("case.json").write_text(next(iter(entries())).case.model_dump_json())
        words, _, file = text.removeprefix("stepdown ").partition(" > ")
        done = stepdown(*shlex.split(words))
    assert done.code == 0, done.err + done.out
    if file:
        assert json.loads(done.out)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.page}:{program.line}")
def test_documented_python_runs(
    program: Example, place: Path, workplaces: Workplaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    workplaces.make("released", place)
    if "import datasets" in program.text:  # its cache belongs into the test's folder, not into the home
        monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", place / "hf")
    exec(compile(program.text, program.page, "exec"), {"__name__": "documented"})


def test_the_workload_in_readme_is_labelled_as_its_comment_says(place: Path, workplaces: Workplaces) -> None:
    workplaces.make("built", place)
    rows = [json.loads(line) for line in Path("runs/game/question_bank.jsonl").read_text().splitlines()]
    tiers = [row["target_tier"] for row in rows if row["instance_id"] == "number-17"]
    assert tiers == [*["low"] * 2, *["high"] * 5]


def test_the_workload_in_readme_keeps_to_the_contract(place: Path, workplaces: Workplaces) -> None:
    workplaces.make("configured", place)
    check_harness(harness_class("game:Guessing"), source={"numbers": [17, 58]})


def test_what_prose_quotes_of_the_command_is_there() -> None:
    calls = list(quoted())
    assert len(calls) > 5
    assert [wrong for call in calls if (wrong := _wrong(call))] == []


def _wrong(call: Command) -> str:
    """What a quoted call names that the command does not have; empty if nothing."""
    command: click.Command = main
    context = click.Context(main)
    for word in call.text.split()[1:]:
        if word.startswith("--") and not _has(command, word.split("=")[0]):
            return f"{call.page}: {call.text}: no option {word}"
        if isinstance(command, click.Group) and word.islower() and word.isalpha():
            inner = command.get_command(context, word)
            if inner is None:
                return f"{call.page}: {call.text}: no command {word}"
            command = inner
    return ""


def _has(command: click.Command, option: str) -> bool:
    return any(option in (*parameter.opts, *parameter.secondary_opts, "--help") for parameter in command.params)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.page}:{example.line}")
def test_an_example_of_a_config_is_one(example: Example) -> None:
    """Whole configs and pools, the parts of a config that pages show alone, and rates."""
    data = yaml_value(example.text)
    if data.keys() & {"protocol", "operation"}:
        protocol = {"pool": "pools/paper.yaml", "workloads": [{"harness": "bfcl", "seeds": {"source": "reference"}}]}
        config_of({**data, "protocol": {**protocol, **data.get("protocol", {})}}, ROOT / "configs")
    elif "tiers" in data:
        validated(Pool, data)
    elif "checkpoints" in data:
        validated(Plan, data)
    elif "model" in data:
        validated(AskingFile, data)
    else:
        assert validated(dict[str, Rate], data)


def test_files_that_prose_names_are_there() -> None:
    found = list(paths())
    assert len(found) > 30
    yours = ROOT / "data" / "upstream"  # where a user puts what is not part of the repository
    assert [f"{page}: {place}" for page, place in found if not place.exists() and place != yours] == []


def test_links_lead_somewhere() -> None:
    found = list(links())
    assert len(found) > 60
    assert [f"{page}: {target.name}#{anchor}" for page, target, anchor in found if not _there(target, anchor)] == []


def _there(target: Path, anchor: str) -> bool:
    if not target.exists():
        return False
    if not anchor:
        return True
    headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
