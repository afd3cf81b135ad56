"""A build over a thousand tasks whose answers are recorded by model, as in the files that routers are trained on.

A model of any tier may know what no other knows, so labels follow no order of ability. What they must be is worked out
from the same record by a few lines that share nothing with the search.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from stepdown.builder.records import Instance, Prefix, Response, Ruling, Verdict
from stepdown.harnesses.base import Episode, Harness
from tests.conftest import Shop
from tests.provider import Ability, Answer, Provider, Request

Start = Callable[..., Provider]
POOL = {"low": ("ant", "bee", "cat"), "mid": ("dog", "eel"), "high": ("fox",)}
KNOWN = {"ant": 35, "bee": 45, "cat": 50, "dog": 70, "eel": 75, "fox": 95}
"""Of a hundred questions, how many a model knows: which ones is nobody's plan."""
SINGLE, SEVERAL = 900, 100
QUESTION = re.compile(r"\[(\w+)/(\d+)\]")


def is_known(model: str, task: str, step: int) -> bool:
    """The record: whether a model's recorded answer to a question is right."""
    drawn = hashlib.sha256(f"{model} {task} {step}".encode()).digest()
    return drawn[0] * 100 // 256 < KNOWN[model]


def right(task: str, step: int) -> str:
    return hashlib.sha256(f"{task} {step}".encode()).hexdigest()[:6]


def steps_of(task: str) -> int:
    return 1 if task.startswith("one") else 2 + int(right(task, 0), 16) % 2


def recorded(model: str) -> Ability:
    """A model that gives its recorded answer to the last question, in words of its own where that is wrong."""

    def ability(request: Request) -> Answer:
        task, step = QUESTION.findall(str(request["messages"][-1]["content"]))[-1]
        known = is_known(model, task, int(step))
        return Answer(right(task, int(step)) if known else f"{model} does not know {task}")

    return ability


def labels_by_hand() -> dict[str, list[str]]:
    """By task, for each step the first tier that has a model whose recorded answer is right; high where none has.

    Tasks of which the strong model does not know every answer have no seed.
    """
    labels = {}
    for task in (*(f"one{n}" for n in range(SINGLE)), *(f"many{n}" for n in range(SEVERAL))):
        steps = range(1, steps_of(task) + 1)
        if all(is_known("fox", task, step) for step in steps):
            labels[task] = [
                next((tier for tier, models in POOL.items() if any(is_known(m, task, step) for m in models)), "high")
                for step in steps
            ]
    return labels


class Round(Episode):
    """One question after another."""

    def __init__(self, task: str) -> None:
        self._task, self._step, self._wrong = task, 1, False
        self._prefix = Prefix.start([self._asked()])

    def _asked(self) -> dict[str, Any]:
        return {"role": "user", "content": f"[{self._task}/{self._step}]?"}

    def prefix(self) -> Prefix:
        return self._prefix

    def advance(self, response: Response) -> bool:
        self._wrong |= response.content != right(self._task, self._step)
        self._step += 1
        self._prefix = self._prefix.respond(response).extend([self._asked()])
        return self._step <= steps_of(self._task)

    def doomed(self) -> Ruling | None:
        return Ruling(Verdict.FAIL, "a wrong answer") if self._wrong else None

    def verdict(self) -> Ruling:
        return self.doomed() or Ruling(Verdict.PASS)


class Rounds(Harness):
    """Tasks of several questions."""

    name, version = "rounds", "1"

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        yield from (Instance(self.name, f"many{number}", {}) for number in range(source["count"]))

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Round]:
        yield Round(instance.id)


def settings(url: str, tasks: str) -> dict[str, Any]:
    tiers = [
        {"name": tier, "id": number, "models": [{"name": name, "model": f"openai/{name}"} for name in models]}
        for number, (tier, models) in enumerate(POOL.items())
    ]
    seeds = {"source": "collect"}
    exact = {"grading": {"by": "exact"}}
    return {
        "protocol": {
            "pool": {"version": "recorded-1", "tiers": tiers},
            "workloads": [
                {"harness": "qa", "source": {"file": tasks}, "options": exact, "seeds": seeds},
                {"harness": "tests.test_recorded_answers:Rounds", "source": {"count": SEVERAL}, "seeds": seeds},
            ],
        },
        "operation": {"workers": 4, "endpoints": {"default": {"api_base": url, "timeout": 60}}},
    }


def test_a_thousand_recorded_tasks_get_the_labels_that_their_records_give(shop: Shop, provider: Start) -> None:
    lines = [{"id": f"one{n}", "question": f"[one{n}/1]?", "answers": [right(f"one{n}", 1)]} for n in range(SINGLE)]
    (shop.folder / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    one = provider({name: recorded(name) for name in KNOWN})
    assert shop.build(settings(one.url, "tasks.jsonl")).code == 0
    labels: dict[str, list[str]] = {}
    for row in shop.read("question_bank.jsonl"):
        labels.setdefault(row["instance_id"], []).append(row["target_tier"])
    expected = labels_by_hand()
    assert labels == expected
    assert {tier for tiers in expected.values() for tier in tiers} == set(POOL), "every tier is the answer somewhere"
    assert sum(shop.manifest()["instances"].values()) == len(expected) < SINGLE + SEVERAL
    assert not shop.manifest()["blocked"]
