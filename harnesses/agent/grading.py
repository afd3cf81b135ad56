"""What came of a program's work: graders as a task names them, and what they say.

A grader is a shell command in the workspace (its exit code, or scores as JSON), a Python function, or the judge. Of
several all must pass. The workspace is hostile: graders run under the program's own bounds and without keys.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from stepdown.builder.config.validation import Strict
from stepdown.builder.errors import Technical
from stepdown.builder.records import Ruling, Verdict
from stepdown.harnesses.agent import python_grader
from stepdown.harnesses.agent.limits import Limits
from stepdown.harnesses.agent.process import run_to_end
from stepdown.harnesses.agent.program import Content, ProgramSandbox
from stepdown.harnesses.agent.workspace import unsafe

_NOT_RUN = (126, 127)
"""Exit codes of a shell that found no program to run."""


class WorkspaceFiles(Strict):
    """Files by name, and a folder of the user's assets."""

    files: dict[str, str] = Field(default_factory=dict)
    """Files by their paths."""
    folder: Path | None = None
    """A folder of the source's `assets` whose content is put there first."""
    copies: dict[str, Path] = Field(default_factory=dict)
    """Files of the source's `assets`, by the paths at which copies of them are put."""

    @field_validator("files", "copies")
    @classmethod
    def _inside(cls, files: dict[str, Any]) -> dict[str, Any]:
        if wrong := next((name for name in files if unsafe(name)), None):
            raise ValueError(f"{wrong!r} is no path of a file below the folder")
        return files

    def content(self, folder: Path) -> Content:
        """Them, found from this folder."""
        copies = {name: folder / source for name, source in self.copies.items()}
        return Content(folder / self.folder if self.folder else None, self.files, copies)


class CommandGrader(WorkspaceFiles):
    """A shell command in the workspace, once the program has ended."""

    command: str = Field(min_length=1)
    """Run by `sh -c`. `{grader}` is a folder with `files` and `folder`, which the program never saw; `{transcript}` a
    JSON file of the messages; `{python}` a Python."""
    threshold: float | None = None
    """The least mean of the scores that it prints, `{"scores": {NAME: NUMBER}}` or `{"score": NUMBER}`. Without one its
    exit code decides."""
    seconds: float = Field(120, gt=0)


class PythonGrader(Strict):
    """A function of the user's, called as `function(workspace, transcript)`."""

    python: str = Field(pattern=r"^[\w.]+:\w+$")
    """`module:function`, found in the source's `assets`. It gives True or False, a score, or scores by name. Its code
    runs in a process of its own."""
    threshold: float = 1.0
    """The least score, or mean of scores, that passes."""
    seconds: float = Field(120, gt=0)


class JudgeRule(Strict):
    """What the judge is shown."""

    answer: str | None = None
    """The file of the workspace that is the answer; by default the program's last answer by a model."""
    made: bool = False
    """Whether the answer is all text files that the program made or changed; where there are none, its last answer."""
    evidence: tuple[str, ...] = ()
    """Files of the workspace, as the task gave them, that the answer must rest on; by default the task alone."""
    references: tuple[str, ...] = ()
    """What a complete answer covers."""
    note: str = ""
    """What the judge is told of such answers."""

    @model_validator(mode="after")
    def _one_answer(self) -> JudgeRule:
        if self.made and self.answer is not None:
            raise ValueError("`made` and `answer` do not go together")
        return self


class JudgeGrader(Strict):
    """The config's judge."""

    judge: JudgeRule


def _kind(value: Any) -> str:
    if isinstance(value, Strict):
        return {CommandGrader: "command", PythonGrader: "python", JudgeGrader: "judge"}[type(value)]
    known = [name for name in ("command", "python", "judge") if isinstance(value, Mapping) and name in value]
    return known[0] if len(known) == 1 else "command"


Grader = Annotated[
    Annotated[CommandGrader, Tag("command")]
    | Annotated[PythonGrader, Tag("python")]
    | Annotated[JudgeGrader, Tag("judge")],
    Discriminator(_kind),
]
"""One grader, by which of `command`, `python` and `judge` it has."""


class Graded(Strict):
    """What one grader said."""

    passed: bool
    reason: str = ""
    scores: dict[str, float] = Field(default_factory=dict)


def graded_by_command(grader: CommandGrader, sandbox: ProgramSandbox, folder: Path, transcript: str) -> Graded:
    """Run a command grader. Raises Technical where it can not be run."""
    ended = sandbox.grade(grader.command, grader.content(folder), transcript, grader.seconds)
    if ended.code in _NOT_RUN:
        raise Technical(f"the grader can not be run: {ended.told()}")
    if grader.threshold is None:
        return Graded(passed=ended.code == 0, reason="" if ended.code == 0 else f"the grader: {ended.told()}")
    scores = scores_in(ended.output)
    if scores is None:
        return Graded(passed=False, reason=f"the grader gave no scores: {ended.told()}")
    return graded_by_scores(scores, grader.threshold)


def graded_by_python(
    grader: PythonGrader, sandbox: ProgramSandbox, folder: Path, transcript: str, limits: Limits
) -> Graded:
    """Run a function in a process of its own. Raises Technical where it can not be called, or gives no result."""
    with sandbox.copied_out() as workspace, tempfile.TemporaryDirectory(prefix="stepdown-grader-") as own:
        order = Path(own) / "order.json"
        order.write_text(json.dumps([str(folder), grader.python, str(workspace), transcript]), encoding="utf-8")
        words = [sys.executable, "-I", python_grader.__file__, str(order)]
        ended = run_to_end(words, {"LANG": "C.UTF-8"}, workspace, limits, grader.seconds)
    if ended.code is None:
        return Graded(passed=False, reason=f"the grader: {ended.told()}")
    told = _last_json(ended.output)
    if ended.code != 0 or not isinstance(told, dict) or "result" not in told:
        raise Technical(f"the grader {grader.python} can not be called: {ended.told()}")
    result = told["result"]
    if isinstance(result, bool):
        return Graded(passed=result, reason="" if result else f"{grader.python} says no")
    scores = result if isinstance(result, dict) else {"score": result}
    return graded_by_scores({name: float(score) for name, score in scores.items()}, grader.threshold)


def graded_by_scores(scores: Mapping[str, float], threshold: float) -> Graded:
    """Whether the mean of scores is high enough."""
    mean = sum(scores.values()) / len(scores)
    low = ", ".join(f"{name} {score:g}" for name, score in scores.items() if score < threshold)
    reason = "" if mean >= threshold else f"a score of {mean:.3g}, where {threshold:g} is needed: {low}"
    return Graded(passed=mean >= threshold, reason=reason, scores=dict(scores))


def scores_in(output: bytes) -> dict[str, float] | None:
    """The scores that a grader printed, as its last line or as all that it printed; None where there are none.

    >>> scores_in(b'checking\\n{"scores": {"a": 1, "b": 0.5}}')
    {'a': 1.0, 'b': 0.5}
    """
    told = _last_json(output)
    if not isinstance(told, dict):
        return None
    scores = told.get("scores", {"score": told["score"]} if "score" in told else None)
    if not isinstance(scores, dict) or not scores:
        return None
    numbers = {str(name): score for name, score in scores.items() if type(score) in (int, float, bool)}
    return {name: float(score) for name, score in numbers.items()} if len(numbers) == len(scores) else None


def ruled(graded: Mapping[str, Graded]) -> Ruling:
    """The ruling on what rule graders said: all of them must pass."""
    grading = {"graders": {name: one.model_dump(exclude_defaults=True) for name, one in graded.items()}}
    failed = next((one for one in graded.values() if not one.passed), None)
    return Ruling(Verdict.PASS if failed is None else Verdict.FAIL, failed.reason if failed else "", grading)


def _last_json(output: bytes) -> Any:
    text = output.decode(errors="replace").strip()
    for part in (text, text.rpartition("\n")[2]):
        try:
            value = json.loads(part, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None
