"""The user's file of tasks: what a program is asked, the files it finds, and how what it leaves is graded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from stepdown.builder.actions.forms import tool_call
from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Instance, Response, clean_text
from stepdown.harnesses.agent.grading import Grader, WorkspaceFiles
from stepdown.harnesses.agent.limits import Limits
from stepdown.harnesses.selection import taken
from stepdown.harnesses.task_file import Ids, TaskFileSource, check_id, lines_of


def _said(value: str) -> str:
    if not value.strip() or "\0" in value:
        raise ValueError("must not be blank, nor hold NUL")
    return clean_text(value)


def _listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else [value]


class ReferenceCall(Strict):
    """A tool call of an accepted answer."""

    name: str = Field(min_length=1)
    arguments: dict[str, Any] = Field(default_factory=dict)


class ReferenceStep(Strict):
    """One answer of the pseudo-model `reference`."""

    content: str = ""
    tool_calls: tuple[ReferenceCall, ...] = ()

    def response(self) -> Response:
        """It as a response. Raises ValueError for calls that no model could make."""
        calls = tuple(tool_call(call.name, call.arguments) for call in self.tool_calls)
        if not self.content.strip() and not calls:
            raise ValueError("a step without words or calls")
        return Response(clean_text(self.content), calls)


class TaskLimits(Strict):
    """Bounds that a task sets otherwise than the workload's options."""

    steps: int | None = Field(None, ge=1)
    seconds: float | None = Field(None, gt=0)


class TaskLine(WorkspaceFiles):
    """One line of the file. `files` and `folder` are the workspace."""

    id: str
    prompt: Annotated[str, AfterValidator(_said)]
    """What the program is asked: `{prompt}` of its command."""
    grader: Annotated[tuple[Grader, ...], BeforeValidator(_listed), Field(min_length=1)]
    """How the workspace is graded once the program has ended: one grader, or a list of which all must pass."""
    limits: TaskLimits = TaskLimits()
    reference: tuple[ReferenceStep, ...] = ()
    """The answers of the pseudo-model `reference`, step by step."""
    group: str | None = None
    """What an honest evaluation holds out together with this task."""

    def bounds(self, limits: Limits) -> Limits:
        """The workload's bounds with the task's own in their place."""
        return limits.model_copy(update=self.limits.model_dump(exclude_none=True))


class AgentSource(TaskFileSource):
    """The `source` of a workload of agent programs."""

    assets: Path | None = None
    """The folder with what the program and the tasks name: the program, workspaces, graders."""
    assets_sha256: str | None = None
    """SHA-256 digest of `assets`. A run fills it in."""

    def find(self, name: Path) -> Path:
        """Where a file or folder lies that is named from the assets. Raises ValueError where there is none."""
        if self.assets is None:
            raise ValueError(f"{str(name)!r} is looked for in `source.assets`, and the config names no such folder")
        if not self.assets.is_dir():
            raise ValueError(f"`source.assets`: there is no folder {str(self.assets)!r} beside the config")
        if not (self.assets / name).exists():
            raise ValueError(f"there is no {str(name)!r} in the folder {self.assets.name!r}")
        return self.assets / name


def select(benchmark: str, source: Mapping[str, Any], program: Path | None, judged: bool) -> Iterator[Instance]:
    """The tasks of `source: {file, take, assets}`. `program` is the option, which lies in the assets; `judged` says
    whether there may be graders that ask the judge.

    Raises BadInput that names line and field.
    """
    wanted = validated(AgentSource, dict(source), field="source")
    try:
        if program is not None:
            wanted.find(program)
    except ValueError as error:
        raise BadInput(f"the option `program`: {error}") from None
    lines = list(_read(wanted, judged))
    ids = taken([line.id for line in lines], wanted.take, "source.take")
    for line in lines:
        if line.id in ids:
            data = {**line.model_dump(mode="json"), "assets": str(wanted.assets or "")}
            yield Instance(benchmark, line.id, data, group=line.group or line.id)


def task_of(instance: Instance) -> tuple[TaskLine, Path]:
    """The task of an instance that `select` made, and the folder of the assets."""
    data = dict(instance.task)
    folder = Path(data.pop("assets"))
    return TaskLine.model_validate(data), folder


def _read(source: AgentSource, judged: bool) -> Iterator[TaskLine]:
    file = source.file
    ids = Ids(file, "id")
    for number, value in lines_of(file):
        line = validated(TaskLine, value, file=file, line=number)
        ids.add(line.id, number)
        if line.group is not None:
            check_id(line.group, file, number, "group")
        _check(line, source, number, judged)
        yield line


def _check(line: TaskLine, source: AgentSource, number: int, judged: bool) -> None:
    """Raises BadInput for what no field alone shows to be wrong."""
    file = source.file
    folders = {"folder": line.folder}
    copies = {f"copies.{name}": source_of for name, source_of in line.copies.items()}
    for place, grader in enumerate(line.grader):
        folders[f"grader.{place}.folder"] = getattr(grader, "folder", None)
        copies |= {f"grader.{place}.copies.{name}": each for name, each in getattr(grader, "copies", {}).items()}
        if hasattr(grader, "judge") and not judged:
            problem = "set the option `judged: true` of the workload, and name the judge's models in `protocol.judge`"
            raise BadInput(problem, file=file, line=number, field=f"grader.{place}.judge")
    for field, folder in folders.items():
        try:
            if folder is not None and not source.find(folder).is_dir():
                raise ValueError("must be a folder")
        except ValueError as error:
            raise BadInput(str(error), file=file, line=number, field=field) from None
    for field, copy in copies.items():
        try:
            if not source.find(copy).is_file():
                raise ValueError("must be a file")
        except ValueError as error:
            raise BadInput(str(error), file=file, line=number, field=field) from None
    for place, step in enumerate(line.reference):
        try:
            step.response()
        except ValueError as error:
            raise BadInput(str(error), file=file, line=number, field=f"reference.{place}") from None
