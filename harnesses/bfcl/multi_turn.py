"""A conversation of several user turns on the simulated APIs, graded turn by turn as upstream grades it.

A turn ends with a response that makes no readable call. After each turn upstream compares the state of the APIs, and
looks for the accepted calls' results among all results so far; either failure is final. Turns without accepted calls (a
function or a parameter is missing) are not checked; what is called in them is executed and counts in later turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stepdown.builder.records import Instance, Message, Prefix, Response, Ruling, Tool, Verdict
from stepdown.harnesses.base import Episode
from stepdown.harnesses.bfcl.bounds import LIMITS, Overgrown
from stepdown.harnesses.bfcl.decoding import DecodedCall, as_text, decoded
from stepdown.harnesses.bfcl.foreclosed import foreclosed
from stepdown.harnesses.bfcl.grading import MALFORMED, shortened
from stepdown.harnesses.bfcl.simulation import Simulation
from stepdown.harnesses.bfcl.tools import api_tools
from stepdown.harnesses.bfcl.truth import Truth
from stepdown.harnesses.bfcl.upstream import prompts, response_check, state_check


@dataclass(frozen=True, slots=True)
class MultiTurnCheckpoint:
    """All of a multi-turn episode's state."""

    prefix: Prefix
    simulation: Simulation
    """Never changed: an episode takes a copy."""
    turn: int = 0
    steps: int = 0
    """Responses of this turn whose calls were executed."""
    results: tuple[str, ...] = ()
    """The results of all calls so far."""
    ruling: Ruling | None = None
    """The first reason why the episode cannot pass; or the pass."""
    halted: bool = False


class MultiTurn(Episode):
    """The episode of a multi-turn instance."""

    def __init__(self, instance: Instance, truth: Truth, max_steps: int, at: MultiTurnCheckpoint | None) -> None:
        self._entry, self._truth, self._max_steps = instance.task["entry"], truth, max_steps
        if at is None:
            messages, tools = _question(self._entry, 0), _tools(self._entry, 0)
            self._at = MultiTurnCheckpoint(Prefix.start(messages, tools), Simulation.of(self._entry))
        else:
            self._at = replace(at, simulation=at.simulation.copy())

    def prefix(self) -> Prefix:
        """The conversation so far, and the functions offered in this turn."""
        return self._at.prefix

    def advance(self, response: Response) -> bool:
        """Execute the response's calls, or end the turn where it makes none."""
        if self._at.halted:
            return False
        if response.malformed:
            self._halt(MALFORMED)
        elif calls := decoded(response):
            self._at = replace(self._at, prefix=self._at.prefix.respond(response))
            try:
                self._observe([self._result(number, call) for number, call in enumerate(calls)])
            except Overgrown as error:
                self._halt(Ruling(Verdict.FAIL, str(error)))
        else:
            self._at = replace(self._at, prefix=self._at.prefix.respond(as_text(response)))
            self._end_turn()
        return not self._at.halted

    def doomed(self) -> Ruling | None:
        """A ruling other than pass that nothing can change any more."""
        ruling = self._at.ruling
        return ruling if ruling is not None and ruling.verdict is not Verdict.PASS else None

    def verdict(self) -> Ruling:
        """The official verdict; incomplete where turns are left."""
        return self._at.ruling or Ruling(Verdict.INCOMPLETE, f"the conversation is in turn {self._at.turn + 1}")

    def checkpoint(self) -> MultiTurnCheckpoint | None:
        """The state as it stands; None where it nests too deep to be copied."""
        try:
            return replace(self._at, simulation=self._at.simulation.copy())
        except RecursionError:
            return None

    def _result(self, number: int, call: DecodedCall) -> str:
        """Execute one of a response's calls, unless there are too many."""
        if number >= LIMITS["calls"]:
            return "Error during execution: too many calls in one response"
        return self._at.simulation.call(call.name, call.arguments)

    def _observe(self, results: list[str]) -> None:
        """Take in the results of one response's calls."""
        at = self._at
        ids = [call["id"] for call in at.prefix.messages[-1]["tool_calls"]]
        observations = [
            {"role": "tool", "content": result, "tool_call_id": name} for result, name in zip(results, ids, strict=True)
        ]
        self._at = replace(
            at, prefix=at.prefix.extend(observations), steps=at.steps + 1, results=(*at.results, *results)
        )
        turn = self._truth.turns[at.turn]
        if turn.calls and (lost := foreclosed(at.simulation.apis, turn.apis)):
            self._find(Ruling(Verdict.FAIL, f"turn {at.turn + 1}: {lost}"))
        if self._at.steps > self._max_steps:
            self._force_quit()

    def _force_quit(self) -> None:
        """Upstream ends the conversation. It then grades as usual if this was the last turn, and else fails it."""
        ran_out = Ruling(Verdict.INCOMPLETE, f"ran out of steps in turn {self._at.turn + 1}")
        last = self._at.turn + 1 == len(self._truth.turns)
        self._halt(Ruling(Verdict.PASS) if last and self._wrong() is None else ran_out)

    def _end_turn(self) -> None:
        """Check the turn, and ask the next question if there is one."""
        if wrong := self._wrong():
            self._find(Ruling(Verdict.FAIL, wrong))
        turn = self._at.turn + 1
        if turn == len(self._truth.turns):
            self._halt(Ruling(Verdict.PASS))
            return
        prefix = self._at.prefix.extend(_question(self._entry, turn))
        if str(turn) in self._entry.get("missed_function", {}):
            prefix = prefix.with_tools(_tools(self._entry, turn))
        self._at = replace(self._at, prefix=prefix, turn=turn, steps=0)

    def _wrong(self) -> str | None:
        """What upstream's checks find wrong with the turn that is ending."""
        number, turn = self._at.turn, self._truth.turns[self._at.turn]
        if not turn.calls:
            return None
        if not self._at.steps:
            return f"turn {number + 1}: no call was made where one is needed"
        try:
            result = state_check(self._at.simulation.apis, turn.apis)
            if result["valid"]:
                result = response_check(self._at.results, turn.results, number)
        except Exception as error:  # values that a model put into the state may not be comparable
            return shortened(f"turn {number + 1}: the state cannot be compared: {type(error).__name__}: {error}")
        if result["valid"]:
            return None
        return shortened(f"turn {number + 1}: {result['error_type']}: {result['error_message']} {_details(result)}")

    def _find(self, ruling: Ruling) -> None:
        """Record the first ruling; later ones change nothing."""
        if self._at.ruling is None:
            self._at = replace(self._at, ruling=ruling)

    def _halt(self, ruling: Ruling) -> None:
        self._find(ruling)
        self._at = replace(self._at, halted=True)


def _details(result: Mapping[str, Any]) -> str:
    """Which attributes differ, or which results are missing; the checker's own message does not say."""
    details = result.get("details", {})
    if "differences" in details:
        return f"Different: {', '.join(details['differences'])}."
    return f"Missing: {str(details.get('missing_items', ''))[:200]}"


def _question(entry: Mapping[str, Any], turn: int) -> list[Message]:
    """The messages that open a turn. Where functions are added, upstream says so in place of a question."""
    if str(turn) in entry.get("missed_function", {}):
        return [{"role": "user", "content": prompts().DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC}]
    messages: list[Message] = entry["question"][turn]
    return messages


def _tools(entry: Mapping[str, Any], turn: int) -> tuple[Tool, ...]:
    """The functions offered in a turn: those of the entry's APIs, withheld ones from their turn on, as the last."""
    every: dict[str, Tool] = {}
    for api in entry["involved_classes"]:
        every.update(api_tools(api))
    withheld = {name: int(at) for at, names in entry.get("missed_function", {}).items() for name in names}
    offered = [tool for name, tool in every.items() if name not in withheld]
    added = [every[name] for name, at in withheld.items() if name in every and at <= turn]
    return (*offered, *added)
