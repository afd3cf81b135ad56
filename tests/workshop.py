"""A workload of one's own, in one file: an apprentice makes pieces, each of which needs a skill.

Models are scripted by skill: one makes a piece iff its skill is enough, in words of its own. What labels follow is for
the search to find. Options bring out what a real workload may have: early verdicts, checkpoints, volatile text,
a model that makes two pieces at once, an environment that is lost. Who throws dice is shown what they fell on.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from stepdown.builder.errors import BadInput, Lost
from stepdown.builder.records import Instance, Prefix, Response, Ruling, Sample, Verdict
from stepdown.harnesses.base import Episode, Harness
from tests.provider import Answer, Fault, Request

CLOCK = re.compile(r"clock \d+")
_ticks = itertools.count()


class Bench(Episode):
    """One apprentice at work."""

    def __init__(self, shop: Workshop, job: Instance, state: tuple[Prefix, int, bool] | None = None) -> None:
        self._shop, self._job, self._needs = shop, job.id, job.task["needs"]
        self._prefix, self._made, self._spoilt = state or (self._start(), 0, False)

    def _start(self) -> Prefix:
        start = Prefix.start([{"role": "system", "content": f"Make every piece of {self._job}."}], mask=self._shop.mask)
        return start.extend([self._order(0)])

    def _order(self, piece: int) -> dict[str, Any]:
        clock = f" clock {next(_ticks)}" if self._shop.volatile else ""
        return {"role": "user", "content": f"piece {piece + 1} needs skill {self._needs[piece]}{clock}"}

    def prefix(self) -> Prefix:
        return self._prefix

    def advance(self, response: Response) -> bool:
        if self._shop.breaks_on and self._shop.breaks_on in response.content:
            raise RuntimeError("the workbench collapsed")
        if self._shop.lost:
            self._shop.lost -= 1
            raise Lost("the workbench is gone")
        self._prefix = self._prefix.respond(response)
        made = re.match(r"made (\d+)", response.content)
        self._spoilt |= made is None
        self._made += int(made[1]) if made else 1
        if self._made >= len(self._needs):
            return False
        thrown = [{"role": "user", "content": f"dice {next(_ticks)}"}] if "throws" in response.content else []
        self._prefix = self._prefix.extend([*thrown, self._order(self._made)])
        return True

    def doomed(self) -> Ruling | None:
        return Ruling(Verdict.FAIL, "a piece is spoilt") if self._shop.early and self._spoilt else None

    def verdict(self) -> Ruling:
        return Ruling(Verdict.FAIL, "a piece is spoilt") if self._spoilt else Ruling(Verdict.PASS)

    def checkpoint(self) -> tuple[Prefix, int, bool] | None:
        return (self._prefix, self._made, self._spoilt) if self._shop.checkpoints else None


class Workshop(Harness):
    """The harness. `source` is `{needs: [[skill, ...], ...]}`, an instance each."""

    name = "workshop"

    def __init__(
        self,
        early: bool = False,
        checkpoints: bool = True,
        volatile: bool = False,
        breaks_on: str = "",
        lost: int = 0,
    ) -> None:
        self.early, self.checkpoints, self.volatile, self.breaks_on = early, checkpoints, volatile, breaks_on
        self.lost = lost
        self.early_verdicts = early
        self.version = f"1-{early}-{checkpoints}-{volatile}"
        self.mask = (lambda text: CLOCK.sub("clock", text)) if volatile else None

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        if set(source) != {"needs"}:
            raise BadInput("must be `needs`, a list of lists of skills")
        for number, needs in enumerate(source["needs"]):
            yield Instance(self.name, f"job-{number}", {"needs": needs})

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Bench]:
        yield Bench(self, instance, at)

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        """`workload/skill-N`: a pseudo-model of that skill; `workload/reference`: one that can do all."""
        skill = 9 if name == "reference" else int(name.removeprefix("skill-"))
        return Response(worked(skill, prefix.messages))


def worked(skill: int, messages: Sequence[Mapping[str, Any]], pace: int = 1, manner: str = "") -> str:
    """What an apprentice of a skill answers: the words depend on all that was said before."""
    need = re.search(r"needs skill (\d+)", str(messages[-1]["content"]))
    said = sum(len(str(message["content"])) for message in messages)
    able = need is not None and int(need[1]) <= skill
    return f"{f'made {pace}' if able else 'spoilt'} with skill {skill} after {said}{manner}"


def apprentice(skill: int, pace: int = 1, manner: str = "") -> Any:
    """An ability for `tests.provider`; `manner` tells apart the words of models of one skill."""

    def ability(request: Request) -> Answer | Fault:
        return Answer(worked(skill, request["messages"], pace, manner))

    return ability


ABILITIES = {"novice": apprentice(0), "hand": apprentice(1), "master": apprentice(9)}


def config(
    url: str,
    needs: Sequence[Sequence[int]],
    models: Mapping[str, Sequence[str]] | None = None,
    options: Mapping[str, Any] | None = None,
    protocol: Mapping[str, Any] | None = None,
    operation: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A config for the workshop: tiers by name with their models, all at one provider; seeds are collected live."""
    tiers = models or {"low": ["novice"], "mid": ["hand"], "high": ["master"]}
    return {
        "protocol": {
            "pool": {
                "version": "workshop-1",
                "tiers": [
                    {
                        "name": name,
                        "id": number,
                        "models": [{"name": model, "model": f"openai/{model}"} for model in members],
                    }
                    for number, (name, members) in enumerate(tiers.items())
                ],
            },
            "workloads": [
                {
                    "harness": "tests.workshop:Workshop",
                    "source": {"needs": [list(row) for row in needs]},
                    "options": dict(options or {}),
                    "seeds": {"source": "collect"},
                }
            ],
            **(protocol or {}),
        },
        "operation": {
            "workers": 1,
            "endpoints": {"default": {"api_base": url, "timeout": 5}},
            "retries": {"attempts": 3, "first_wait": 0, "longest_wait": 0},
            **(operation or {}),
        },
    }


def as_yaml(data: Mapping[str, Any]) -> str:
    """JSON is YAML."""
    return json.dumps(data, indent=1)
