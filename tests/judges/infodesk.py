"""A judged workload of one step: questions of the library, answered by models that know some of its answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from stepdown.builder.config.validation import validated
from stepdown.builder.records import Instance, Prefix, Response, Ruling, Verdict
from stepdown.harnesses.base import Episode, Harness
from stepdown.judges.case import JudgeCase
from tests.judges.playing import LIBRARY
from tests.provider import Answer, Request

SCENES = {scene["id"]: scene for scene in map(json.loads, LIBRARY.read_text(encoding="utf-8").splitlines())}


class Asked(Episode):
    """One question."""

    def __init__(self, scene: Mapping[str, Any]) -> None:
        self._scene = scene
        shown = f"{scene['id']}: {scene['turns'][-1]['text']}"
        self._prefix, self._answer = Prefix.start([{"role": "user", "content": shown}]), ""

    def prefix(self) -> Prefix:
        return self._prefix

    def advance(self, response: Response) -> bool:
        self._prefix, self._answer = self._prefix.respond(response), response.content
        return False

    def verdict(self) -> Ruling:
        return Ruling(Verdict.FAIL, "no word of an answer")

    def case(self) -> JudgeCase | None:
        if self._answer in ("", "..."):
            return None
        shared = {key: self._scene[key] for key in ("kind", "turns", "evidence", "references")}
        return validated(JudgeCase, {**shared, "answer": self._answer})


class InfoDesk(Harness):
    """The harness. `source` is `{scenes: [id, ...]}`."""

    name, version, multi_step, needs_judge = "infodesk", "1", False, True

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        for name in source["scenes"]:
            yield Instance(self.name, name, {})

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Asked]:
        yield Asked(SCENES[instance.id])


def knowing(*names: str) -> Callable[[Request], Answer]:
    """A model that gives the answer of one of these names; where a question has none of them, it says nothing."""

    def ability(request: Request) -> Answer:
        scene = SCENES[str(request["messages"][0]["content"]).split(":")[0]]
        found = [answer["answer"] for answer in scene["answers"] if answer["id"] in names]
        return Answer(found[0] if found else "...")

    return ability


def config(url: str, scenes: list[str], judge: Mapping[str, Any] | None, **operation: Any) -> dict[str, Any]:
    """Three tiers of one model each: `weak`, `fair`, `able`."""
    tiers = [
        {"name": tier, "id": number, "models": [{"name": name, "model": f"openai/{name}", "price": {"output": 1000}}]}
        for number, (tier, name) in enumerate({"low": "weak", "mid": "fair", "high": "able"}.items())
    ]
    workload = {
        "harness": "tests.judges.infodesk:InfoDesk",
        "source": {"scenes": scenes},
        "seeds": {"source": "collect"},
    }
    return {
        "protocol": {
            "pool": {"version": "desk-1", "tiers": tiers},
            "workloads": [workload],
            **({"judge": judge} if judge else {}),
        },
        "operation": {
            "workers": 1,
            "endpoints": {"default": {"api_base": url, "timeout": 5}},
            "retries": {"attempts": 2, "first_wait": 0, "longest_wait": 0},
            **operation,
        },
    }


def panel(*names: str, **rest: Any) -> dict[str, Any]:
    """A config's judge, without probes."""
    models = [{"name": n, "model": f"openai/{n}", "price": {"output": 2000}} for n in names]
    return {"models": models, "panel": "single", "probes": 0, **rest}
