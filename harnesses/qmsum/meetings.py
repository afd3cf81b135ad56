"""Meetings in QMSum's format: a transcript of turns, with queries on all of it and queries on spans of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from pydantic import Field

from stepdown.builder.config.validation import validated
from stepdown.builder.errors import BadInput
from stepdown.builder.records import digest
from stepdown.harnesses.task_file import Ids, UpstreamRecord, values_of
from stepdown.judges.case import Text

_MARK = re.compile(r"\{[a-z]{1,30}\}")
"""A transcriber's note among the words: {vocalsound}, {disfmarker}, {gap}."""

Span = tuple[int, int]
"""The first and the last turn of a span, counted from 0, both included."""


class Said(UpstreamRecord):
    """One turn of a meeting."""

    speaker: Text
    content: Text


class Query(UpstreamRecord):
    """A query and its accepted answer. `relevant_text_span` has the turns that support it, where known."""

    query: Text = Field(min_length=1)
    answer: Text
    relevant_text_span: tuple[tuple[int, int], ...] = ()


class Meeting(UpstreamRecord):
    """One meeting."""

    meeting_id: str | None = None
    """UpstreamRecord's files have none. A meeting without one is named by the digest of its transcript."""
    meeting_transcripts: tuple[Said, ...] = Field(min_length=1)
    general_query_list: tuple[Query, ...] = ()
    specific_query_list: tuple[Query, ...] = ()

    @cached_property
    def id(self) -> str:
        return self.meeting_id or digest([[turn.speaker, turn.content] for turn in self.meeting_transcripts])[:12]

    @cached_property
    def transcript(self) -> str:
        """All turns that have words, one a line."""
        return written(self.meeting_transcripts)

    def span(self, span: Span) -> str:
        """The words of a span; empty where its turns have none."""
        first, last = span
        return written(self.meeting_transcripts[first : last + 1])

    def lacks(self, query: Query) -> bool:
        """Whether a span of the query lies outside this transcript."""
        count = len(self.meeting_transcripts)
        return any(not 0 <= first <= last < count for first, last in query.relevant_text_span)

    def spans(self, query: Query) -> list[Span]:
        """The query's spans in order. Those that touch or overlap are joined; those without words are left out."""
        found: list[Span] = []
        for first, last in sorted(query.relevant_text_span):
            if found and first <= found[-1][1] + 1:
                found[-1] = (found[-1][0], max(found[-1][1], last))
            else:
                found.append((first, last))
        return [span for span in found if self.span(span)]


def written(turns: Sequence[Said]) -> str:
    """Turns as `speaker: words`, one a line, without the transcriber's notes and turns that have nothing else.

    >>> written([Said(speaker="Ann", content="{vocalsound} So ."), Said(speaker="Bob", content="{gap}")])
    'Ann: So .'
    """
    lines = [(turn.speaker, " ".join(_MARK.sub(" ", turn.content).split())) for turn in turns]
    return "\n".join(f"{speaker}: {words}" for speaker, words in lines if words)


def read(file: Path) -> Iterator[Meeting]:
    """Read the meetings of a file: JSONL, or JSON of one meeting or a list. Raises BadInput, naming line and field."""
    ids = Ids(file, "meeting_id")
    for number, value in values_of(file):
        meeting = validated(Meeting, value, file=file, line=number)
        ids.add(meeting.id, number)
        if not meeting.transcript:
            raise BadInput("no turn has any words", file=file, line=number, field="meeting_transcripts")
        yield meeting
