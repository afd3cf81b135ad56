"""Models for `tests.provider` that work at the repository with a bug, each as far as its abilities go.

None of them counts steps: what is done already is seen from what was said so far, so that each goes on sensibly from
whatever another model has done. Each has words of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.provider import Answer, Request
from tests.swebench import repository

EDIT = repository.TRAJECTORY[3][1]

TASKS: dict[str, tuple[str, str]] = {
    # A task: what shows that it is done, and the command that does it.
    "look": ("spans.py", "git log --oneline && ls -R"),
    "read": ("def merge", "cat spans.py"),
    "reproduce": ("[(1, 3)]", repository.TRAJECTORY[2][1]),
    "edit": ("max(end", EDIT),
    "test": (" passed", "python3 -m pytest -q -p no:cacheprovider && git status --short"),
    "diff": ("> patch.txt", "git diff -- spans.py > patch.txt"),
    "view": ("+++ b/spans.py", "cat patch.txt"),
    "submit": ("never seen", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt"),
}
BREAK = "rm -rf spans.py .git"

LOOKS = {"look", "read", "view"}
EDITS = LOOKS | {"reproduce", "edit"}
ALL = set(TASKS)

LABELS = ["low", "low", "mid", "mid", "high", "high", "low", "high"]
"""What the abilities imply: the cheapest of the three that can do each task."""


SHORT = ("read", "edit", "diff", "submit")
"""Tasks of a shorter way through."""
SHORT_LABELS = ["low", "mid", "high", "high"]


def worker(name: str, able: set[str], otherwise: str, text: bool = False, tasks: Sequence[str] = tuple(TASKS)) -> Any:
    """A model that does the next task where it is able to, and something else where it is not.

    With `text` it knows no tools: it reads and writes blocks.
    """

    def ability(request: Request) -> Answer:
        assert ("tools" in request) is not text
        task = next(task for task in tasks if TASKS[task][0] not in _so_far(request))
        command = f"{TASKS[task][1]} # {name}" if task in able else otherwise
        words = f"{name} goes on with: {task}"
        if text:
            return Answer(f"{words}\n\n```mswea_bash_command\n{command}\n```")
        return Answer(words, (("bash", json.dumps({"command": command})),))

    return ability


def _so_far(request: Request) -> str:
    """All that was said after the task was given."""
    messages: list[Mapping[str, Any]] = request["messages"]
    first = next((n for n, each in enumerate(messages) if each["role"] == "assistant"), len(messages))
    said = []
    for message in messages[first:]:
        said.append(str(message.get("content") or ""))
        said += [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
    return re.sub(r"goes on with: \w+", "", "\n".join(said))


def _abilities(tasks: Sequence[str]) -> dict[str, Any]:
    return {
        "looker": worker("looker", LOOKS, BREAK, text=True, tasks=tasks),
        "editor": worker("editor", EDITS, "true", tasks=tasks),
        "master": worker("master", ALL, "true", tasks=tasks),
    }


ABILITIES = _abilities(tuple(TASKS))
SHORT_ABILITIES = _abilities(SHORT)


def config(url: str, file: str, options: Mapping[str, Any] | None = None, workers: int = 1) -> dict[str, Any]:
    """A config whose tiers are the three abilities; seeds are collected live."""
    return {
        "protocol": {
            "pool": {
                "version": "abilities-1",
                "tiers": [
                    {"name": "low", "id": 0, "models": [_model("looker", actions="text")]},
                    {"name": "mid", "id": 1, "models": [_model("editor")]},
                    {"name": "high", "id": 2, "models": [_model("master")]},
                ],
            },
            "workloads": [
                {
                    "harness": "swebench",
                    "source": {"file": file},
                    "options": dict(options or {}),
                    "seeds": {"source": "collect"},
                }
            ],
        },
        "operation": {
            "workers": workers,
            "endpoints": {"default": {"api_base": url, "timeout": 30}},
            "retries": {"attempts": 3, "first_wait": 0, "longest_wait": 0},
        },
    }


def _model(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "model": f"openai/{name}", **fields}
