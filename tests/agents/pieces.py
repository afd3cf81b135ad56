"""Tasks for agent programs that have tools of their own: pieces of work that need skills, and models that have them.

A model makes the next piece with a tool of the program's, well iff its skill is enough, in words of its own. When all
are made it says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.provider import Ability, Answer, Request

GRADER = "test $(ls piece-*.txt | wc -l) = $(wc -l < pieces.txt) && ! grep -L '^well made' piece-*.txt | grep ."
Making = Callable[[int, str], tuple[str, dict[str, Any]]]
"""How a piece of this number and text is made: a tool and its arguments."""


def task(name: str, skills: Sequence[int], **fields: Any) -> dict[str, Any]:
    """A line of the file of tasks: a piece a skill."""
    pieces = ", ".join(f"piece {number} of skill {skill}" for number, skill in enumerate(skills))
    return {
        "id": name,
        "prompt": f"Make these: {pieces}.",
        "files": {"pieces.txt": "".join(f"{skill}\n" for skill in skills)},
        "grader": {"command": GRADER},
        **fields,
    }


def maker(skill: int, making: Making) -> Ability:
    """A model of this skill."""

    def ability(request: Request) -> Answer:
        asked = re.search(r"Make these: (.*)\.", _words(request["messages"]))
        if asked is None or not request.get("tools"):
            return Answer("nothing to make")
        skills = [int(needed) for needed in re.findall(r"of skill (\d+)", asked[1])]
        made = sum(message["role"] == "assistant" for message in request["messages"])
        if made >= len(skills):
            return Answer(f"All is made, says one of skill {skill}.")
        quality = "well made" if skills[made] <= skill else "botched"
        tool, arguments = making(made, f"{quality} by skill {skill}\n")
        return Answer("", ((tool, json.dumps(arguments)),))

    return ability


def makers(making: Making) -> dict[str, Ability]:
    """Two models: `novice` of skill 0, `master` of skill 9."""
    return {"novice": maker(0, making), "master": maker(9, making)}


def config(
    url: str, harness: str, source: Mapping[str, Any], options: Mapping[str, Any], **operation: Any
) -> dict[str, Any]:
    """A config with a workload and the two models."""
    tiers = {"low": "novice", "high": "master"}
    return {
        "protocol": {
            "pool": {
                "version": "pieces-1",
                "tiers": [
                    {"name": tier, "id": number, "models": [{"name": model, "model": f"openai/{model}"}]}
                    for number, (tier, model) in enumerate(tiers.items())
                ],
            },
            "workloads": [
                {
                    "harness": harness,
                    "source": dict(source),
                    "options": dict(options),
                    "seeds": {"source": "collect"},
                }
            ],
        },
        "operation": {
            "workers": 1,
            "endpoints": {"default": {"api_base": url, "timeout": 60}},
            "retries": {"attempts": 3, "first_wait": 0, "longest_wait": 0},
            **operation,
        },
    }


def _words(messages: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(str(message.get("content")) for message in messages if message["role"] == "user")
