"""The official predicate of the single-turn categories, on a response that may be hostile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepdown.builder.records import Response, Ruling, Verdict, clean_text
from stepdown.harnesses.bfcl.data import RELEVANCE
from stepdown.harnesses.bfcl.decoding import DecodedCall, decoded
from stepdown.harnesses.bfcl.tools import language_of
from stepdown.harnesses.bfcl.upstream import ast_checker, language

MALFORMED = Ruling(Verdict.FAIL, "a tool call that cannot be parsed")

REASON_LENGTH = 400
"""Characters of a checker's message that are kept as a reason; it quotes the model's values."""

# Upstream reads Java and JavaScript values with regular expressions that backtrack: one of them takes time exponential
# in the brackets, others a power of the spaces. Accepted values stay far below: 152 characters, 2 brackets, 16 spaces.
_LITERAL_LENGTH = 1000
_LITERAL_BRACKETS = 10
_LITERAL_SPACES = 100


def graded(task: Mapping[str, Any], response: Response) -> Ruling:
    """Whether a response is right by upstream's rules, with the checker's error where it is not."""
    if response.malformed:
        # Where no call is right, an unreadable call must not count as no call: it would pass.
        return MALFORMED
    calls = decoded(response)
    if task["category"] in RELEVANCE:
        return _relevance(task["category"], bool(calls))
    if not calls:
        return Ruling(Verdict.FAIL, "the response has no readable call")
    spoken = language_of(task["category"])
    if spoken != "python" and not all(_bounded(call) for call in calls):
        return Ruling(Verdict.FAIL, f"a {spoken} value is beyond what an accepted one can be")
    try:
        result = ast_checker()(
            task["entry"]["function"],
            [{call.name: call.arguments} for call in calls],
            task["accepted"],
            language(spoken),
            task["category"],
            "stepdown",
        )
    except Exception as error:  # the checker was not written for what a model may send
        unread = f"the checker cannot read the response: {type(error).__name__}: {error}"
        return Ruling(Verdict.FAIL, shortened(unread))
    if result["valid"]:
        return Ruling(Verdict.PASS)
    return Ruling(Verdict.FAIL, shortened(f"{result['error_type']}: {_first(result['error'])}"))


def shortened(text: str) -> str:
    """One line of bounded length, fit to be stored."""
    line = " ".join(clean_text(text[: 2 * REASON_LENGTH]).split())
    return line if len(line) <= REASON_LENGTH else line[: REASON_LENGTH - 1] + "…"


def _relevance(category: str, called: bool) -> Ruling:
    if called == (category == "live_relevance"):
        return Ruling(Verdict.PASS)
    return Ruling(Verdict.FAIL, "a call where none is apt" if called else "no readable call where one is apt")


def _bounded(call: DecodedCall) -> bool:
    """Whether every text is small enough for the literals' expressions. The checker refuses all but text."""
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    return all(
        len(text) <= _LITERAL_LENGTH
        and text.count("[") <= _LITERAL_BRACKETS
        and sum(map(str.isspace, text)) <= _LITERAL_SPACES
        for text in texts
    )


def _first(errors: Sequence[Any]) -> str:
    return str(errors[0]) if errors else "no message"
