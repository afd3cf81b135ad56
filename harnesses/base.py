"""The contract between stepdown and a workload. Whoever has one to label writes these two classes.

An `Episode` is one live environment: it shows what the next call sees, acts on the answer, and says in the end whether
the task is done. A `Harness` names the tasks and opens episodes. What is abstract here must be written; all else has a
default, and a workload takes what it needs of it.

A harness is shared by threads; what it keeps must not change what its episodes do. An episode is used by one thread.
Both raise `Technical` where the apparatus failed (`Lost` where an environment is gone), and never for what a model did:
that is a verdict. `stepdown.testing` tries a harness on all that is asked of it here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from inspect import signature
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar, NamedTuple, Protocol

from stepdown.builder.records import NO_SIGNS, Instance, Mask, Message, Prefix, Response, Ruling, Sample, Signs
from stepdown.harnesses.spelling import refuse_near_misses
from stepdown.judges.case import JudgeCase, RefusalCase


class Checkpoint(Protocol):
    """Any object of a workload's own that an episode can go on from: there is no class to derive from.

    It holds all that `prefix`, `doomed`, `signs` and `verdict` depend on. `Episode.checkpoint` gives it after a step,
    and `Harness.open` is given it back, any number of times: each time an episode goes on exactly as the one that it
    was taken from would have. So it must never be changed by use. A value that can not change (a named tuple, a frozen
    dataclass) is the best one; a state that can, a list or a container, must be copied deeply, both when it is taken
    and when an episode goes on from it. It stays in this process and is never written to disk.

    Without checkpoints an episode replays all earlier steps, which costs time and no calls. `stepdown.testing` finds a
    checkpoint that leaves something out or is changed by use; a build can not see it, and would give wrong labels.
    """


Ask = Callable[[str, Prefix], Response]
"""Asks a model of the config, by its name, something beside the steps. The answer is cached and counted in the cost.
Raises Technical."""


class Episode(ABC):
    """One live environment. `prefix` and `advance` alternate until `advance` says that the agent has halted."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_near_misses(cls.__qualname__, vars(cls), _public(Episode))

    @abstractmethod
    def prefix(self) -> Prefix:
        """What the router sees before the next call. Asked twice, it is the same."""

    @abstractmethod
    def advance(self, response: Response) -> bool:
        """Act on a response; False once the agent has halted. A response is hostile data: never evaluate it.

        It has words or calls; one that has neither, a refusal, and a prefix that did not fit are ruled on before any
        episode sees them. Text can be encoded and has no NUL, and a call's arguments are the text of one JSON object,
        neither large nor deep; an attempt at a call that could not be read is text, marked as `malformed`. Nothing else
        is promised: a tool may be unknown, an argument missing or of any type.
        """

    @abstractmethod
    def verdict(self) -> Ruling:
        """The workload's own official predicate on the episode as it stands, with a reason where it is not pass."""

    def doomed(self) -> Ruling | None:
        """A ruling other than pass that is already certain; else None. It ends a trial early, which saves its calls."""
        return None

    def signs(self) -> Signs:
        """What the episode as it stands shows of its outcome beside the verdict: see `Harness.tells_states`.

        Asked wherever a trial ends, at the limit of calls and after a refusal too. By executed calls (see
        `harnesses.receipts`) and state: what a response claims is no sign.
        """
        return NO_SIGNS

    def refusal(self) -> RefusalCase | None:
        """What was asked and what was said in the end, for the config's judge, if it has one, to tell whether that is a
        refusal. Asked where a trial ended and nothing else tells its state; None where nothing was said.
        """
        return None

    def checkpoint(self) -> Checkpoint | None:
        """The state as it stands, for `Harness.open` to go on from; None where it cannot be captured.

        Without it every trial replays the steps before its own from the start.
        """
        return None

    def case(self) -> JudgeCase | None:
        """What an LLM judge is to decide in place of `verdict`; asked once the agent has halted.

        None where `verdict` decides: in a workload without a judge, for an answer that is no answer.
        """
        return None

    def expect(self, prefix: Prefix) -> None:
        """Told what the next prefix was when it was recorded, in a replay, before the answer that leads to it.

        For an environment that may show one thing or another first, such as an agent that asks in parallel.
        """
        return

    def answer_beside(self, ask: Ask) -> None:
        """Told once, before the first prefix: how to answer calls that are no steps; see `Harness.side_models`."""
        return

    def seed_verdict(self) -> Ruling:
        """`verdict`, asked in its place when a seed is verified: a predicate that may waver can look twice here."""
        return self.verdict()


class Need(NamedTuple):
    """Something of the machine that a workload needs, and how it stands with it."""

    part: str
    there: bool
    detail: str
    needed: bool = True
    """Whether nothing works without it."""


class NodeNeeds(NamedTuple):
    """What instances need of each machine of a cluster that works at them."""

    resources: Mapping[str, float] = {}
    """By the name of a Ray resource, what of it a machine must have: `{"docker": 1}`. Others are left alone."""
    images: tuple[str, ...] = ()
    """Names of container images, each once."""
    image_gib: float = 1.0
    """What one of them takes of a disk, beside layers that it shares with the others, in the mean."""


class Terms(NamedTuple):
    """Under what terms the texts of a workload stand, as their makers state them."""

    license: str
    note: str


NOT_STATED = Terms("not stated", "A workload of the publisher's own: ask the publisher for its terms.")


class NotASeed(Exception):
    """A sound recording that cannot become a seed, with the reason."""


class Harness(ABC):
    """One workload, made with the `options` of its entry in the config as keyword arguments.

    Beside the methods it has these attributes; `name` and `version` must be given:

    - `name`: the benchmark, what ids of rows begin with; without a slash.
    - `version`: a text that changes whenever the same answers could be shown, played or graded differently. It enters
      cache keys: with a new version, old answers are paid for again.
    - `multi_step` (True): whether trajectories have several steps; people audit only those.
    - `mask` (None): a function of text that puts a constant in place of times, paths and ids that change. Needed only
      here: prefixes that are made without a mask are given it. Rows keep the text as it was.
    - `finds_volatile` (False): whether volatile text is not known before: seeds are then played back twice, and
      `shapes_between` and `mask_of` say what of them to mask.
    - `side_models` (empty): names of the config's models that episodes ask beside their steps.
    - `runs_here` (""): what of a user's own it starts on this machine and in no container, in a few words.
    - `early_verdicts` (None): whether `doomed` has a ruling at the very step that fails (True), only the end has one
      (False), or it depends (None). Only the estimate of a run's cost asks.
    - `needs_judge` (False): whether episodes have cases for an LLM judge, which the config must then name.
    - `tells_states` (False): whether outcomes have one of five states beside the verdict, by `Episode.signs`.
    """

    name: str
    """The benchmark: what ids of rows begin with."""
    version: str
    """Enters cache keys: it must change whenever the harness's own code, its upstream data or checkers, its prompts,
    limits or options do, and must be the same in every process otherwise."""
    multi_step: bool = True
    """Whether trajectories have several steps; people audit only those."""
    mask: Mask | None = None
    """A function of text that puts a constant in place of the workload's volatile text, in canonical digests only;
    None where observations are deterministic. Prefixes that are made without one are given it."""
    finds_volatile: bool = False
    """Whether what is volatile shows only when an instance's seed is played back twice."""
    side_models: tuple[str, ...] = ()
    """Names of the config's models that episodes ask beside their steps; a config that lacks one is refused."""
    runs_here: str = ""
    """What of a user's own it starts on this machine and in no container: told before work begins, since a run may be
    somebody else's."""
    needs_judge: bool = False
    """Whether episodes have cases: without a judge in the config the workload is then refused at once."""
    tells_states: bool = False
    """Whether outcomes have a state beside the verdict (unsafe, complete, refused, technical, incomplete), by
    `Episode.signs` and the verdict."""
    early_verdicts: bool | None = None
    """Whether `doomed` has a ruling at the very step that fails (True), only the end has one (False), or it depends
    (None). Only the estimate of a run's cost asks."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.refuse_misspelt(vars(cls))
        mask = vars(cls).get("mask")
        if isinstance(mask, FunctionType) and len(signature(mask).parameters) == 1:
            cls.mask = staticmethod(mask)  # a plain function named in the class is no method

    @classmethod
    def refuse_misspelt(cls, names: Mapping[str, Any]) -> None:
        """Raises BadInput where one of the names is nearly one of this class, but none: see `spelling`."""
        refuse_near_misses(cls.__qualname__, names, _public(Harness))

    @abstractmethod
    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        """The tasks that `source` (the config's) selects, in a fixed order. Raises BadInput, naming the field."""

    @abstractmethod
    def open(self, instance: Instance, at: Checkpoint | None = None) -> AbstractContextManager[Episode]:
        """A fresh episode, or one that goes on from a checkpoint exactly as the one it was taken from would."""

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        """What the workload's own pseudo-model of this name answers; None where it has no answer for this instance.

        A pool has such models as `workload/<name>`: `workload/reference` is one that knows accepted answers. `sample`
        tells independent draws apart; a pseudo-model that always answers alike leaves it aside.
        """
        return None

    def shapes_between(self, recorded: Prefix, replayed: Prefix) -> frozenset[str] | None:
        """Names of the shapes of volatile text that explain all that differs between two plays of the same answers.

        None where something else differs too: the replay has diverged. Asked where the two differ under the mask.
        """
        return None

    def mask_of(self, shapes: tuple[str, ...]) -> Mask | None:
        """The mask of an instance in whose seed these shapes were found, in a fixed order; by default `mask`."""
        return self.mask

    def keep_in(self, folder: Path) -> None:
        """Told once, before work begins: a folder of the harness's own that lasts as long as the response cache.

        For what is dear to come by again: gradings, logs. Other runs and processes that share the cache share it too.
        It need not be there yet.
        """
        return

    def node_needs(self, source: Mapping[str, Any]) -> NodeNeeds:
        """What the instances of `source` need of each machine of a cluster that works at them; by default nothing.

        Asked where the tasks are, for a plan and before a cluster is prepared. Raises BadInput.
        """
        return NodeNeeds()

    def prepare_node(self, needs: NodeNeeds, archives: Path | None = None) -> Iterator[Need]:
        """Make this machine of a cluster ready for instances with these needs, and say how it stands with each.

        Asked where the tasks are not. What is missing is fetched where it can be: images out of `archives`, a folder of
        files that `docker save` wrote, else from where their names lead. Done once more, it changes nothing.
        """
        return iter(())

    def needs(self, source: Mapping[str, Any]) -> Iterator[Need]:
        """What the instances of `source` need of this machine, for `stepdown doctor`. Changes nothing, fetches nothing.

        Raises BadInput or Technical.
        """
        return iter(())

    # Asked of the class, by the name under which a workload is installed: a release or a report has no more than that.
    # Its module must be cheap to import, so what is dear (a daemon's client, a data set) is imported where it is used.

    terms: ClassVar[Terms] = NOT_STATED
    """Stated in a release's LICENSE.md."""
    known_limits: ClassVar[tuple[str, ...]] = ()
    """Sentences on a release's card: what a user of these labels must know."""
    expected_labels: ClassVar[tuple[int, int, int, int] | None] = None
    """How many steps ended in the tiers low, mid, mid_high and high where they were labelled before, for the estimate.
    A workload without is taken to be like all of the paper's together."""
    recordings: ClassVar[str] = ""
    """How names of files end that `seed_of` reads; empty where there are none."""

    @classmethod
    def requirements(cls) -> Iterator[Need]:
        """What any instance needs of this machine, packages above all, for `stepdown doctor`. See `package`."""
        return iter(())

    @classmethod
    def seed_of(cls, recording: Path, model: str | None) -> dict[str, Any]:
        """A line of a seed file, made of what another tool recorded, for `stepdown seeds convert`.

        `model` is the pool's name of the model that made it; None: the name that the file gives it. Raises NotASeed for
        a sound recording that can be none, BadInput for a broken one.
        """
        raise NotImplementedError

    @classmethod
    def step_role(cls, message: Message) -> str | None:
        """What a step does, from the assistant's message, where the rules of `harnesses.roles` can not know it.

        `code_patch`, `test_verify_debug`, `explore_search`, `read_retrieve`, `tool_api` or `summarize_answer`; None: by
        those rules. The message is hostile data.
        """
        return None


def package(distribution: str, install: str) -> Need:
    """A Python package that a workload needs; `install` is the command that installs it."""
    try:
        return Need(distribution, True, version_of(distribution), needed=False)
    except PackageNotFoundError:
        return Need(distribution, False, f"not installed: {install}", needed=False)


def _public(contract: type) -> set[str]:
    """The public names of a contract."""
    return {name for name in (*vars(contract), *contract.__annotations__) if not name.startswith("_")}
