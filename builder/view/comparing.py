"""Two trials side by side: what they are, and how their answers and gradings differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stepdown.builder.inspect.explain import TrialCost
from stepdown.builder.pages.blocks import laid_out
from stepdown.builder.records import Response
from stepdown.builder.run.ledger.browsing import TrialInShort
from stepdown.builder.view.difference import TextDifference, difference
from stepdown.builder.view.shown_run import ShownRun
from stepdown.builder.view.trial import verdict_words


@dataclass(frozen=True, slots=True)
class Fact:
    """What both trials say of one thing."""

    name: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        return self.left != self.right


@dataclass(frozen=True, slots=True)
class TrialComparison:
    """Two trials and their difference."""

    left: TrialInShort
    right: TrialInShort
    left_name: str
    right_name: str
    """The steps that they were made for, as ids of rows; of a seed the instance."""
    facts: tuple[Fact, ...]
    answers: TextDifference | None
    """None where neither answer is kept."""
    missing: tuple[int, ...]
    """Trials whose answer is not kept."""
    gradings: TextDifference | None
    """None where neither has one."""


def compared(run: ShownRun, left: TrialInShort, right: TrialInShort) -> TrialComparison:
    """Two trials of a run, of one step or of any."""
    browsing = run.ledger.browsing
    answers = [browsing.response(one.id, one.step) for one in (left, right)]
    texts = [answer_text(found[0]) if found else "" for found in answers]
    gradings = [_laid(browsing.grading(one.id)) for one in (left, right)]
    facts = zip(_facts(run, left), _facts(run, right), strict=True)
    return TrialComparison(
        left,
        right,
        _name(run, left),
        _name(run, right),
        tuple(Fact(name, first, second) for (name, first), (_, second) in facts),
        difference(*texts) if any(answers) else None,
        tuple(one.id for one, found in zip((left, right), answers, strict=True) if found is None),
        difference(*gradings) if any(gradings) else None,
    )


def answer_text(response: Response) -> str:
    """An answer as one text: what it says, then its calls, their arguments laid out.

    >>> from stepdown.builder.records import ToolCall
    >>> print(answer_text(Response("I look.", (ToolCall("ls", '{"path": "a"}'),))))
    I look.
    calls ls
    {"path": "a"}
    """
    parts = [response.content] if response.content else []
    for call in response.tool_calls:
        parts += [f"calls {call.name}", _laid(call.arguments)]
    return "\n".join(parts)


def _laid(text: str) -> str:
    return laid_out(text) or text


def _name(run: ShownRun, trial: TrialInShort) -> str:
    (record,) = run.ledger.browsing.records([trial.instance])
    name = f"{record.benchmark}/{record.instance_id}"
    return f"{name}/{trial.step}" if trial.step else name


def _facts(run: ShownRun, trial: TrialInShort) -> Iterator[tuple[str, str]]:
    calls = [call for call in run.ledger.browsing.calls_by_trial(trial.instance) if call.owner == trial.id]
    cost = run.costs(calls).get(trial.id, TrialCost())
    yield "made for", trial.purpose.value
    yield "tier", run.tiers[trial.tier]
    yield "model", trial.model
    yield "sample", str(trial.sample)
    yield "verdict", verdict_words(trial)
    yield "outcome", trial.state.value if trial.state else ""
    yield "calls in all", str(trial.calls)
    yield "limit", "none" if trial.limit is None else str(trial.limit)
    yield "asked first", str(cost.calls)
    yield "list price", f"${cost.usd:.6f}"
    yield "reason", trial.reason
