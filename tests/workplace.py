"""A folder in which the documented commands can run: their configs and runs, small and without a key.

The runs are real ones of two BFCL tasks each, in which the workload's pseudo-model plays every tier.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stepdown.builder.config.validation import yaml_value
from tests.audit.reviewing import review, tight
from tests.conftest import ROOT, Result, stepdown
from tests.traces.exports import chat_line, played

TIERS = ("low", "mid", "mid_high", "high")
OWN_MODULES = ("game", "maze")
MULTI_TURN = ["multi_turn_base_0", "multi_turn_base_50"]
SINGLE_TURN = {"simple_python": 2}


def _pool(version: str, models: int = 1) -> dict[str, Any]:
    """A pool in which the reference plays every tier, under so many names."""
    return {
        "version": version,
        "tiers": [
            {
                "name": tier,
                "id": number,
                "models": [
                    {"name": f"{tier}-{one}", "model": "workload/reference", "revision": f"{tier}-{one}"}
                    for one in range(models)
                ],
            }
            for number, tier in enumerate(TIERS)
        ],
    }


def _config(categories: Mapping[str, Any], pool: Mapping[str, Any]) -> dict[str, Any]:
    workload = {"harness": "bfcl", "source": {"categories": categories}, "seeds": {"source": "reference"}}
    return {"protocol": {"pool": pool, "workloads": [workload], "audit": {"rate": 0.5}}}


class Workplaces:
    """Makes workplaces, each from a template that the commands before it have left, and that is made once."""

    def __init__(self, folder: Path, here: Callable[[Path], None]) -> None:
        """`here` changes the working folder."""
        self._folder, self._here = folder, here
        self._made = {"": folder / "empty"}
        (folder / "empty").mkdir()

    def make(self, stage: str, into: Path) -> None:
        """A workplace of one's own at this stage (a function of this module), as the working folder."""
        shutil.copytree(self._template(stage), into, symlinks=True, dirs_exist_ok=True)
        self._here(into)

    def _template(self, stage: str) -> Path:
        if stage not in self._made:
            prepare = STAGES[stage]
            folder = self._folder / stage
            self.make(_before(stage), folder)
            prepare()
            for name in OWN_MODULES:  # each workplace has its own
                sys.modules.pop(name, None)
            self._made[stage] = folder
        return self._made[stage]


def _before(stage: str) -> str:
    names = ["", *STAGES]
    return names[names.index(stage) - 1]


def configured() -> None:
    """Configs, and files that the commands read."""
    for folder in ("configs", "data"):
        shutil.copytree(ROOT / folder, folder, ignore=shutil.ignore_patterns("upstream"))
    Path("configs/bfcl.yaml").write_text(json.dumps(_config({"multi_turn_base": MULTI_TURN}, _pool("may"))))
    Path("june.yaml").write_text(json.dumps(_config({"multi_turn_base": MULTI_TURN}, _pool("june", models=2))))
    Path("swe.yaml").write_text(json.dumps(_config(SINGLE_TURN, _pool("may"))))
    Path("hours.txt").write_text("Open from 9 am to 7 pm.\n")
    Path("rated.jsonl").write_text("".join(json.dumps(_rated(number)) + "\n" for number in range(24)))
    Path("game.py").write_text(_block("python", "class Guessing"))
    Path("maze.py").write_text(_block("python", "class Maze", "docs/own-workload.md"))
    game = _block("yaml", "harness: game:Guessing")
    Path("game.yaml").write_text(game)
    Path("grid.yaml").write_text(json.dumps(_with_probes(yaml_value(game))))
    Path("proxy.jsonl").write_text("".join(json.dumps(chat_line(call)) + "\n" for call in played([[3, 12], [25, 8]])))
    Path("mine.yaml").write_text(_MINE)
    Path("TRAJECTORIES").mkdir()
    Path("TRAJECTORIES/spans__spans-1.traj.json").write_text(json.dumps(_TRAJECTORY))


def converted() -> None:
    """The seeds of what an agent did, as its proxy logged it."""
    _ok(
        "seeds", "convert", "proxy.jsonl", "--config", "mine.yaml", "--model", "my-strong-model", "--out", "seeds.jsonl"
    )


def built() -> None:
    """The finished runs that the pages speak of."""
    _ok("build", "configs/bfcl.yaml", "--run", "runs/bfcl")
    _ok("build", "swe.yaml", "--run", "runs/swe")
    _ok("build", "game.yaml", "--run", "runs/game")
    _ok("build", "grid.yaml", "--run", "runs/grid")
    for other in ("may", "quickstart"):
        shutil.copytree("runs/bfcl", f"runs/{other}")
    shutil.copytree("runs/game", "runs/q")
    Path("plan.yaml").write_text(json.dumps(_PLAN))


def relabelled() -> None:
    """A new version of a run, and a plan carried out."""
    _ok("relabel", "runs/may", "--config", "june.yaml", "--run", "runs/june")
    _ok("continue", "plan.yaml", "--out", "continuations/first")


def sampled() -> None:
    """Steps drawn for the audit, and shared out."""
    for run, rate in {"runs/bfcl": "0.5", "runs/q": "1"}.items():
        _ok("audit", "sample", run, "--rate", rate, "--reviewers", "ana,bo")


def exported() -> None:
    """Steps put out for another tool, and reviewed there."""
    _ok("audit", "export", "runs/q", "-o", "steps.csv")
    with Path("steps.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with Path("steps.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, rows[0].keys())
        table.writeheader()
        table.writerows({**row, "verdict": "tight", "reviewer": row["reviewer"] or "ana"} for row in rows)


def reviewed() -> None:
    """Every sampled step answered by all its reviewers."""
    for run in ("runs/bfcl", "runs/q"):
        for reviewer in ("ana", "bo"):
            review(Path(run), reviewer, tight)


def applied() -> None:
    """The verdicts made into a revision of the run."""
    for run in ("runs/bfcl", "runs/q"):
        _ok("audit", "apply", run)


def released() -> None:
    """A release, and somebody's predictions for it."""
    _ok("publish", "runs/bfcl", "--out", "releases/may", "--creator", "Example Lab")
    shutil.copytree("releases/may", "DIR")
    ids = [json.loads(line)["id"] for line in Path("DIR/question_bank.jsonl").read_text().splitlines()]
    Path("predictions.jsonl").write_text("".join(json.dumps({"id": one, "tier": "mid"}) + "\n" for one in ids))
    Path("predictions.csv").write_text("id,tier\n" + "".join(f"{one},mid\n" for one in ids))


def trained() -> None:
    """A policy made from the release."""
    _ok("route", "train", "releases/may", "--out", "policies/may")


STAGES: dict[str, Callable[[], None]] = {
    stage.__name__: stage
    for stage in (configured, converted, built, relabelled, sampled, exported, reviewed, applied, released, trained)
}
"""In order: each stage begins where the one before it ended."""

_MINE = """
protocol:
  pool:
    version: mine-1
    tiers:
      - {name: low, id: 0, models: [{name: hasty, model: workload/hasty}]}
      - {name: high, id: 3, models: [{name: my-strong-model, model: workload/reference}]}
  workloads:
    - harness: stepdown.examples.till:Till
      source: {bills: [[3, 12], [25, 8]]}
      seeds: {source: import, file: seeds.jsonl}
"""

_PLAN = {
    "config": "game.yaml",
    "checkpoints": [
        {"run": "runs/game", "benchmark": "guessing", "instance": f"number-{number}", "step": 2} for number in (17, 58)
    ],
    "contexts": [{"name": "kept"}, {"name": "neutral", "replace": [{"text": "You have seven guesses."}]}],
}
"""A plan on the runs that are built here."""

_TRAJECTORY = {
    "info": {"exit_status": "Submitted", "submission": "", "config": {"model": {"model_name": "NAME"}}},
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "mend it"},
        {"role": "assistant", "content": "I look.\n\n```bash\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>"},
    ],
    "trajectory_format": "mini-swe-agent-1",
}


def _block(language: str, holding: str, page: str = "README.md") -> str:
    """The block of a page that holds this."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if holding in block]
    return str(block)


def _with_probes(config: dict[str, Any]) -> dict[str, Any]:
    """A config with a model more, and with probes of every step."""
    low, high = (tier["models"] for tier in config["protocol"]["pool"]["tiers"])
    low.append({**low[0], "name": f"{low[0]['name']}-again", "revision": "again"})
    high[0]["name"] = "my-strong-model"
    config["protocol"]["rules"] = {"probe": "all"}
    return config


def _rated(number: int) -> dict[str, Any]:
    """An answer that people rated, and a judge scored: every third one is bad."""
    good = number % 3 != 0
    return {
        "task_id": f"talk-{number // 4}<::>{number % 4}",
        "answerability": ["ANSWERABLE"],
        "input": [{"speaker": "user", "text": "How many rooms are there?"}],
        "contexts": [{"document_id": "d", "text": "There are 12 rooms."}],
        "answer": "There are 12 rooms." if good else "There are 99 rooms.",
        "human": {"faithfulness": [4, 3, 4] if good else [2, 4, 2], "appropriateness": [4], "completeness": [3, 3]},
        "judges": {"fair": 0.9 if number % 5 else 0.4},
    }


def _ok(*words: str) -> Result:
    done = stepdown(*words)
    assert done.code == 0, done.err + done.out
    return done
