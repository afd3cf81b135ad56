"""PinchBench on top of `harness: agent`: its pages become that harness's tasks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, Field

from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Instance, clean_text
from stepdown.harnesses.agent.clock import clocked
from stepdown.harnesses.agent.grading import CommandGrader, Grader, JudgeGrader, JudgeRule
from stepdown.harnesses.agent.harness import AgentHarness, Options
from stepdown.harnesses.agent.tasks import TaskLine
from stepdown.harnesses.base import Need, Terms
from stepdown.harnesses.pinchbench import grade
from stepdown.harnesses.pinchbench.pages import Copied, Page, Written, pages_of
from stepdown.harnesses.selection import Take, taken
from stepdown.harnesses.task_file import check_id

VERSION = "1"
"""Raised with every change of this package that can change a prefix, an observation or a verdict."""
_COMMAND = "{python} -I {grader}/grade.py {grader}/grader.py {transcript} {workspace}"
_LONGEST_EVIDENCE = 100_000


class PinchBenchSource(Strict):
    """The `source` of the workload."""

    assets: Path
    """The checkout of pinchbench/skill. A run keeps a copy."""
    assets_sha256: str | None = None
    """SHA-256 digest of `assets`. A run fills it in."""
    take: Take = "all"
    """The first n tasks, `all`, or a list of ids."""


class PinchBenchOptions(Options):
    """Those of `harness: agent`, with another name by default, and a threshold."""

    threshold: float = Field(0.8, gt=0, le=1)
    """The least grade that passes, of 1. A judge's pass counts 1 and its fail 0, by the task's weights."""
    name: Annotated[str, AfterValidator(clean_text)] = "pinchbench"


class PinchBench(AgentHarness):
    """PinchBench's tasks, worked at by an agent program."""

    name = "pinchbench"
    options = PinchBenchOptions
    terms = Terms("MIT", "Messages quote prompts and files of PinchBench's tasks, which are MIT.")
    known_limits = (
        "The published tasks that need the network or make images are left out, and so are those of several sessions.",
    )
    expected_labels = (41, 3, 3, 1)

    def __init__(self, **options: Any) -> None:
        """Raises BadInput for an unknown or wrong option."""
        super().__init__(**options)
        self._threshold = validated(PinchBenchOptions, options, field="options").threshold
        self.version = f"{VERSION}.{self.version}"

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        """The pages of `source: {assets, take}`. Raises BadInput."""
        wanted = validated(PinchBenchSource, dict(source), field="source")
        pages: dict[str, Page] = {}
        for page in pages_of(wanted.assets):
            check_id(page.head.id, page.file, None, "id")
            if page.head.id in pages:
                raise BadInput(f"{pages[page.head.id].file.name} has {page.head.id!r} already", file=page.file)
            pages[page.head.id] = page
        ids = taken(list(pages), wanted.take, "source.take")
        for name, page in pages.items():
            if name in ids:
                task = self._task(page, wanted.assets)
                data = {**task.model_dump(mode="json"), "assets": str(wanted.assets)}
                yield Instance(self.name, name, data, dropped=self._unsuited(page, task), group=name)

    def needs(self, source: Mapping[str, Any]) -> Iterator[Need]:
        """The checkout, and what the program needs."""
        try:
            found = list(self.instances(source))
            left_out = sum(instance.dropped is not None for instance in found)
            yield Need("tasks", True, f"{len(found)}, of which {left_out} are dropped")
        except BadInput as error:
            yield Need("tasks", False, str(error))
        yield from super().needs(source)

    def _unsuited(self, page: Page, task: TaskLine) -> str | None:
        """Why a task can not be labelled here; None where it can."""
        if known := unsuited(self._options.clock is not None).get(page.head.id):
            return known
        if page.head.multi_session or len(page.head.sessions) > 1:
            return "it goes over several sessions of the program"
        if page.criteria and not self._options.judged:
            return "a judge grades it, and the option `judged` is not set"
        if any(isinstance(grader, JudgeGrader) and not grader.judge.evidence for grader in task.grader):
            return "the judge goes by evidence, and there is no text file in its workspace"
        return None

    def _task(self, page: Page, checkout: Path) -> TaskLine:
        files = {file.path: file.content for file in page.head.workspace_files if isinstance(file, Written)}
        copied = [file for file in page.head.workspace_files if isinstance(file, Copied)]
        copies = {file.dest: Path("assets") / file.source for file in copied}
        for source in copies.values():
            if not _is_inside(checkout, source):
                raise BadInput(f"there is no {str(source)!r} in the checkout", file=page.file, field="workspace_files")
        readable = [*files, *(name for name, source in copies.items() if _is_text(checkout / source))]
        fields = {"id": page.head.id, "prompt": page.prompt, "files": files, "copies": copies}
        graders = self._graders(page, readable)
        return validated(TaskLine, {**fields, "grader": graders}, file=page.file)

    def _graders(self, page: Page, readable: list[str]) -> tuple[Grader, ...]:
        """The page's grader and the judge: both must pass, and the grader by so much that the whole grade is enough."""
        threshold, weights = self._threshold, page.head.grading_weights
        graders: list[Grader] = []
        if page.grader:
            if page.criteria:
                whole = weights.automated + weights.llm_judge or 1.0
                share = weights.automated / whole
                threshold = max(0.0, (threshold - (1.0 - share)) / share) if share else 0.0
            files = {"grade.py": Path(grade.__file__).read_text(encoding="utf-8"), "grader.py": page.grader}
            clock = shlex.join(clocked(self._options.clock, []))
            command = f"{clock} {_COMMAND}" if clock else _COMMAND
            graders.append(CommandGrader(command=command, threshold=round(threshold, 9), files=files))
        if page.criteria:
            expected = (f"What is expected: {page.expected}",) if page.expected else ()
            rule = JudgeRule(made=True, evidence=tuple(readable), references=(*expected, *page.criteria))
            graders.append(JudgeGrader(judge=rule))
        return tuple(graders)


@cache
def unsuited(has_clock: bool) -> Mapping[str, str]:
    """Published tasks that can not be labelled here, with the reason."""
    listed = yaml.safe_load((Path(__file__).parent / "unsuited.yaml").read_text(encoding="utf-8"))
    found: dict[str, str] = listed["always"] if has_clock else listed["always"] | listed["without_clock"]
    return found


def _is_inside(checkout: Path, name: Path) -> bool:
    path = checkout / name
    return path.is_file() and path.resolve().is_relative_to(checkout.resolve())


def _is_text(path: Path) -> bool:
    """Whether a judge can be shown the file."""
    data = path.read_bytes()
    if len(data) > _LONGEST_EVIDENCE or b"\0" in data:
        return False
    try:
        return bool(data.decode("utf-8").strip())
    except UnicodeDecodeError:
        return False
