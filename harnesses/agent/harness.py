"""The harness of agent programs: `harness: agent` in a config."""

from __future__ import annotations

import re
import shlex
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.errors import RunStopped, StepdownError
from stepdown.builder.records import Instance, Mask, Prefix, Response, Sample, digest
from stepdown.harnesses.agent import volatile
from stepdown.harnesses.agent.address import EpisodeServers, ProgramAddress
from stepdown.harnesses.agent.aliases import Aliases
from stepdown.harnesses.agent.clock import Moment, clocked
from stepdown.harnesses.agent.episode import AgentEpisode
from stepdown.harnesses.agent.exchange import Exchange
from stepdown.harnesses.agent.limits import Limits
from stepdown.harnesses.agent.presets import Pinned, preset_of, with_preset
from stepdown.harnesses.agent.process import ProcessSandboxMaker
from stepdown.harnesses.agent.program import Content, Ended, ProgramSandbox, SandboxMaker
from stepdown.harnesses.agent.side_calls import SideCalls
from stepdown.harnesses.agent.tasks import TaskLine, select, task_of
from stepdown.harnesses.base import Checkpoint, Harness, Need, NodeNeeds
from stepdown.harnesses.containers import images
from stepdown.harnesses.containers.engine import DOCKER, Engine, described, reaching

VERSION = "1"
"""Raised with every change of this package that can change a prefix, an observation or a verdict."""
_PLACE = re.compile(r"\{(\w+)\}")
_ASK_SECONDS = 120.0
"""For a program to say its version, on a machine that is busy."""
SPELT_URL, SPELT_KEY = "http://stepdown.invalid/v1", "stepdown-key"
"""How models and rows see an episode's address and key, which are its own."""


def _words(value: Any) -> Any:
    return shlex.split(value) if isinstance(value, str) else value


def _plain_name(value: str) -> str:
    if "/" in value or not value.isprintable():
        raise ValueError("must be printable, without a slash")
    return value


class Options(Strict):
    """The harness's options."""

    preset: str | None = None
    """A program that many people run, in a pinned version, such as `opencode`. It stands for options; those that are
    given beside it come first."""
    command: Annotated[tuple[str, ...], BeforeValidator(_words), Field(min_length=1)]
    """The program, as a shell's words or a list; no shell runs it. It may hold `{prompt}`, `{prompt_file}`,
    `{workspace}`, `{home}`, `{base_url}`, `{model}`, `{key}`, `{program}` and `{python}`."""
    program: Path | None = None
    """A file or folder with the program, in the source's `assets`. `{program}` is the folder of a copy."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables of the program; values may hold what `command` may. OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL
    are set already, and nothing of stepdown's own environment is handed on."""
    files: dict[str, str] = Field(default_factory=dict)
    """Files that the program finds in its workspace beside the task's, such as its config; texts may hold what
    `command` may."""
    home_files: dict[str, str] = Field(default_factory=dict)
    """The same in its home."""
    sandbox: Literal["docker", "process"]
    """Where it runs: `docker`, in a container without network in which only its address is there, or `process`, on this
    machine, for a program and models that you trust with it."""
    image: str | None = Field(None, min_length=1)
    """The image of its container. Goes with `sandbox: docker`."""
    model: str = Field("stepdown", min_length=1)
    """The name of the model that the program is told."""
    side_calls: SideCalls | None = None
    """Which requests are no steps, and what answers them. Without it every request is a step."""
    limits: Limits = Limits()
    """What the program and its graders may take."""
    clock: Moment | None = None
    """The date and time, in UTC, at which each episode begins, such as '2026-01-15 09:00:00': for tasks that speak of
    today. Needs `faketime` where the program runs."""
    masks: tuple[str, ...] = ()
    """Shapes of volatile text that are masked even where two plays of a seed, both in one minute, do not differ."""
    judged: bool = False
    """Whether tasks may have graders that ask the judge, which the config must then name."""
    name: Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_plain_name)] = "agent"
    """What ids of rows begin with: programs in one config need names of their own."""

    @model_validator(mode="before")
    @classmethod
    def _on_preset(cls, options: Any) -> Any:
        return with_preset(options)

    @field_validator("masks")
    @classmethod
    def _known_shapes(cls, masks: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := next((name for name in masks if name not in volatile.SHAPES), None):
            raise ValueError(f"no shape {unknown!r}; there are {', '.join(volatile.SHAPES)}")
        return masks

    @property
    def pinned(self) -> Pinned | None:
        """The program of the preset."""
        return preset_of(self.preset).program if self.preset is not None else None

    @model_validator(mode="after")
    def _image_where_needed(self) -> Options:
        if (self.image is None) == (self.sandbox == "docker"):
            raise ValueError("`image` goes with `sandbox: docker`")
        return self


class AgentHarness(Harness):
    """Tasks worked at by somebody's own agent program."""

    name = "agent"
    early_verdicts = False
    finds_volatile = True
    options: ClassVar[type[Options]] = Options
    """What it is configured by."""

    def __init__(self, **options: Any) -> None:
        """Raises BadInput for an unknown or wrong option."""
        self._options = validated(self.options, options, field="options")
        self.name = self._options.name
        self.needs_judge = self._options.judged
        rule = self._options.side_calls
        self.side_models = (rule.model,) if rule is not None and rule.model is not None else ()
        pinned = self._options.pinned
        program = pinned.model_dump(mode="json") if pinned is not None else None
        parts = [self._options.model_dump(mode="json"), program, volatile.VERSION, SPELT_URL, SPELT_KEY]
        self.version = f"{VERSION}+{digest(parts)[:12]}"
        if self._options.sandbox == "process":
            self.runs_here = shlex.join(self._options.command)
        self._address = EpisodeServers()
        self._engine = Engine()
        self._checking = threading.Lock()
        self._is_checked = pinned is None

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        """The tasks of `source: {file, take, assets}`. Raises BadInput."""
        yield from select(self.name, source, self._options.program, self._options.judged)

    def node_needs(self, source: Mapping[str, Any]) -> NodeNeeds:
        """Docker with the one image, where it runs in containers."""
        image = self._options.image
        return NodeNeeds() if image is None else NodeNeeds(DOCKER, (image,))

    def prepare_node(self, needs: NodeNeeds, archives: Path | None = None) -> Iterator[Need]:
        """Docker with the image that holds the program; else the program itself."""
        is_ready = True
        if needs.images:
            for need in images.fetched(needs, archives):
                is_ready &= need.there
                yield need
        if is_ready:
            yield from self._program()

    def needs(self, source: Mapping[str, Any]) -> Iterator[Need]:
        """Docker and the image, where it runs in containers; else the program."""
        image, pinned = self._options.image, self._options.pinned
        if image is None:
            yield from self._program()
            return
        try:
            yield Need("docker", True, described())
            with reaching():
                here = images.is_here(self._engine.client, image)
        except StepdownError as error:
            yield Need("docker", False, str(error))
            return
        holds = f" (it must hold {pinned.name} {pinned.version}: {pinned.install})" if pinned is not None else ""
        told = image if here else f"{image} is not here, and will be pulled"
        yield Need("image", here, told + holds, needed=False)

    def _program(self) -> Iterator[Need]:
        """The program where it would run: in the version of its preset, or on the path."""
        pinned, command = self._options.pinned, self._options.command[0]
        if pinned is not None:
            with self._maker(self._options.limits).open(Content(), None) as sandbox:
                problem = pinned.problem(_asked(pinned, sandbox))
            yield Need("program", problem is None, problem or f"{pinned.name} {pinned.version}")
        elif self._options.image is None:
            there = "{" in command or shutil.which(command) is not None
            yield Need("program", there, command if there else f"there is no {command!r} on the path")

    @contextmanager
    def open(self, instance: Instance, at: Checkpoint | None = None) -> Iterator[AgentEpisode]:
        """A fresh workspace with the program at work in it. There are no checkpoints."""
        task, folder = task_of(instance)
        options, limits = self._options, task.bounds(self._options.limits)
        program = folder / options.program if options.program is not None else None
        exchange = Exchange(self._is_side)
        maker = self._maker(limits)
        with (
            maker.open(task.content(folder), program) as sandbox,
            self._address.open(exchange, options.model, sandbox.listen()) as place,
        ):
            self._check_program(sandbox)
            aliases = Aliases({**sandbox.names.aliases, place.url: SPELT_URL, place.key: SPELT_KEY})
            places = _places(task, sandbox, place)
            sandbox.put(sandbox.names.home, {".stepdown-prompt": task.prompt} | _filled_all(options.home_files, places))
            sandbox.put(sandbox.names.workspace, _filled_all(options.files, places))
            command = clocked(options.clock, [_filled(word, places) for word in options.command])
            environment = _environment(sandbox, place) | _filled_all(options.environment, places)
            episode = AgentEpisode(
                task,
                folder,
                sandbox,
                exchange,
                aliases,
                limits,
                options.side_calls,
                start=lambda: sandbox.start(command, environment, exchange.end),
            )
            try:
                yield episode
            finally:
                exchange.end()
                episode.close()

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        """The pseudo-model `reference`: the task's own answers, step by step."""
        task, _ = task_of(instance)
        made = sum(message["role"] == "assistant" for message in prefix.messages)
        if name != "reference" or made >= len(task.reference):
            return None
        response: Response = task.reference[made].response()
        return response

    def shapes_between(self, recorded: Prefix, replayed: Prefix) -> frozenset[str] | None:
        """The shapes of volatile text that explain what differs between two plays of the same answers."""
        return volatile.shapes_between(recorded, replayed)

    def mask_of(self, shapes: tuple[str, ...]) -> Mask | None:
        """The mask of the shapes that were found in an instance's seed."""
        return volatile.mask_of({*shapes, *self._options.masks})

    def _check_program(self, sandbox: ProgramSandbox) -> None:
        """Look once at the version of a preset's program: labels of another one would be another program's.

        Raises RunStopped.
        """
        pinned = self._options.pinned
        with self._checking:
            if self._is_checked or pinned is None:
                return
            if problem := pinned.problem(_asked(pinned, sandbox)):
                raise RunStopped(problem)
            self._is_checked = True

    def _is_side(self, request: Any) -> bool:
        rule = self._options.side_calls
        return rule is not None and rule.has(request, self._options.model)

    def _maker(self, limits: Limits) -> SandboxMaker:
        if self._options.image is None:
            return ProcessSandboxMaker(limits)
        from stepdown.harnesses.agent.container import DockerSandboxMaker

        return DockerSandboxMaker(self._engine, self._options.image, limits)


def _asked(pinned: Pinned, sandbox: ProgramSandbox) -> Ended:
    """What a program says of its version. A grader's place is one where nothing else runs."""
    return sandbox.grade(pinned.ask, Content(), "[]", _ASK_SECONDS)


def _places(task: TaskLine, sandbox: ProgramSandbox, place: ProgramAddress) -> dict[str, str]:
    """What stands for what in commands, variables and files."""
    names = sandbox.names
    return {
        "prompt": task.prompt,
        "prompt_file": f"{names.home}/.stepdown-prompt",
        "workspace": names.workspace,
        "home": names.home,
        "base_url": place.url,
        "model": place.model,
        "key": place.key,
        "program": names.program,
        "python": names.python,
    }


def _filled(text: str, places: Mapping[str, str]) -> str:
    """The text with each of the places put in, once: what is put in is not looked at again.

    >>> _filled('run {prompt} {"a": {other}}', {"prompt": "{key}", "key": "k"})
    'run {key} {"a": {other}}'
    """
    return _PLACE.sub(lambda found: places.get(found[1], found[0]), text)


def _filled_all(texts: Mapping[str, str], places: Mapping[str, str]) -> dict[str, str]:
    return {name: _filled(text, places) for name, text in texts.items()}


def _environment(sandbox: ProgramSandbox, place: ProgramAddress) -> dict[str, str]:
    """What every program is given: its address, and what makes two plays alike."""
    home = sandbox.names.home
    return {
        "OPENAI_BASE_URL": place.url,
        "OPENAI_API_KEY": place.key,
        "OPENAI_MODEL": place.model,
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "XDG_STATE_HOME": f"{home}/.local/state",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "NO_COLOR": "1",
    }
