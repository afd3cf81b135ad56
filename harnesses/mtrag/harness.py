"""The harness of the mtRAG workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepdown.builder.config.validation import Strict, read_text, validated
from stepdown.builder.records import Instance, Message, Prefix, Response, Sample, digest
from stepdown.harnesses.base import Checkpoint, Episode, Harness, Terms
from stepdown.harnesses.mtrag.tasks import Passage, Task, carries_feedback, read, why_dropped
from stepdown.harnesses.selection import taken
from stepdown.harnesses.single_answer import JudgedAnswer, case_without_answer
from stepdown.harnesses.task_file import TaskFileSource
from stepdown.judges.case import EvidencePassage, Turn

BENCHMARK = "mtrag"
VERSION = "2"
"""Raised with every change of this package that can change a prefix, a case or a verdict."""
_INSTRUCTION = Path(__file__).parent / "instruction.txt"
_ROLES: Mapping[str, str] = {"user": "user", "agent": "assistant"}
NOTE = "An assistant's turn in a conversation over retrieved passages: usually one to a few sentences."


class Options(Strict):
    """The harness has none."""


class MTRAG(Harness):
    """Multi-turn conversations over passages. A judge says whether the answer resolves the last turn."""

    name = BENCHMARK
    multi_step = False
    early_verdicts = True
    needs_judge = True
    terms = Terms(
        "see the benchmark and its corpora",
        "Conversations of the mtRAG benchmark with passages of its corpora. The benchmark's terms and those of each "
        "corpus hold for them.",
    )
    expected_labels = (183, 8, 1, 1)

    def __init__(self, **options: Any) -> None:
        """Raises BadInput for an unknown option."""
        validated(Options, options, field="options")
        self._instruction = read_text(_INSTRUCTION).strip()
        self.version = f"{VERSION}+{digest([self._instruction, NOTE])[:12]}"

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        """The tasks of `source: {file, take}`. Those that the pre-filter drops have a reason. Raises BadInput."""
        wanted = validated(TaskFileSource, dict(source), field="source")
        tasks = list(read(wanted.file))
        voted = carries_feedback(tasks)
        ids = taken([task.task_id for task in tasks], wanted.take, field="source.take")
        yield from (self._instance(task, why_dropped(task, voted)) for task in tasks if task.task_id in ids)

    def _instance(self, task: Task, dropped: str | None) -> Instance:
        references = [target.text for target in task.targets if target.text.strip()]
        data: dict[str, Any] = {"reference": references[0] if references else None}
        if dropped is None:
            data |= {"messages": self._messages(task), "case": _case(task, references)}
        return Instance(BENCHMARK, task.task_id, data, dropped, group=task.conversation)

    def _messages(self, task: Task) -> list[Message]:
        """The passages are in the system message, so that the turns stay as they were said."""
        passages = [f"{_title(n, passage)}\n{passage.text.strip()}" for n, passage in enumerate(task.passages, 1)]
        system = {"role": "system", "content": "\n\n".join([self._instruction, *passages])}
        return [system, *({"role": _ROLES[turn.speaker], "content": turn.text} for turn in task.input)]

    @contextmanager
    def open(self, instance: Instance, at: Checkpoint | None = None) -> Iterator[Episode]:
        """An episode of the instance. It holds no resource beyond memory."""
        yield JudgedAnswer(instance, at)

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        """The pseudo-model `reference`, which gives the first target; None for a name or task without any."""
        reference = instance.task["reference"]
        return Response(reference) if name == "reference" and reference is not None else None


def _title(number: int, passage: Passage) -> str:
    title = (passage.title or "").strip()
    return f"Passage {number}: {title}" if title else f"Passage {number}"


def _case(task: Task, references: list[str]) -> dict[str, Any]:
    turns = [Turn(speaker=_ROLES[turn.speaker], text=turn.text) for turn in task.input]
    evidence = [
        EvidencePassage(label=f"Passage {n}", title=(passage.title or "").strip(), text=passage.text.strip())
        for n, passage in enumerate(task.passages, 1)
    ]
    return case_without_answer("rag", turns, evidence, references, NOTE)
