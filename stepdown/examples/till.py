"""A workload of one's own with several steps: a clerk adds up a bill, price by price, with a tool.

    stepdown build example --run runs/example       # the bundled config example.yaml: no model, no key, a second

A copy of this file in the folder one works in, say `mine.py`, is named in a config as `harness: mine:Till`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from stepdown import (
    BadInput,
    Episode,
    Harness,
    Instance,
    Message,
    Prefix,
    Response,
    Ruling,
    Sample,
    Tool,
    ToolCall,
    Verdict,
)

ADD: Tool = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds a price to the bill and says the sum so far.",
        "parameters": {
            "type": "object",
            "properties": {"price": {"type": "integer"}},
            "required": ["price"],
            "additionalProperties": False,
        },
    },
}
INSTRUCTION = "Add one price at a time with the tool, in order. When all are added, answer with the sum alone."
HIGHEST = 1_000_000
SPARE_CALLS = 3
"""Calls that an agent may make beyond one for each price and one for the sum."""


class State(NamedTuple):
    """All that an episode is: whoever has it can go on from it."""

    prefix: Prefix
    left: tuple[int, ...]
    """Prices that are still to be added."""
    wrong: int | None = None
    """The first price that was added and is not on the bill, or was added too often."""
    answer: str | None = None


class TillEpisode(Episode):
    """One bill being added up."""

    def __init__(self, bill: list[int], state: State | None) -> None:
        self._bill = bill
        self._state = state or State(self._opening(), tuple(bill))

    def _opening(self) -> Prefix:
        order = f"Add up this bill: {', '.join(map(str, self._bill))}. {INSTRUCTION}"
        task: Message = {"role": "user", "content": order}
        return Prefix.start([task], tools=[ADD])

    def prefix(self) -> Prefix:
        return self._state.prefix

    def advance(self, response: Response) -> bool:
        state = self._state
        prefix = state.prefix.respond(response)
        if not response.tool_calls:
            self._state = state._replace(prefix=prefix, answer=response.content.strip())
            return False
        for message_call, call in zip(prefix.messages[-1]["tool_calls"], response.tool_calls, strict=True):
            result = {"role": "tool", "tool_call_id": message_call["id"], "content": self._added(call)}
            prefix = prefix.extend([result])
        self._state = self._state._replace(prefix=prefix)
        return self._calls_made() < len(self._bill) + 1 + SPARE_CALLS

    def _added(self, call: ToolCall) -> str:
        """Act on a tool call and say what came of it. Whatever a model wrote, it is only read."""
        price = _price(call)
        if price is None:
            return f"add takes a whole price from 0 to {HIGHEST}"
        state = self._state
        if price in state.left:
            place = state.left.index(price)
            self._state = state._replace(left=state.left[:place] + state.left[place + 1 :])
        elif state.wrong is None:
            self._state = state._replace(wrong=price)
        return f"{price} is added"

    def _calls_made(self) -> int:
        return sum(message["role"] == "assistant" for message in self._state.prefix.messages)

    def doomed(self) -> Ruling | None:
        """What was added can not be taken back: the trial need not go on."""
        return None if self._state.wrong is None else Ruling(Verdict.FAIL, f"the bill has no {self._state.wrong}")

    def verdict(self) -> Ruling:
        if lost := self.doomed():
            return lost
        if self._state.answer is None:
            return Ruling(Verdict.INCOMPLETE, "no sum was given")
        if self._state.left:
            return Ruling(Verdict.FAIL, f"{self._state.left[0]} was not added")
        right = self._state.answer == str(sum(self._bill))
        return Ruling(Verdict.PASS) if right else Ruling(Verdict.FAIL, "the sum is wrong")

    def checkpoint(self) -> State:
        return self._state


class Till(Harness):
    """The workload. `source` is `{bills: [[price, ...], ...]}`; instances are `bill-1`, `bill-2` and so on."""

    name = "till"
    version = "1"
    early_verdicts = True

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        bills = source.get("bills")
        if set(source) != {"bills"} or not isinstance(bills, list):
            raise BadInput("must be `bills`, a list of lists of prices", field="source")
        for number, bill in enumerate(bills, 1):
            if not isinstance(bill, list) or not bill or not all(_is_price(price) for price in bill):
                raise BadInput(f"must be whole prices from 0 to {HIGHEST}", field=f"source.bills.{number - 1}")
            yield Instance(self.name, f"bill-{number}", {"bill": bill})

    @contextmanager
    def open(self, instance: Instance, at: object | None = None) -> Iterator[TillEpisode]:
        yield TillEpisode(instance.task["bill"], at if isinstance(at, State) else None)

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        """Two pseudo-models: `reference` adds every price, `hasty` looks at the last digit only."""
        if name not in ("reference", "hasty"):
            return None
        bill: list[int] = instance.task["bill"]
        done = sum(message["role"] == "tool" for message in prefix.messages)
        if done >= len(bill):
            return Response(str(sum(bill)))
        price = bill[done] if name == "reference" else bill[done] % 10
        return Response(tool_calls=(ToolCall("add", json.dumps({"price": price})),))


def _price(call: ToolCall) -> int | None:
    """The price that a call names; None where it names none."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    price = arguments.get("price") if isinstance(arguments, dict) and call.name == "add" else None
    return price if _is_price(price) else None


def _is_price(value: object) -> bool:
    return type(value) is int and 0 <= value <= HIGHEST
