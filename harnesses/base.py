"""The contract between stepdown and a workload. Implementing it is all it takes to label one.

A harness is stateless and shared by threads; an episode is one live environment, used by one thread. Harnesses raise
`builder.errors.Technical` where the apparatus failed and never for what a model did: that is a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from stepdown.builder.records import Instance, Mask, Prefix, Response, Sample, Verdict
from stepdown.judges.case import Case

Checkpoint = object
"""All that `prefix`, `doomed` and `verdict` depend on. Opaque, process-local, and never changed by use."""


class Episode(Protocol):
    """One live environment. `prefix` and `advance` alternate until `advance` says that the agent has halted."""

    def prefix(self) -> Prefix:
        """What the router sees before the next call."""

    def advance(self, response: Response) -> bool:
        """Act on a response; False once the agent has halted. A response is hostile data: never evaluate it."""

    def doomed(self) -> tuple[Verdict, str] | None:
        """A verdict other than pass that is already certain, with its reason; else None."""

    def verdict(self) -> tuple[Verdict, str]:
        """The workload's own official predicate on the episode as it stands, with a reason where it is not pass."""

    def checkpoint(self) -> Checkpoint | None:
        """The state as it stands; None where it cannot be captured."""


@runtime_checkable
class VerifiesSeeds(Protocol):
    """An episode whose predicate may waver, and that looks twice before a seed is built upon."""

    def seed_verdict(self) -> tuple[Verdict, str]:
        """Asked in place of `verdict` when a seed is verified in a fresh episode."""


@runtime_checkable
class Explains(Protocol):
    """An episode whose verdict rests on more than a reason can say: a grader's report, a judge's findings."""

    def grading(self) -> Mapping[str, Any] | None:
        """What the verdict rests on, as JSON; asked after the verdict, and kept with the trial.

        A function of what was graded: no time, no host and nothing of how the episode came about, since evidence must
        be the same however often a run was interrupted.
        """


class Harness(Protocol):
    """One workload.

    Constructed with the `options` of its entry in the config, as keyword arguments. `version` enters cache keys:
    it must change whenever the harness's own code, its upstream data or checkers, its prompts, limits or options do.
    """

    name: str
    version: str
    multi_step: bool
    mask: Mask | None
    """Masks the workload's volatile text in canonical digests; None where observations are deterministic."""

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        """The tasks that `source` (the config's) selects, in a fixed order. Raises BadInput, naming the field."""

    def open(self, instance: Instance, at: Checkpoint | None = None) -> AbstractContextManager[Episode]:
        """A fresh episode, or one that goes on from a checkpoint exactly as the one it was taken from would."""


@runtime_checkable
class Judged(Protocol):
    """An episode of a workload whose answers an LLM judges. Asked when the agent has halted, before `verdict`."""

    def case(self) -> Case | None:
        """What is to be judged; None where `verdict` decides by itself: an empty answer, a task graded by rule."""


@runtime_checkable
class NeedsJudge(Protocol):
    """A harness that says whether its episodes have cases: without a judge in the config it is then refused at once."""

    needs_judge: bool


@runtime_checkable
class KeepsFiles(Protocol):
    """A harness that keeps files of its own beside the response cache: gradings that were dear to come by, logs."""

    def keep_in(self, folder: Path) -> None:
        """Told once, before work begins: a folder of the harness's own that lasts as long as the cache.

        Other runs and processes that share the cache share it too. It need not be there yet.
        """


class Need(NamedTuple):
    """Something of the machine that a workload needs, and how it stands with it."""

    part: str
    there: bool
    detail: str
    needed: bool = True
    """Whether nothing works without it."""


@runtime_checkable
class NeedsMachine(Protocol):
    """A harness that needs more of a machine than Python packages: a daemon, images, disk. Only `doctor` asks."""

    def needs(self, source: Mapping[str, Any]) -> Iterator[Need]:
        """What instances of `source` need here. Changes nothing and fetches no image. Raises BadInput, Technical."""


@runtime_checkable
class TellsHowSoon(Protocol):
    """A harness that says how soon a trial is known to be lost. Only the estimate of a run's cost asks."""

    early_verdicts: bool
    """Whether `doomed` has a verdict at the very step that fails, or else only the end of the trajectory has one."""


@runtime_checkable
class Answers(Protocol):
    """A harness that has pseudo-models of its own, named `workload/<name>` in a pool: `reference`, planted ones."""

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        """The pseudo-model's response to a prefix; None where it has none for this instance.

        `sample` tells independent draws apart; a pseudo-model that always answers alike leaves it aside.
        """
