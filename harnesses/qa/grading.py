"""The rules by which an answer is graded, as a config states them, and the graders that apply them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from stepdown.builder.common.extras import require
from stepdown.builder.common.text import printable
from stepdown.builder.config.validation import Strict
from stepdown.builder.errors import BadInput, Technical
from stepdown.builder.records import Ruling, Verdict
from stepdown.harnesses.qa.numbers import number, numbers
from stepdown.harnesses.qa.texts import Ignorable, normalised, occurs
from stepdown.harnesses.single_answer import GradeAnswer
from stepdown.judges.case import Text

SECONDS = 2.0
"""How many seconds a pattern may take on one answer."""
LONGEST_PATTERN = 2_000
_SHOWN = 8
"""How many numbers of an answer the evidence keeps."""

Answer = Annotated[Text, Field(strict=True)] | Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True)]
"""An accepted answer as it stands in a task file."""


class Exact(Strict):
    """The answer is one of the accepted ones."""

    by: Literal["exact"]
    ignore: tuple[Ignorable, ...] = ("space",)
    """What does not count: `case`, `space` (how much of it), `punctuation`."""


class Contains(Strict):
    """The accepted answers stand in the answer, as words of their own."""

    by: Literal["contains"]
    ignore: tuple[Ignorable, ...] = ("space",)
    need: Literal["any", "all"] = "any"


class Regex(Strict):
    """The accepted answers are patterns, one of which is found in the answer. `^` and `$` tie them to its ends."""

    by: Literal["regex"]
    ignore: tuple[Literal["case"], ...] = ()


class Numeric(Strict):
    """The answer's number is within the tolerance of an accepted one."""

    by: Literal["numeric"]
    absolute: float = Field(0.0, ge=0)
    relative: float = Field(0.0, ge=0)
    """Of the accepted number. The larger of the two tolerances counts."""
    number: Literal["only", "first", "last"] = "only"
    """Which number of the answer it is: one that is alone or always the same, the first, or the last."""


class JudgeRule(Strict):
    """The run's judge says it, from the context."""

    by: Literal["judge"]
    note: str = ""
    """What the judge should know of answers in general: their usual length, their form."""


GradingRule = Annotated[Exact | Contains | Regex | Numeric | JudgeRule, Field(discriminator="by")]
_GRADING: TypeAdapter[GradingRule] = TypeAdapter(GradingRule)


def grading_of(data: Mapping[str, Any]) -> GradingRule:
    """The grading that a task holds."""
    return _GRADING.validate_python(data)


def grader(rules: Exact | Contains | Regex | Numeric, answers: Sequence[Answer], row: str) -> GradeAnswer:
    """A grader that applies these rules. `row` names the task in messages.

    Raises BadInput, of the field `answers`, where an accepted answer is not of the kind that the rules compare.
    """
    if isinstance(rules, Numeric):
        return _numeric(rules, [_accepted_number(answer) for answer in answers])
    texts = [_text(answer) for answer in answers]
    if isinstance(rules, Regex):
        return _regex(rules, texts, row)
    wanted = [normalised(text, rules.ignore) for text in texts]
    if not all(text.strip() for text in wanted):
        raise BadInput("nothing is left of an accepted answer without what is ignored", field="answers")
    return _exact(rules, wanted) if isinstance(rules, Exact) else _contains(rules, wanted)


def _found(ok: bool, otherwise: str, seen: dict[str, Any]) -> Ruling:
    return Ruling(Verdict.PASS, grading=seen) if ok else Ruling(Verdict.FAIL, otherwise, seen)


def _text(answer: Answer) -> str:
    if not isinstance(answer, str) or not answer.strip():
        raise BadInput(f"must be text, not {answer!r}", field="answers")
    return answer


def _exact(rules: Exact, wanted: Sequence[str]) -> GradeAnswer:
    def grade(text: str) -> Ruling:
        ok = normalised(text, rules.ignore) in wanted
        return _found(ok, "not an accepted answer", {"by": "exact"})

    return grade


def _contains(rules: Contains, wanted: Sequence[str]) -> GradeAnswer:
    def grade(text: str) -> Ruling:
        said = normalised(text, rules.ignore)
        there = [occurs(one, said) for one in wanted]
        ok = all(there) if rules.need == "all" else any(there)
        missing = "an accepted answer is missing" if rules.need == "all" else "no accepted answer occurs"
        return _found(ok, missing, {"by": "contains", "occurs": there})

    return grade


def _regex(rules: Regex, patterns: Sequence[str], row: str) -> GradeAnswer:
    compiled = [_compiled(pattern, ignore_case="case" in rules.ignore) for pattern in patterns]

    def grade(text: str) -> Ruling:
        try:
            found = next((n for n, search in enumerate(compiled) if search(text)), None)
        except TimeoutError:
            # Neither right nor wrong: the answer is well formed, and the pattern takes for ever on it.
            raise Technical(
                f"{row}: a pattern takes more than {SECONDS:g} s on an answer: write it otherwise"
            ) from None
        return _found(found is not None, "no pattern is found in the answer", {"by": "regex", "pattern": found})

    return grade


def _compiled(pattern: str, ignore_case: bool) -> Callable[[str], bool]:
    """A pattern as a search that is given up with TimeoutError. Raises BadInput: no pattern, or not installed."""
    require("judge", "regex")
    import regex

    if len(pattern) > LONGEST_PATTERN:
        raise BadInput(f"a pattern has more than {LONGEST_PATTERN} characters", field="answers")
    try:
        made = regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        raise BadInput(f"no regular expression: {error}", field="answers") from None
    return lambda text: made.search(text, timeout=SECONDS) is not None


def _accepted_number(answer: Answer) -> Fraction:
    value = number(answer) if isinstance(answer, str) else Fraction(repr(answer))
    if value is None:
        raise BadInput(f"{printable(str(answer), 80)!r} is not a number", field="answers")
    return value


def _numeric(rules: Numeric, accepted: Sequence[Fraction]) -> GradeAnswer:
    absolute, relative = Fraction(repr(rules.absolute)), Fraction(repr(rules.relative))

    def grade(text: str) -> Ruling:
        found = numbers(text)
        seen = {"by": "numeric", "numbers": [printable(written, 40) for written, _ in found[:_SHOWN]]}
        if not found:
            return _found(False, "no number in the answer", seen)
        if rules.number == "only" and len({value for _, value in found}) > 1:
            return _found(False, "several numbers in the answer", seen)
        value = found[-1 if rules.number == "last" else 0][1]
        if value is None:
            return _found(False, "the answer's number cannot be read", seen)
        close = any(abs(value - one) <= max(absolute, relative * abs(one)) for one in accepted)
        return _found(close, "not within the tolerance of an accepted number", seen)

    return grade
