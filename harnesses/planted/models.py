"""The pseudo-models, `workload/<tier>-<k>` in a pool: what each answers to a prefix, and how an answer is read."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from stepdown.builder.config.validation import Strict
from stepdown.builder.records import Prefix, Response, Sample, Usage
from stepdown.harnesses.planted.source import STRONG

NAME = rf"[0-{STRONG}]-\d{{1,3}}"
ModelName = Annotated[str, Field(pattern=rf"^{NAME}$")]
"""A pseudo-model's name without `workload/`: the index of its tier, and its place in the cascade."""
Chance = Annotated[float, Field(ge=0, le=1)]

_ANSWER = re.compile(rf"({NAME}) (makes|slips) ([12]) \w+")


class Noise(Strict):
    """Models that fail now and then at what they can do, each sample by a draw of its own."""

    chance: dict[ModelName, Chance] = Field(min_length=1)
    """How probable it is that a call slips, by model."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Made:
    """What an answer says: who made how many steps at once, and whether it slipped."""

    model: str
    steps: int
    slipped: bool

    @property
    def tier(self) -> int:
        return int(self.model[0])


def answer(name: str, steps: int, noise: Noise | None, prefix: Prefix, sample: Sample) -> Response:
    """The answer of the model `name` to a prefix, in words that no other model, prefix or sample brings forth.

    The words depend on the whole prefix. So no two trials share a suffix by luck, and an answer that was given to
    another prefix would be seen to be.
    """
    seed = noise.seed if noise else 0
    drawn = hashlib.sha256(f"{seed} {name} {sample.namespace} {sample.number} {prefix.canonical}".encode()).hexdigest()
    slips = noise is not None and int(drawn[-16:], 16) < noise.chance.get(name, 0) * 2**64
    return Response(
        content=f"{name} {'slips' if slips else 'makes'} {steps} {drawn[:16]}",
        usage=Usage(prompt=20 * len(prefix.messages), completion=10),
    )


def read(response: Response) -> Made | None:
    """What a response says; None where it is not a pseudo-model's answer."""
    found = _ANSWER.fullmatch(response.content)
    return Made(found[1], int(found[3]), found[2] == "slips") if found else None
