"""What is exported for a reviewer's tool and what comes back from it, whatever the format."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from stepdown.audit.cases import ReviewCase
from stepdown.audit.verdicts import AuditVerdict
from stepdown.builder.artifacts.queue import LowerAnswer
from stepdown.builder.common.reading import refuse_duplicate_keys
from stepdown.builder.records import Message


@dataclass(frozen=True, slots=True)
class OutgoingStep:
    """A step for a reviewer, with the reviewer's earlier answer if there is one."""

    case: ReviewCase
    reviewer: str
    """Empty where the run has no reviewers yet."""
    verdict: AuditVerdict | None = None
    notes: str = ""


@dataclass(frozen=True, slots=True)
class IncomingAnswer:
    """A reviewer's answer as it stands in a file. Nothing of it is checked yet."""

    line: int | None
    """Its line in the file, where the format has lines."""
    item: int
    """Its number in the file or on the server, from 1."""
    id: Any = None
    prefix_digest: Any = None
    reviewer: Any = None
    """Whom the step was exported for."""
    verdict: Any = None
    notes: Any = None
    problem: str = ""
    """Why it could not be read at all."""
    account: str = ""
    """Who answered, where the tool says so: the name or the number of an account of the tool."""
    unsubmitted: str = ""
    """Why it is no answer yet, or none any more, in the tool's own word: draft, discarded."""


@dataclass(frozen=True, slots=True)
class ExchangeFormat:
    """A way to write steps into one text file and to read answers out of it."""

    write: Callable[[Iterable[OutgoingStep], TextIO], int]
    """Writes the steps, one in memory at a time, and returns how many."""
    read: Callable[[Path], Iterator[IncomingAnswer]]
    """Reads the answers. Raises BadInput where the file is not of this format."""
    beside: Mapping[str, str]
    """Further files that the tool needs: their text by the ending of their name."""


_PEOPLE = uuid.UUID("6f1f5c0e-7f0a-5a52-9f6c-0d3c1f0e9b11")
"""The namespace of the accounts that are made of reviewers' names."""


def account_id(reviewer: str) -> str:
    """The account of a reviewer, for a tool that wants a UUID for everyone who answers.

    >>> account_id("ann") == account_id("ann") != account_id("bob")
    True
    """
    return str(uuid.uuid5(_PEOPLE, reviewer))


def record_id(step_id: str, reviewer: str) -> str:
    """The id of a step in another tool. A step that two people review each on their own is two records there.

    >>> record_id("bench/a/3", "ann"), record_id("bench/a/3", "")
    ('bench/a/3 ann', 'bench/a/3')
    """
    return f"{step_id} {reviewer}" if reviewer else step_id


def parsed_json(text: str) -> Any:
    """The value that a JSON text holds. Raises ValueError and RecursionError.

    A key that is given twice is a ValueError too: one of its two values would be lost.

    >>> parsed_json('{"verdict": "tight"}')
    {'verdict': 'tight'}
    """
    return json.loads(text, object_pairs_hook=refuse_duplicate_keys)


def message_text(message: Message) -> str:
    """A message as text: its content, then its tool calls.

    >>> message_text({"content": "so", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]})
    'so\\nf({})'
    """
    content = message.get("content") or ""
    parts = [content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)]
    for call in message.get("tool_calls", ()):
        function = call["function"]
        parts.append(f"{function['name']}({function['arguments']})")
    return "\n".join(part for part in parts if part)


def transcript(case: ReviewCase) -> str:
    """The prefix as text, one block a message."""
    return "\n\n".join(f"[{message['role']}]\n{message_text(message)}" for message in case.messages)


def tool_list(case: ReviewCase) -> str:
    """The tools as text, one tool a line."""
    return "\n".join(json.dumps(tool, ensure_ascii=False) for tool in case.tools)


def lower_answers_text(answers: Iterable[LowerAnswer]) -> str:
    """What the candidates one tier lower answered, and why that did not count, as text."""
    blocks = []
    for answer in answers:
        said = message_text(answer.response) if answer.response else "(no answer)"
        because = f": {answer.reason}" if answer.reason else ""
        blocks.append(f"[candidate {answer.number}: {answer.verdict.value}{because}]\n{said}")
    return "\n\n".join(blocks)


def question(case: ReviewCase) -> str:
    """The question that the reviewer is asked."""
    return f"The label is {case.tier}. Would {case.below}, one tier lower, still handle this step?"
