"""What a judge model is asked for: observations, through one tool call. The verdict is not its to give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from stepdown.builder.config.validation import Strict
from stepdown.builder.records import Response, Stop, Tool
from stepdown.judges.reading import json_of, meant

NAME = "report"
RATINGS = ("faithfulness", "appropriateness", "completeness")

MOST = 400
"""Entries of a list that are read: more than the sentences of the longest answer."""
ASKED = {"maxItems": 60, "maxLength": 600}
"""What is asked for at most. A claim may quote several sentences, so this covers any answer too, and keeps the grammar
of models that are constrained to it small; who is not constrained may exceed it."""

Quote = Annotated[str, Field(max_length=2000)]
Words = Annotated[str, Field(max_length=600)]
Quotes = Annotated[tuple[Quote, ...], Field(max_length=20)]


class AskedPart(Strict):
    """Something that the current turn or query asks for, and that a complete answer must give."""

    part: Words
    status: Literal["given", "partly", "missing", "uncertain"]
    answer_quote: Quote = ""
    """Where the answer gives it, word for word."""


class Resolution(Strict):
    """The primary criterion: does the answer resolve the current turn or query, completely and correctly?"""

    status: Literal["completely", "partly", "not", "uncertain"]
    reason: Words


class Claim(Strict):
    """Something that the answer says."""

    answer_quote: Quote = Field(min_length=1)
    """Word for word from the answer."""
    kind: Literal["number", "date", "amount", "ratio", "vote", "name", "other", "no_claim"]
    """`no_claim`: a courtesy, an introduction, or what the user said repeated."""
    crucial: bool
    """Whether somebody who asked this would rely on it."""
    status: Literal["supported", "derived", "unsupported", "contradicted", "uncertain"]
    """`derived`: it follows from what the evidence says by counting, reckoning or converting."""
    evidence_quotes: Quotes = ()
    """Word for word from the evidence: what supports or contradicts the claim."""
    note: Words = ""


class ItemSettlement(Strict):
    """How one of the listed items of the answer, which the evidence does not have literally, turned out."""

    item: int = Field(ge=1)
    status: Literal["supported", "derived", "harmless", "unsupported", "contradicted", "uncertain"]
    """`supported`: the evidence says it in other words; `derived`: it follows from what the evidence says by counting,
    reckoning or converting; `harmless`: it says nothing about the subject (names and units only)."""
    evidence_quotes: Quotes = ()
    note: Words = ""


Ground = Literal["none", "unsupported", "contradicted", "missing", "off_topic", "wording", "length", "format"]
STYLE: frozenset[str] = frozenset({"none", "wording", "length", "format"})
"""Grounds that say nothing against what the answer says."""


class Rating(Strict):
    """One of the three ratings."""

    reason: Words
    grounds: Annotated[tuple[Ground, ...], Field(max_length=8)] = ()
    """What keeps it from being a 5."""
    rating: Literal[1, 2, 3, 4, 5]


class Report(Strict):
    """A judge's observations about one answer."""

    parts: Annotated[tuple[AskedPart, ...], Field(min_length=1, max_length=MOST)]
    stance: Literal["answers", "declines", "uncertain"]
    """`declines`: it refuses, or says that it cannot tell or that the information is not there."""
    resolution: Resolution
    claims: Annotated[tuple[Claim, ...], Field(min_length=1, max_length=MOST)]
    items: Annotated[tuple[ItemSettlement, ...], Field(max_length=MOST)] = ()
    faithfulness: Rating
    appropriateness: Rating
    completeness: Rating
    verdict: Literal["passed", "failed", "unsaid"] = "unsaid"
    """The judge's own word. It is kept and changes nothing."""


class Malformed(ValueError):
    """The response holds no report that could be used. The message quotes nothing of it."""


def read(response: Response, answer: str = "") -> Report:
    """The report of a judge's response to a case with this answer. Raises Malformed.

    A report written out in place of a call counts too, if it is all that was written and not the answer's own words.
    """
    if response.stop is Stop.REFUSED:
        raise Malformed("the judge refused")
    if response.stop is Stop.OVERFLOW:
        raise Malformed("the case does not fit the judge's context")
    try:
        return Report.model_validate_json(json.dumps(meant(_said(response, answer), _schema())), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise Malformed(f"{_place(first['loc'])}: {first['type'].replace('_', ' ')}") from None


def _said(response: Response, answer: str) -> Any:
    """The JSON value of the one call, of calls that say the same, or of a text that is nothing else."""
    calls = {(call.name, call.arguments) for call in response.tool_calls}
    if len(calls) > 1 or any(name != NAME for name, _ in calls):
        raise Malformed(f"one call of `{NAME}` is wanted, and no other")
    text = next((arguments for _, arguments in calls), response.content)
    try:
        if response.malformed or (not calls and text.strip() in answer):
            raise ValueError
        return json_of(text)
    except ValueError:
        cut = " (it was cut off at its longest)" if response.stop is Stop.LENGTH else ""
        raise Malformed(f"there is no call of `{NAME}` that can be read{cut}") from None


_FIELDS = {
    name for kind in (Report, AskedPart, Resolution, Claim, ItemSettlement, Rating) for name in kind.model_fields
}


def _place(path: tuple[int | str, ...]) -> str:
    """A path in the report; a key that it should not have is not repeated."""
    return ".".join(str(step) if isinstance(step, int) or step in _FIELDS else "?" for step in path) or "the report"


def tool() -> Tool:
    """The tool by which a judge reports: the models above as one JSON Schema, without references."""
    description = "Report what you observed about the answer. Quotes are word for word."
    return {"type": "function", "function": {"name": NAME, "description": description, "parameters": _schema()}}


@cache
def _schema() -> Any:
    schema = Report.model_json_schema()
    return _inlined(schema, schema.get("$defs", {}))


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    if "$ref" in schema:
        target = definitions[str(schema["$ref"]).rpartition("/")[2]]
        return _inlined({**target, **{key: value for key, value in schema.items() if key != "$ref"}}, definitions)
    # What is not required here may be left out; a default would only tell some providers that it need not be.
    dropped = {"$defs", "default"} | ({"title"} if isinstance(schema.get("title"), str) else set())
    inlined = {key: _inlined(value, definitions) for key, value in schema.items() if key not in dropped}
    return inlined | {key: min(most, inlined[key]) for key, most in ASKED.items() if key in inlined}
