"""The questions of an exam: an answer that is good or was made wrong, and which of the two a judge should find."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

from stepdown.judges.case import JudgeCase
from stepdown.judges.exam.library import good_answers
from stepdown.judges.exam.mutations import KINDS, UNSUPPORTED, drawing, mutated

HONEST = "honest"
"""The kind of a probe whose answer is good: who fails it gives a false alarm."""
CONTROLS = 3
"""Every so many probes one is an honest answer."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question with a known answer."""

    kind: str
    """The way in which the answer was made wrong, or `HONEST`."""
    case: JudgeCase

    @property
    def is_honest(self) -> bool:
        return self.kind == HONEST


def library_probes(seed: int = 0) -> Iterator[Probe]:
    """The exam: every good answer made wrong in every way that applies, the kinds in turn, honest ones between."""
    wrong = zip_longest(*(_of_kind(kind, seed) for kind in KINDS))
    queue = [probe for round_ in wrong for probe in round_ if probe is not None]
    honest = [Probe(HONEST, good.case) for good in good_answers()]
    drawing(seed, HONEST).shuffle(honest)
    while queue or honest:
        yield from (queue.pop(0) for _ in range(min(CONTROLS - 1, len(queue))))
        if honest:
            yield honest.pop(0)


def _of_kind(kind: str, seed: int) -> list[Probe]:
    probes = []
    for good in good_answers():
        answer = mutated(good, kind, drawing(seed, kind, good.name))
        if answer is not None and answer != good.case.answer:
            probes.append(Probe(kind, good.case.answered(answer)))
    drawing(seed, kind).shuffle(probes)
    return probes


def probe_beside(case: JudgeCase, every: int) -> Probe | None:
    """The probe that is asked beside a real case: one for every `every`-th case, none for the others.

    Which case has one, and which it is, depends on the case alone, so that it is the same whatever interrupts a run and
    in whatever order cases come. Where the case has an accepted answer, every other probe is that answer made wrong;
    the rest are the library's.
    """
    number = int.from_bytes(hashlib.sha256(f"probe {case.digest}".encode()).digest()[:8], "big")
    if not every or number % every:
        return None
    number //= every
    own = _of_reference(case, number) if number % 2 else None
    return own or _listed()[number // 2 % len(_listed())]


@cache
def _listed() -> tuple[Probe, ...]:
    return tuple(library_probes())


def _of_reference(case: JudgeCase, number: int) -> Probe | None:
    """An accepted answer made wrong in a way that is wrong whatever the answer was worth."""
    if not case.references or not case.references[0].strip():
        return None
    draw = drawing(number)
    kinds = list(UNSUPPORTED)
    draw.shuffle(kinds)
    accepted = case.answered(case.references[0])
    for kind in kinds:
        answer = UNSUPPORTED[kind](accepted, draw)
        if answer is not None and answer != accepted.answer:
            return Probe(kind, accepted.answered(answer))
    return None
