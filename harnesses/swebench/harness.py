"""SWE-bench as stepdown's harness contract has it."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.errors import Lost, StepdownError, Technical
from stepdown.builder.records import Instance, Message, Prefix, Response, digest
from stepdown.harnesses.base import Checkpoint, Harness, Need, NodeNeeds, Terms, package
from stepdown.harnesses.containers import images
from stepdown.harnesses.containers.engine import DOCKER, Engine, described, reaching
from stepdown.harnesses.swebench import disk, grading, mini, patches, trajectories, volatile
from stepdown.harnesses.swebench.halting import only_submits
from stepdown.harnesses.swebench.instances import BENCHMARK, Task, reference_patches, select
from stepdown.harnesses.swebench.limits import INIT, Limits
from stepdown.harnesses.swebench.sandbox import Sandbox
from stepdown.harnesses.swebench.snapshots import Snapshot, Snapshots
from stepdown.harnesses.swebench.warm import Ready, Warm

if TYPE_CHECKING:
    from stepdown.harnesses.swebench.agent import StepwiseAgent
    from stepdown.harnesses.swebench.episode import EpisodeCheckpoint, SWEBenchEpisode

VERSION = "3"
"""Raised with every change of this package that can change a prefix, an observation or a verdict."""


IMAGE_GIB = 0.48
"""Of one of Verified's 500 images, which take 240 GiB together (public figures of those who built smaller ones)."""

_COMMITTED = "2026-01-01T00:00:00+00:00"
FIXED = {"PYTHONHASHSEED": "0", "GIT_AUTHOR_DATE": _COMMITTED, "GIT_COMMITTER_DATE": _COMMITTED}
"""Variables that commands see beside upstream's: what a set prints, and the name of a commit or stash that an agent
makes, must be the same at every replay. Models name commits by their hash."""


_SHOWN = {
    "none": "Messages hold the times and durations that commands printed, which differ from one run to the next.",
    "durations": "Durations that tests and commands printed are fixed in messages (`normalize: durations`); "
    "other times are as they were.",
}
"""What the manifest says of the texts, by the option `normalize`."""


class Options(Strict):
    """The harness's options."""

    step_limit: int = Field(250, ge=1)
    """Answers that an agent may give; mini-swe-agent's own limit is 250."""
    limits: Limits = Limits()
    """What an agent's container may take."""
    grading_limits: Limits = Limits()
    """What the grader's container may take."""
    grading_seconds: float = Field(grading.TESTS_SECONDS, gt=0)
    """What the tests of one grading may take."""
    infrastructure: grading.Infrastructure = "note"
    """Whether a patch that touches test infrastructure (conftest.py, pytest.ini, pyproject.toml and their like) can
    pass: `note` shows these paths in the evidence, `refuse` fails the patch too."""
    normalize: Literal["none", "durations"] = "none"
    """Whether what tests and commands say that they took is fixed in what the agent is shown (`in 0.00s`)."""
    verify_grading: int = Field(0, ge=0)
    """Grade a seed's patch so many times afresh, and drop the instance where gradings differ; 0: grade it once."""
    checkpoints: bool = True
    """Whether trials start from snapshots of the steps before them, or replay these."""
    snapshots_mib: int = Field(20_480, ge=0)
    """What all snapshots at once may take of Docker's disk."""


class SWEBench(Harness):
    """Repositories with a bug to mend, worked at by mini-swe-agent and graded by the official grader."""

    name = BENCHMARK
    mask = staticmethod(volatile.mask)
    early_verdicts = False
    sandbox_class: type[Sandbox] = Sandbox
    terms = Terms(
        "MIT and the licence of each repository",
        "SWE-bench itself is MIT. Messages quote source code and issues of the repositories that its tasks are from; "
        "each stands under its repository's own licence.",
    )
    expected_labels = (94, 33, 41, 168)
    recordings = trajectories.SUFFIX

    def __init__(self, **options: Any) -> None:
        """Raises BadInput for an unknown or wrong option, and where a package is missing."""
        self._options = options_ = validated(Options, options, field="options")
        self._config = config = mini.config()
        parts = {
            "options": options_.model_dump(mode="json", exclude={"checkpoints", "snapshots_mib", "verify_grading"}),
            "grading": grading.version(options_.grading_limits, options_.grading_seconds, options_.infrastructure),
            "agent": [config.agent, config.observation_template, config.format_error_template],
            "environment": [config.cwd, config.environment, FIXED, config.command_seconds, INIT],
            "volatile": volatile.PATTERNS,
        }
        self.version = f"{VERSION}+mini-swe-agent.{mini.pinned_version()}+{digest(parts)[:12]}"
        self.known_limits = (*type(self).known_limits, _SHOWN[options_.normalize])  # type: ignore[misc]
        self._engine = Engine()
        self._warm = Warm(self._engine)
        self._snapshots = Snapshots(self._engine, options_.snapshots_mib, on_release=self._warm.drop)
        self._outside: dict[str, bytes] = {}
        self._guard = threading.Lock()
        self._folder: Path | None = None
        self._grader: grading.Grader | None = None

    @classmethod
    def requirements(cls) -> Iterator[Need]:
        """The grader and the agent; Docker itself is told of where its SDK is installed."""
        yield package("swebench", mini.INSTALL)
        yield package("mini-swe-agent", mini.INSTALL)
        if find_spec("docker") is not None:
            try:
                yield Need("docker", True, described(), needed=False)
            except StepdownError as error:
                yield Need("docker", False, str(error), needed=False)

    @classmethod
    def seed_of(cls, recording: Path, model: str | None) -> dict[str, Any]:
        """A seed of one of mini-swe-agent's trajectory files."""
        return trajectories.seed_of(recording, model)

    @classmethod
    def step_role(cls, message: Message) -> str | None:
        """A step that only submits says that the agent is done, in the form of a command."""
        return "summarize_answer" if only_submits(message) else None

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        """The tasks that `source` selects: a file or a data set, and which of its instances."""
        return select(source)

    def keep_in(self, folder: Path) -> None:
        """Gradings, the grader's logs, and notes on what snapshots can not hold are kept there."""
        self._folder = folder
        with suppress(Lost):  # the first episode says so
            self._engine.tidy()

    def node_needs(self, source: Mapping[str, Any]) -> NodeNeeds:
        """Docker, and an image of each instance."""
        names = dict.fromkeys(Task.of(each).image for each in self.instances(source) if each.dropped is None)
        return NodeNeeds(DOCKER, tuple(names), IMAGE_GIB)

    def prepare_node(self, needs: NodeNeeds, archives: Path | None = None) -> Iterator[Need]:
        """Docker with the images, the grader and the agent."""
        yield from (need._replace(needed=True) for need in self.requirements() if need.part != "docker")
        yield from images.fetched(needs, archives)

    def needs(self, source: Mapping[str, Any]) -> Iterator[Need]:
        """A Docker engine, and the images of the instances: those that are not there are pulled at their first use."""
        names = self.node_needs(source).images
        try:
            with reaching():
                absent = [name for name in names if not images.is_here(self._engine.client, name)]
        except Lost as error:
            yield Need("images", False, error.reason)
            return
        here = f"{len(names) - len(absent)} of {len(names)} are here"
        more = f"; to be pulled: {', '.join(absent[:3])}{' and others' if len(absent) > 3 else ''}" if absent else ""
        yield Need("images", not absent, here + more, needed=False)
        yield Need("infrastructure", True, self._touched_by_references(source), needed=False)

    @staticmethod
    def _touched_by_references(source: Mapping[str, Any]) -> str:
        """What `infrastructure: refuse` would refuse of honest work."""
        paths = {name: patches.infrastructure(patches.touched(patch)) for name, patch in reference_patches(source)}
        touching = {name: found for name, found in paths.items() if found}
        if not touching:
            return f"none of {len(paths)} reference patches touches test infrastructure"
        named = [f"{name}: {', '.join(found)}" for name, found in touching.items()]
        more = " and others" if len(named) > 3 else ""
        return f"{len(named)} of {len(paths)} reference patches touch test infrastructure: {'; '.join(named[:3])}{more}"

    @contextmanager
    def open(self, instance: Instance, at: Checkpoint | None = None) -> Iterator[SWEBenchEpisode]:
        """An episode in a container of its own. Raises Technical where Docker can not give one."""
        mini.load()
        self._engine.tidy()
        if at is None:
            with self._fresh(instance) as episode:
                yield episode
            return
        checkpoint: EpisodeCheckpoint = at  # type: ignore[assignment]
        if self._snapshots.is_there(checkpoint.snapshot):
            with self._from_snapshot(instance, checkpoint) as episode:
                yield episode
            return
        with self._replayed(instance, checkpoint.responses, checkpoint.prefix) as episode:
            yield episode

    # Episodes

    @contextmanager
    def _fresh(self, instance: Instance) -> Iterator[SWEBenchEpisode]:
        from stepdown.harnesses.swebench.agent import TOOLS
        from stepdown.harnesses.swebench.episode import SWEBenchEpisode

        task = Task.of(instance)
        images.ensure(self._engine.client, task.image)
        sandbox = self._sandbox(task.image, task.image)
        with self._ending(Ready(sandbox, None)) as ending:
            if task.image not in self._outside:
                self._outside[task.image] = sandbox.outside()
            agent = self._agent(sandbox)
            prefix = Prefix.start(agent.start(task.problem_statement), TOOLS, self.mask)
            yield ending(SWEBenchEpisode(instance, sandbox, agent, self._shared(), prefix))

    @contextmanager
    def _from_snapshot(self, instance: Instance, at: EpisodeCheckpoint) -> Iterator[SWEBenchEpisode]:
        from stepdown.harnesses.swebench.episode import SWEBenchEpisode

        base = Task.of(instance).image
        ready = self._warm.take(at.snapshot) or Ready(
            self._sandbox(at.snapshot.image, base, at.snapshot.files), at.snapshot
        )
        with self._ending(ready) as ending:
            agent = self._agent(ready.sandbox)
            agent.go_on_from(at.agent)
            origin = at.snapshot, ready.origin
            yield ending(
                SWEBenchEpisode(instance, ready.sandbox, agent, self._shared(), at.prefix, at.responses, *origin)
            )

    @contextmanager
    def _ending(self, ready: Ready) -> Iterator[Callable[[SWEBenchEpisode], SWEBenchEpisode]]:
        """Takes care of the container when the episode, which it is told of, has ended."""
        made: list[SWEBenchEpisode] = []

        def tell(episode: SWEBenchEpisode) -> SWEBenchEpisode:
            made.append(episode)
            return episode

        try:
            yield tell
        finally:
            standing = made[0].standing if made else None
            if standing is not None:
                self._warm.leave(standing, ready)
            else:
                self._engine.aside(ready.sandbox.close)

    @contextmanager
    def _replayed(
        self, instance: Instance, responses: tuple[Response, ...], expected: Prefix
    ) -> Iterator[SWEBenchEpisode]:
        with self._fresh(instance) as episode:
            if not all(episode.advance(response) for response in responses):
                raise Technical("replay diverged: the agent halts where it went on before")
            if episode.prefix().canonical != expected.canonical:
                raise Technical("replay diverged: the observations are not those of the first time")
            yield episode

    def _agent(self, sandbox: Sandbox) -> StepwiseAgent:
        from stepdown.harnesses.swebench.agent import StepwiseAgent

        shown = volatile.without_durations if self._options.normalize == "durations" else str
        return StepwiseAgent(sandbox, self._config, self._options.step_limit, shown)

    def _sandbox(self, image: str, base: str, since: disk.ContainerFiles | None = None) -> Sandbox:
        config = self._config
        return self.sandbox_class(
            self._engine, image, base, self._options.limits, config.cwd, {**config.environment, **FIXED}, since
        )

    def _prepare(self, snapshot: Snapshot, base: str) -> None:
        self._warm.prepare(snapshot, partial(self._sandbox, snapshot.image, base, snapshot.files))

    # What episodes share

    def _shared(self) -> Any:
        from stepdown.harnesses.swebench.episode import Shared

        return Shared(
            judge=self._judge(),
            snapshots=self._snapshots,
            checkpoints=self._options.checkpoints,
            verify_grading=self._options.verify_grading,
            outside=lambda image: self._outside.get(image, b""),
            check_daemon=self._engine.check,
            on_running=self._note_running,
            prepare=self._prepare,
            replayed=self._replayed,
        )

    def _judge(self) -> grading.Grader:
        with self._guard:
            if self._grader is None:
                options = self._options
                self._grader = grading.Grader(
                    self._files(),
                    self._engine,
                    options.grading_limits,
                    options.grading_seconds,
                    infrastructure=options.infrastructure,
                )
            return self._grader

    def _files(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="stepdown-swebench-"))
        return self._folder

    def _note_running(self, instance: Instance, step: int, processes: tuple[str, ...]) -> None:
        note = {"instance": instance.id, "after_step": step, "processes": processes}
        with self._guard:
            folder = self._files()
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "running_processes.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(note) + "\n")
