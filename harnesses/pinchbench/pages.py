"""A task's page: Markdown with YAML before it, and sections for the prompt, the grader and the judge's rubric."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field

from stepdown.builder.config.validation import Strict, read_text, validated, yaml_value
from stepdown.builder.errors import BadInput
from stepdown.harnesses.task_file import UpstreamRecord

_HEAD = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*\n", re.DOTALL)
_HEADING = re.compile(r"^##[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_CODE = re.compile(r"```python\s*\n(.*?)\n\s*```", re.DOTALL)
_CRITERION = re.compile(r"^###[ \t]+", re.MULTILINE)
_CHECK = re.compile(r"^[ \t]*-[ \t]+\[[ xX]\][ \t]+(.+)$", re.MULTILINE)


class Written(Strict):
    """A file of the workspace whose text stands in the page."""

    path: str
    content: str


class Copied(Strict):
    """A file of the workspace that lies in the checkout's `assets`."""

    source: str
    dest: str


class GradeWeights(UpstreamRecord):
    """What the two parts of a hybrid grade count."""

    automated: float = Field(0.5, ge=0)
    llm_judge: float = Field(0.5, ge=0)


class PageHead(UpstreamRecord):
    """What stands before the page."""

    id: str = Field(min_length=1)
    category: str = ""
    grading_type: Literal["automated", "llm_judge", "hybrid"] = "automated"
    workspace_files: tuple[Annotated[Written | Copied, Field(union_mode="smart")], ...] = ()
    grading_weights: GradeWeights = GradeWeights()
    multi_session: bool = False
    sessions: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """One task."""

    file: Path
    head: PageHead
    prompt: str
    expected: str
    """What an agent should do, in words."""
    grader: str
    """Python code with a function `grade`; empty where a judge alone decides."""
    criteria: tuple[str, ...]
    """What the judge goes by, one criterion each."""


def pages_of(checkout: Path) -> Iterator[Page]:
    """The pages of a checkout, by their files' names. Raises BadInput."""
    files = sorted((checkout / "tasks").glob("task_*.md"))
    if not files:
        raise BadInput(f"there is no tasks/task_*.md in {checkout.name!r}: is it a checkout of pinchbench/skill?")
    for file in files:
        yield read_page(file)


def read_page(file: Path) -> Page:
    """Read a page. Raises BadInput, naming file and field."""
    text = read_text(file)
    head, sections = _head(text, file), _sections(text)
    prompt = sections.get("Prompt", "")
    if not prompt.strip():
        raise BadInput("there is no section `## Prompt` with words in it", file=file)
    grader = ""
    if head.grading_type != "llm_judge":
        grader = _grader(sections.get("Automated Checks", ""), file)
    criteria: tuple[str, ...] = ()
    if head.grading_type != "automated":
        criteria = tuple(_criteria(sections))
        if not criteria:
            raise BadInput("a judged task needs a section `## LLM Judge Rubric` or `## Grading Criteria`", file=file)
    return Page(file, head, prompt, sections.get("Expected Behavior", ""), grader, criteria)


def _head(text: str, file: Path) -> PageHead:
    found = _HEAD.match(text)
    if found is None:
        raise BadInput("no YAML between two lines of --- at its start", file=file, line=1)
    try:
        data = yaml_value(found[1])
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise BadInput(problem, file=file, line=mark.line + 2 if mark else None) from None
    return validated(PageHead, data, file=file)


def _sections(text: str) -> Mapping[str, str]:
    """The page's sections by their headings."""
    body = _HEAD.sub("", text)
    parts = _HEADING.split(body)
    return {title: words.strip() for title, words in zip(parts[1::2], parts[2::2], strict=True)}


def _grader(section: str, file: Path) -> str:
    found = _CODE.search(section)
    if found is None:
        raise BadInput("an automated task needs a ```python block in `## Automated Checks`", file=file)
    try:
        compile(found[1], file.name, "exec")
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"its grader is no Python: {getattr(error, 'msg', error)}", file=file) from None
    return found[1] + "\n"


def _criteria(sections: Mapping[str, str]) -> Iterator[str]:
    """The rubric's criteria with their levels; where there is no rubric, the list of what is checked."""
    rubric = sections.get("LLM Judge Rubric", "").strip()
    if not rubric:
        yield from _CHECK.findall(sections.get("Grading Criteria", ""))
        return
    parts = [part.strip() for part in _CRITERION.split(rubric)]
    yield from (part for part in parts if part)
