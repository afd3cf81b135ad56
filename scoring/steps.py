"""Rows as trajectories: streamed, checked as far as a score depends on it, their tokens counted once per message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stepdown.builder.artifacts.rows import Row, read_rows
from stepdown.builder.common.tokens import USUAL_ANSWER
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Message, Tool, exact_json
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


def read_trajectories(bank: Bank, tokens: Tokenizer) -> Iterator[ScoredTrajectory]:
    """The trajectories of a bank, one in memory at a time.

    Raises BadInput(file, line, field): a line that is no row, a tier that the manifest does not name, steps of an
    instance that do not follow each other, an instance that comes twice.
    """
    counter, seen = _Counter(tokens), set()
    labels = {tier.name: index for index, tier in enumerate(bank.tiers)}
    rows: list[Row] = []
    number = 0
    for number, row in _read_rows(bank):
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
            yield _measure(rows, labels, counter)
            rows = []
    if rows:
        raise BadInput(f"step {len(rows) + 1} of {rows[0].id!r} is missing", file=bank.rows, line=number)


def _measure(rows: Sequence[Row], labels: Mapping[str, int], counter: _Counter) -> ScoredTrajectory:
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
            shares.append(prompts[-1] if grown and (row.tools or []) == (earlier.tools or []) else 0)
        prompts.append(tokens + counter.tools(row.tools or []))
        earlier = row
    outputs = [None if answer is None else counter.message(answer) for answer in answers]
    known = [count for count in outputs if count is not None]
    usual = sum(known) / len(known) if known else float(USUAL_ANSWER)
    steps = tuple(
        ScoredStep(row.id, labels[row.target_tier], prompt, shared, float(usual if output is None else output), answer)
        for row, prompt, shared, output, answer in zip(
            rows, prompts, [0, *shares], [*outputs, None], [*answers, None], strict=True
        )
    )
    first = rows[0]
    return ScoredTrajectory(first.benchmark, first.instance_id, first.group or first.instance_id, first.split, steps)


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


def _read_rows(bank: Bank) -> Iterator[tuple[int, Row]]:
    """The rows with their line numbers, as far as each can be checked alone."""
    ids = bank.tier_ids
    for number, row in read_rows(bank.rows):
        name = row.target_tier
        if name not in ids:
            raise BadInput(f"the manifest names no tier {name!r}", file=bank.rows, line=number, field="target_tier")
        if row.target_tier_id != ids[name]:
            problem = f"tier {name!r} has the id {ids[name]}"
            raise BadInput(problem, file=bank.rows, line=number, field="target_tier_id")
        if row.id != f"{row.benchmark}/{row.instance_id}/{row.step_index}":
            problem = "must be benchmark/instance_id/step_index"
            raise BadInput(problem, file=bank.rows, line=number, field="id")
        yield number, row
