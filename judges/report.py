"""What a judge model is asked for: observations, by one tool call. It does not decide the verdict.

The docstrings of the models here, and of their fields, are sent to judge models as part of the tool's schema: a changed
word makes another judge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from stepdown.builder.config.validation import Strict
from stepdown.builder.records import Response, Stop, Tool
from stepdown.judges.normalising import json_of, normalised

TOOL_NAME = "report"
RATINGS = ("faithfulness", "appropriateness", "completeness")

MOST_ENTRIES = 400
"""How many entries of a list are read: more than the longest answer has sentences."""
SCHEMA_LIMITS = {"maxItems": 60, "maxLength": 600}
"""The limits in the schema that a judge is shown. They are below what is read: a claim may quote several sentences, so
they cover any answer too, and they keep the grammar of a model whose output is constrained by the schema small."""

Quote = Annotated[str, Field(max_length=2000)]
Remark = Annotated[str, Field(max_length=600)]
Quotes = Annotated[tuple[Quote, ...], Field(max_length=20)]


class AskedPart(Strict):
    """Something that the current turn or query asks for, and that a complete answer must give."""

    part: Remark
    status: Literal["given", "partly", "missing", "uncertain"]
    answer_quote: Quote = ""
    """Where the answer gives it, word for word."""


class Resolution(Strict):
    """The primary criterion: does the answer resolve the current turn or query, completely and correctly?"""

    status: Literal["completely", "partly", "not", "uncertain"]
    reason: Remark


class Claim(Strict):
    """Something that the answer says."""

    answer_quote: Quote = Field(min_length=1)
    """Word for word from the answer."""
    kind: Literal["number", "date", "amount", "ratio", "vote", "name", "other", "no_claim"]
    """`no_claim`: a courtesy, an introduction, a heading; nothing in its sentence says anything about the subject."""
    crucial: bool
    """Whether somebody who asked this would rely on it."""
    status: Literal["supported", "derived", "given", "unsupported", "contradicted", "uncertain"]
    """`derived`: it follows from what the evidence says by counting, reckoning or converting; `given`: it only takes up
    what the user has said about themselves or their own case."""
    evidence_quotes: Quotes = ()
    """Word for word from the evidence: what supports or contradicts the claim, at most 60 words each."""
    note: Remark = ""


class ItemSettlement(Strict):
    """How one of the listed items of the answer, which the evidence does not have literally, turned out."""

    item: int = Field(ge=1)
    status: Literal["supported", "derived", "given", "harmless", "unsupported", "contradicted", "uncertain"]
    """`supported`: the evidence says it in other words; `derived`: it follows from what the evidence says by counting,
    reckoning or converting; `given`: the user said it of themselves or of their own case, and the answer takes it up;
    `harmless`: a name in a sentence that says nothing about the subject."""
    evidence_quotes: Quotes = ()
    note: Remark = ""


Ground = Literal["none", "unsupported", "contradicted", "missing", "off_topic", "wording", "length", "format"]
STYLE_GROUNDS: frozenset[str] = frozenset({"none", "wording", "length", "format"})
"""Grounds that concern how the answer says it, not what it says."""


class Rating(Strict):
    """One of the three ratings."""

    reason: Remark
    grounds: Annotated[tuple[Ground, ...], Field(max_length=8)] = ()
    """What keeps it from being a 5."""
    rating: Literal[1, 2, 3, 4, 5]


class Report(Strict):
    """A judge's observations about one answer."""

    parts: Annotated[tuple[AskedPart, ...], Field(min_length=1, max_length=MOST_ENTRIES)]
    stance: Literal["answers", "declines", "uncertain"]
    """`declines`: it refuses, or says that it cannot tell or that the information is not there."""
    resolution: Resolution
    claims: Annotated[tuple[Claim, ...], Field(min_length=1, max_length=MOST_ENTRIES)]
    items: Annotated[tuple[ItemSettlement, ...], Field(max_length=MOST_ENTRIES)] = ()
    faithfulness: Rating
    appropriateness: Rating
    completeness: Rating
    verdict: Literal["passed", "failed", "unsaid"] = "unsaid"
    """The judge's own word. It is kept and changes nothing."""


class MalformedReport(ValueError):
    """The response holds no report that can be used. The message quotes nothing of the response."""


def report_of(response: Response, answer: str = "") -> Report:
    """The report in a judge's response to a case with this answer. Raises MalformedReport.

    A report that is written as text in place of a call counts too, if the text is nothing else and is not copied from
    the answer.
    """
    if response.stop is Stop.REFUSED:
        raise MalformedReport("the judge refused")
    if response.stop is Stop.OVERFLOW:
        raise MalformedReport("the case does not fit the judge's context")
    try:
        return Report.model_validate_json(
            json.dumps(normalised(_reported_value(response, answer), _schema())), strict=True
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise MalformedReport(f"{_place(first['loc'])}: {first['type'].replace('_', ' ')}") from None


def _reported_value(response: Response, answer: str) -> Any:
    """The JSON value of the one call, of several calls that say the same, or of a text that is nothing else."""
    calls = {(call.name, call.arguments) for call in response.tool_calls}
    if len(calls) > 1 or any(name != TOOL_NAME for name, _ in calls):
        raise MalformedReport(f"one call of `{TOOL_NAME}` is wanted, and no other")
    text = next((arguments for _, arguments in calls), response.content)
    try:
        if response.malformed or (not calls and text.strip() in answer):
            raise ValueError
        return json_of(text)
    except ValueError:
        cut = " (it was cut off at its longest)" if response.stop is Stop.LENGTH else ""
        raise MalformedReport(f"there is no call of `{TOOL_NAME}` that can be read{cut}") from None


_FIELDS = {
    name for kind in (Report, AskedPart, Resolution, Claim, ItemSettlement, Rating) for name in kind.model_fields
}


def _place(path: tuple[int | str, ...]) -> str:
    """A path in the report. A key that is none of the report's own is not repeated: `?` stands for it."""
    return ".".join(str(step) if isinstance(step, int) or step in _FIELDS else "?" for step in path) or "the report"


def report_tool() -> Tool:
    """The tool that a judge reports by: the models above as one JSON Schema without references."""
    description = "Report what you observed about the answer. Quotes are word for word."
    return {"type": "function", "function": {"name": TOOL_NAME, "description": description, "parameters": _schema()}}


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
    # Defaults are dropped: some providers would take a field that has one for a field that need not be given.
    dropped = {"$defs", "default"} | ({"title"} if isinstance(schema.get("title"), str) else set())
    inlined = {key: _inlined(value, definitions) for key, value in schema.items() if key not in dropped}
    return inlined | {key: min(most, inlined[key]) for key, most in SCHEMA_LIMITS.items() if key in inlined}
