"""Rows as trajectories: streamed, checked as far as a score depends on it, their tokens counted once per message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepdown.builder.common.tokens import USUAL_ANSWER
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Message, Tool, exact_json
from stepdown.releases.layout import json_lines
from stepdown.scoring.bank import Bank
from stepdown.scoring.tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class ScoredStep:
    """One row without its texts."""

    id: str
    label: int
    """Index of the tier."""
    prompt: int
    """Tokens of its prefix: messages and tool definitions."""
    shared: int
    """Tokens of the previous step's prefix where that stands at this one's head; 0 where a cache could read nothing."""
    output: float
    """Tokens of its answer: counted where the next prefix shows it, else the trajectory's mean, else 500."""
    response: Message | None
    """The assistant's message that the next prefix adds; None where there is none, as after the last step."""


@dataclass(frozen=True, slots=True)
class ScoredTrajectory:
    """The rows of one instance."""

    benchmark: str
    instance_id: str
    group: str
    """The instance's own id where rows name no group."""
    split: str
    """Empty where rows name none."""
    steps: tuple[ScoredStep, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    benchmark: str
    instance_id: str
    step_index: int
    total_steps: int
    messages: list[Message]
    tools: list[Tool]
    label: int
    group: str
    split: str


def trajectories(bank: Bank, tokens: Tokenizer) -> Iterator[ScoredTrajectory]:
    """The trajectories of a bank, one in memory at a time.

    Raises BadInput(file, line, field): a line that is no row, a tier that the manifest does not name, steps of an
    instance that do not follow each other, an instance that comes twice.
    """
    counter, seen = _Counter(tokens), set()
    rows: list[_Row] = []
    number = 0
    for number, row in _rows(bank):
        if not rows:
            # 64 bits of an instance, not its name: a million of them are still small.
            key = hash((row.benchmark, row.instance_id))
            if key in seen:
                raise BadInput("the instance's rows stand at two places", file=bank.rows, line=number, field="id")
            seen.add(key)
        expected = len(rows) + 1
        if rows and (row.benchmark, row.instance_id) != (rows[0].benchmark, rows[0].instance_id):
            raise BadInput(f"step {expected} of {rows[0].id!r} is missing", file=bank.rows, line=number, field="id")
        if row.step_index != expected or (rows and row.total_steps != rows[0].total_steps):
            raise BadInput(f"must be step {expected}", file=bank.rows, line=number, field="step_index")
        if row.step_index > row.total_steps:
            raise BadInput("is less than step_index", file=bank.rows, line=number, field="total_steps")
        if rows and (row.group, row.split) != (rows[0].group, rows[0].split):
            raise BadInput("differs within one instance", file=bank.rows, line=number, field="group")
        rows.append(row)
        if row.step_index == row.total_steps:
            yield _measured(rows, counter)
            rows = []
    if rows:
        raise BadInput(f"step {len(rows) + 1} of {rows[0].id!r} is missing", file=bank.rows, line=number)


def _measured(rows: Sequence[_Row], counter: _Counter) -> ScoredTrajectory:
    prompts: list[int] = []
    shares: list[int] = []
    answers: list[Message | None] = []
    tokens, earlier = 0, None  # tokens of the messages alone
    for row in rows:
        grown = earlier is not None and row.messages[: len(earlier.messages)] == earlier.messages
        fresh = row.messages[len(earlier.messages) :] if earlier is not None and grown else row.messages
        tokens = (tokens if grown else 0) + sum(map(counter.message, fresh))
        if earlier is not None:
            answers.append(next((m for m in fresh if m.get("role") == "assistant"), None) if grown else None)
            # Tool definitions stand before the messages: where they change, a cache has nothing to read.
            shares.append(prompts[-1] if grown and row.tools == earlier.tools else 0)
        prompts.append(tokens + counter.tools(row.tools))
        earlier = row
    outputs = [None if answer is None else counter.message(answer) for answer in answers]
    known = [count for count in outputs if count is not None]
    usual = sum(known) / len(known) if known else float(USUAL_ANSWER)
    steps = tuple(
        ScoredStep(row.id, row.label, prompt, shared, float(usual if output is None else output), answer)
        for row, prompt, shared, output, answer in zip(
            rows, prompts, [0, *shares], [*outputs, None], [*answers, None], strict=True
        )
    )
    first = rows[0]
    return ScoredTrajectory(first.benchmark, first.instance_id, first.group, first.split, steps)


class _Counter:
    """Counts a message's tokens from its JSON; remembers the tools of the row before, which mostly are the same."""

    def __init__(self, tokens: Tokenizer) -> None:
        self._tokens = tokens
        self._tools: list[Tool] = []
        self._of_tools = 0

    def message(self, message: Message) -> int:
        return self._tokens(exact_json(message))

    def tools(self, tools: list[Tool]) -> int:
        if tools != self._tools:
            self._tools, self._of_tools = tools, sum(self._tokens(exact_json(tool)) for tool in tools)
        return self._of_tools if tools else 0


def _rows(bank: Bank) -> Iterator[tuple[int, _Row]]:
    """The rows with their line numbers. Those of a run have neither group nor split."""
    index = {tier.name: place for place, tier in enumerate(bank.tiers)}
    for number, data in json_lines(bank.rows):
        yield number, _row(data, index, bank, number)


def _row(data: Any, index: Mapping[str, int], bank: Bank, number: int) -> _Row:
    path = bank.rows
    if type(data) is not dict:
        raise BadInput("a row must be an object", file=path, line=number)

    def field(name: str, kind: type, default: Any = None) -> Any:
        value = data.get(name, default)
        if type(value) is not kind:
            problem = "is missing" if name not in data else f"must be {_WORDS[kind]}"
            raise BadInput(problem, file=path, line=number, field=name)
        return value

    instance_id, tier = field("instance_id", str), field("target_tier", str)
    label = index.get(tier)
    if label is None:
        raise BadInput(f"the manifest names no tier {tier!r}", file=path, line=number, field="target_tier")
    if field("target_tier_id", int) != bank.tiers[label].id:
        raise BadInput(
            f"tier {tier!r} has the id {bank.tiers[label].id}", file=path, line=number, field="target_tier_id"
        )
    row = _Row(
        field("id", str),
        field("benchmark", str),
        instance_id,
        field("step_index", int),
        field("total_steps", int),
        field("messages", list),
        field("tools", list, []),
        label,
        field("group", str, instance_id),
        field("split", str, ""),
    )
    for name, items in (("messages", row.messages), ("tools", row.tools)):
        for place, item in enumerate(items):
            if type(item) is not dict:
                raise BadInput("must be an object", file=path, line=number, field=f"{name}.{place}")
    if row.id != f"{row.benchmark}/{instance_id}/{row.step_index}":
        raise BadInput("must be benchmark/instance_id/step_index", file=path, line=number, field="id")
    return row


_WORDS = {str: "text", int: "a whole number", list: "a list"}
