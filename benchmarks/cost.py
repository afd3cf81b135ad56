"""What a label costs: USD per label for the paper's pool and prices, by hints, with and without prompt caching.

    python -m benchmarks.cost [--instances N] [--early-verdicts]

One JSON line per case. Each is a build by the engine, executed: trajectories of 12 steps with prefixes of 4,000 to
30,000 tokens and answers of 500, tiers planted as often as the paper labels SWE-bench's steps, seeds collected by the
strong model. Nothing is asked of a provider. Pseudo-models answer, and each call is billed by what the calls before it
have left in its provider's cache (`benchmarks.cost_bank`); without caching the same prompt is plain input. Rates are
the paper's, by tier.

Hints are wrong as often as the paper tells of its routers: `model` is a strong model that is asked at every step, for
steps that are high as Opus 4.6 (paper, section 5.3), of the others right; it is called at an address on this machine
and is paid for at the rates of the high tier. `learned` is as SR-KNN, and free. `perfect` names the planted tier.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from benchmarks.cost_bank import FIRST_TOKENS, LAST_TOKENS, STEPS
from stepdown.builder.artifacts.writing import write_artifacts
from stepdown.builder.common.tokens import CHARACTERS_PER_TOKEN
from stepdown.builder.config.loading import load_config
from stepdown.builder.engine.build import Build
from stepdown.builder.run.folder import open_for_work
from stepdown.harnesses.planted.source import BENCHMARK, STRONG, TIERS, instances
from tests.provider import Answer, Provider, Request

POOL = Path(__file__).parent.parent / "configs" / "pools" / "paper.yaml"
WEIGHTS = (94, 33, 41, 168)
"""SWE-bench's labels in the paper's release, by tier."""
KINDS = ("none", "model", "learned", "perfect")
OF_HIGH: Mapping[str, Sequence[float]] = {"model": (34, 43, 63, 7), "learned": (0, 0, 31, 137)}
"""How often a router names each tier at steps that are high. Of SR-KNN only the last number is told; its other answers
are taken to be one tier too low."""
OF_LOWER: Mapping[str, Sequence[float]] = {"model": (1, 0, 0, 0), "learned": (627, 10, 117, 46)}
"""How often a router names a lower step's tier, the one above it, the high one, or the one below it."""
HINT_TOKENS = 10
"""Of a hint's answer."""
Plan = dict[str, list[int]]
"""The planted tiers by instance."""


def hinted(kind: str, instance: str, step: int, plan: Plan) -> int:
    """The tier that a source of hints names for a step, the same at every look."""
    tier = plan[instance][step - 1]
    draw = random.Random(f"{kind} {instance} {step}")
    if kind == "perfect":
        return tier
    if tier == STRONG:
        return draw.choices(range(STRONG + 1), OF_HIGH[kind])[0]
    return draw.choices((tier, tier + 1, STRONG, max(0, tier - 1)), OF_LOWER[kind])[0]


def hinter(plan: Plan) -> Any:
    """A model that is shown a step and names a tier: an ability of the loopback provider."""

    def ability(request: Request) -> Answer:
        shown = request["messages"][-1]["content"]
        found, steps = re.search(r"Planted instance (\d+)\.", shown), re.findall(rf"Step (\d+) of {STEPS} ", shown)
        assert found is not None
        tier = TIERS[hinted("model", found[1], int(steps[-1]), plan)]
        prompt = len(shown) // CHARACTERS_PER_TOKEN
        return Answer(json.dumps({"tier": tier}), usage={"prompt_tokens": prompt, "completion_tokens": HINT_TOKENS})

    return ability


def pool() -> dict[str, Any]:
    """The paper's pool with its prices, played by the planted workload's pseudo-models."""
    made: dict[str, Any] = yaml.safe_load(POOL.read_text())
    for tier, k, model in _models(made):
        model.update(model=f"workload/{tier}-{k}", parameters={})
    return made


def billed_as() -> dict[str, str]:
    """The names at their providers of the models that the pseudo-models stand for."""
    return {f"{tier}-{k}": model["model"] for tier, k, model in _models(yaml.safe_load(POOL.read_text()))}


def _models(made: Mapping[str, Any]) -> Iterator[tuple[int, int, dict[str, Any]]]:
    for number, tier in enumerate(made["tiers"]):
        for k, model in enumerate(tier["models"]):
            yield number, k, model


def config(
    kind: str, prompt_cache: bool, source: Mapping[str, Any], early: bool, plan: Plan, url: str, folder: Path
) -> dict[str, Any]:
    """The config of a case. Hints that are not asked for are written into a file."""
    prices = pool()
    hints: dict[str, Any] = {"source": "none"}
    if kind == "model":
        price = prices["tiers"][-1]["models"][0]["price"]
        hints = {"source": "model", "model": {"name": "hinter", "model": "openai/hinter", "price": price}}
    elif kind != "none":
        lines = (
            {"id": f"{BENCHMARK}/{instance}/{step}", "tier": TIERS[hinted(kind, instance, step, plan)]}
            for instance in plan
            for step in range(1, STEPS + 1)
        )
        (folder / "hints.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        hints = {"source": "file", "file": "hints.jsonl"}
    workload = {
        "harness": "benchmarks.cost_bank:CostBank",
        "source": dict(source),
        "options": {"billed_as": billed_as(), "prompt_cache": prompt_cache, "early_verdicts": early},
        "seeds": {"source": "collect"},
    }
    return {
        "protocol": {"pool": prices, "workloads": [workload], "hints": hints},
        "operation": {"workers": 1, "endpoints": {"default": {"api_base": url}}},
    }


def measured(kind: str, prompt_cache: bool, count: int, early: bool, folder: Path) -> dict[str, Any]:
    """Build one case in a folder, and what it came to."""
    source = {"instances": count, "steps": STEPS, "weights": list(WEIGHTS)}
    plan: Plan = {one.id: list(one.task["tiers"]) for one in instances(source)}
    with ExitStack() as stack:
        provider = stack.enter_context(Provider({"hinter": hinter(plan)}))
        file = folder / "config.yaml"
        file.write_text(json.dumps(config(kind, prompt_cache, source, early, plan, provider.url, folder)))
        run = stack.enter_context(open_for_work(folder / "run", load_config(file)))
        build = Build(run, threading.Event())
        build.admit()
        build.execute()
        labels = write_artifacts(run, build.multi_step).rows
        found = {instance: tiers for _, instance, tiers in run.ledger.labels()}
    if found != plan:
        raise SystemExit("the labels are not the planted tiers")
    spend = json.loads((folder / "run" / "spend.json").read_text())
    tokens = {
        name: sum(line["tokens"][name] for line in spend["by_model"])
        for name in ("prompt", "cache_read", "cache_write", "completion")
    }
    of_hints = sum(line["usd"] for line in spend["by_model"] if line["purpose"] == "hint")
    return {
        "hints": kind,
        "prompt_cache": prompt_cache,
        "usd_per_label": round(spend["usd"] / labels, 5),
        "usd": round(spend["usd"], 4),
        "usd_of_hints": round(of_hints, 4),
        "labels": labels,
        "instances": count,
        "steps": STEPS,
        "prefix_tokens": [FIRST_TOKENS, LAST_TOKENS],
        "early_verdicts": early,
        "calls": spend["calls"],
        "calls_per_label": round(spend["calls"] / labels, 2),
        "tokens": tokens,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=12, help="trajectories of 12 steps (default: 12)")
    parser.add_argument("--hints", choices=KINDS, help="this kind alone")
    parser.add_argument("--early-verdicts", action="store_true", help="a lost trial ends with the candidate's own call")
    given = parser.parse_args()
    if given.instances < 1:
        parser.error("--instances must be at least 1")
    kinds = (given.hints,) if given.hints else KINDS
    for kind, prompt_cache in product(kinds, (False, True)):
        with tempfile.TemporaryDirectory(prefix="cost-") as folder:
            line = measured(kind, prompt_cache, given.instances, given.early_verdicts, Path(folder))
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
