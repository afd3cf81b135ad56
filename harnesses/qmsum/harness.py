"""The harness of the QMSum workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from stepdown.builder.common import tokens
from stepdown.builder.config.validation import Strict, read_text, validated
from stepdown.builder.records import Instance, Message, Prefix, Response, Sample, digest
from stepdown.harnesses.base import Checkpoint, Episode, Harness, Terms
from stepdown.harnesses.qmsum.meetings import Meeting, Query, Span, read
from stepdown.harnesses.selection import Take, taken
from stepdown.harnesses.single_answer import JudgedAnswer, case_without_answer
from stepdown.judges.case import EvidencePassage, Turn

BENCHMARK = "qmsum"
VERSION = "2"
"""Raised with every change of this package that can change a prefix, a case or a verdict."""
_INSTRUCTION = Path(__file__).parent / "instruction.txt"
NOTE = "A summary that answers one query about a meeting: usually one paragraph."
Kind = Literal["general", "specific"]


class Source(Strict):
    """Which queries a run takes."""

    file: Path
    """Relative to the config."""
    queries: tuple[Kind, ...] = Field(("general", "specific"), min_length=1)
    """On the meeting as a whole, or on something in it."""
    take: Take = "all"
    """The first n of these queries, `all`, or a list of ids."""


class Options(Strict):
    """The harness's options.

    Every model of the pool gets the same prefix, and a model fails where a prefix does not fit its context. So a query
    whose prefix does not fit the strong model's context makes no instance.
    """

    context: int = Field(128_000, ge=1)
    """Tokens that a prefix may have: the strong model's context less its longest answer. Tokens are estimated, by
    characters."""
    long: Literal["drop", "spans"] = "drop"
    """What becomes of a query whose transcript is longer: it is dropped, or asked over its relevant spans alone, which
    shows the model where to look."""


class QMSum(Harness):
    """Queries over meetings. A judge says whether the answer resolves the query."""

    name = BENCHMARK
    multi_step = False
    early_verdicts = True
    needs_judge = True
    terms = Terms(
        "see the benchmark and its corpora",
        "Queries and transcripts of QMSum, whose makers ask that it be used for research and cited. The transcripts "
        "are from the AMI and ICSI corpora and from parliamentary committees; their terms hold for them.",
    )
    expected_labels = (132, 10, 3, 0)

    def __init__(self, **options: Any) -> None:
        """Raises BadInput for an unknown or wrong option."""
        self._options = validated(Options, options, field="options")
        self._instruction = read_text(_INSTRUCTION).strip()
        parts = [self._instruction, NOTE, self._options.model_dump()]
        self.version = f"{VERSION}+{digest(parts)[:12]}"

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        """The queries of `source: {file, queries, take}`. Too long transcripts are dropped. Raises BadInput.

        An instance is named `<meeting>.<kind>.<number of the query>`.
        """
        wanted = validated(Source, dict(source), field="source")
        asked = [found for meeting in read(wanted.file) for found in _asked(meeting, wanted.queries)]
        ids = taken([name for name, _, _ in asked], wanted.take, field="source.take")
        # Made one by one, since each instance holds a transcript of its own.
        yield from (self._instance(*found) for found in asked if found[0] in ids)

    def _instance(self, name: str, meeting: Meeting, query: Query) -> Instance:
        data: dict[str, Any] = {"reference": query.answer if query.answer.strip() else None}
        if meeting.lacks(query):
            return Instance(BENCHMARK, name, data, "its relevant spans are not in the transcript", group=meeting.id)
        spans = meeting.spans(query)
        messages, whole = self._messages(meeting.transcript, query), True
        if not self._fits(messages):
            if self._options.long == "drop" or not spans:
                return Instance(BENCHMARK, name, data, self._too_long("the transcript"), group=meeting.id)
            messages, whole = self._messages("\n\n".join(map(meeting.span, spans)), query), False
            if not self._fits(messages):
                return Instance(BENCHMARK, name, data, self._too_long("what is relevant"), group=meeting.id)
        data |= {"messages": messages, "case": _case(meeting, query, spans, whole)}
        return Instance(BENCHMARK, name, data, group=meeting.id)

    def _messages(self, transcript: str, query: Query) -> list[Message]:
        return [
            {"role": "system", "content": self._instruction},
            {"role": "user", "content": f"Transcript:\n{transcript}\n\nQuery: {query.query}"},
        ]

    def _fits(self, messages: Sequence[Message]) -> bool:
        return tokens.of_request(messages) <= self._options.context

    def _too_long(self, what: str) -> str:
        return f"{what} does not fit into the context of {self._options.context} tokens"

    @contextmanager
    def open(self, instance: Instance, at: Checkpoint | None = None) -> Iterator[Episode]:
        """An episode of the instance. It holds no resource beyond memory."""
        yield JudgedAnswer(instance, at)

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        """The pseudo-model `reference`, which gives the accepted answer; None for a name or a query without any."""
        reference = instance.task["reference"]
        return Response(reference) if name == "reference" and reference is not None else None


def _asked(meeting: Meeting, kinds: Sequence[Kind]) -> Iterator[tuple[str, Meeting, Query]]:
    """A meeting's queries of these kinds, each with the id of its instance."""
    lists = {"general": meeting.general_query_list, "specific": meeting.specific_query_list}
    for kind, queries in lists.items():
        for number, query in enumerate(queries if kind in kinds else (), 1):
            yield f"{meeting.id}.{kind}.{number}", meeting, query


def _case(meeting: Meeting, query: Query, spans: Sequence[Span], whole: bool) -> dict[str, Any]:
    """The judge's case. Its evidence is the relevant spans, and the whole transcript where the model saw that."""
    evidence = [
        EvidencePassage(label=f"turns {first} to {last}", text=meeting.span((first, last))) for first, last in spans
    ]
    if whole:
        evidence.append(EvidencePassage(label="the whole transcript", text=meeting.transcript))
    references = [query.answer] if query.answer.strip() else []
    return case_without_answer("meeting", [Turn(speaker="user", text=query.query)], evidence, references, NOTE)
