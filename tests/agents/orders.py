"""Tasks for the clerk of `programs/`: orders that need skills, models that have them, a grader that looks at the work.

A model fills an order iff its skill is enough, in words of its own. What labels follow is for the search to find.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.provider import Ability, Answer, Request

PROGRAMS = Path(__file__).parent / "programs"
CLERK = "{python} {program}/clerk.py {prompt}"
GRADER = "! grep -L '^filled' order-*.txt | grep . && test $(ls order-*.txt | wc -l) = $(wc -l < orders.txt)"


def task(name: str, skills: Sequence[int], **fields: Any) -> dict[str, Any]:
    """A line of the file of tasks: an order a skill."""
    orders = "".join(f"a piece that needs skill {skill}\n" for skill in skills)
    return {
        "id": name,
        "prompt": f"Fill the orders of {name}.",
        "files": {"orders.txt": orders},
        "grader": {"command": GRADER},
        **fields,
    }


def filler(skill: int) -> Ability:
    """A model of this skill."""

    def ability(request: Request) -> Answer:
        words = str(request["messages"][-1]["content"])
        order = re.search(r"order (\d+): a piece that needs skill (\d+)", words)
        if order is None:
            return Answer(f"A title by skill {skill}")
        done = "filled" if int(order[2]) <= skill else "spoilt"
        said = sum(len(str(message.get("content"))) for message in request["messages"])
        arguments = {"path": f"/workspace/order-{order[1]}.txt", "text": f"{done} by skill {skill} after {said}"}
        return Answer("", (("write", json.dumps(arguments)),))

    return ability


ABILITIES: dict[str, Ability] = {"novice": filler(0), "hand": filler(1), "master": filler(9)}


def config(
    url: str,
    folder: Path,
    tasks: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any] | None = None,
    seeds: Mapping[str, Any] | None = None,
    **operation: Any,
) -> dict[str, Any]:
    """A config for these tasks, which are written into the folder beside the programs."""
    (folder / "tasks.jsonl").write_text("".join(json.dumps(one) + "\n" for one in tasks))
    tiers = {"low": "novice", "mid": "hand", "high": "master"}
    return {
        "protocol": {
            "pool": {
                "version": "orders-1",
                "tiers": [
                    {"name": tier, "id": number, "models": [{"name": model, "model": f"openai/{model}"}]}
                    for number, (tier, model) in enumerate(tiers.items())
                ],
            },
            "workloads": [
                {
                    "harness": "agent",
                    "source": {"file": "tasks.jsonl", "assets": str(PROGRAMS)},
                    "options": {"sandbox": "process", "command": CLERK, "program": "clerk.py", **(options or {})},
                    "seeds": dict(seeds or {"source": "collect"}),
                }
            ],
        },
        "operation": {
            "workers": 1,
            "endpoints": {"default": {"api_base": url, "timeout": 30}},
            "retries": {"attempts": 3, "first_wait": 0, "longest_wait": 0},
            **operation,
        },
    }
