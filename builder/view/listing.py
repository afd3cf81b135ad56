"""The run's instances, those that are wanted, a page at a time: state, labels, trials and cost."""

from __future__ import annotations

from dataclasses import dataclass

from stepdown.builder.inspect.explain import TrialCost
from stepdown.builder.run.ledger import InstanceRecord
from stepdown.builder.run.ledger.browsing import TrialInShort
from stepdown.builder.run.ledger.finding import Found, SearchPosition, SearchTerms
from stepdown.builder.view.shown_run import ShownRun

PAGE = 40
"""Instances of a page."""


@dataclass(frozen=True, slots=True)
class MatchView:
    """A trial of an instance that is wanted, or a step of it that has the words."""

    trial: TrialInShort
    step: int


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An instance in the list."""

    record: InstanceRecord
    trials: int
    cost: TrialCost
    matches: tuple[MatchView, ...]
    more_matches: int

    @property
    def id(self) -> str:
        return f"{self.record.benchmark}/{self.record.instance_id}"


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of instances."""

    rows: tuple[InstanceRow, ...]
    rest: SearchPosition | None
    """From where to look on; None at the run's end."""
    last: int
    """The last instance, by its place in the run, that was looked at."""

    @property
    def is_full(self) -> bool:
        """Whether it ends because there are many; else because a look is bounded, or at the run's end."""
        return len(self.rows) == PAGE


def listing(run: ShownRun, wanted: SearchTerms, after: SearchPosition) -> Listing:
    """The page of wanted instances after a place of the run."""
    ledger = run.ledger
    look = ledger.finding.find(wanted, after, PAGE)
    ids = [found.instance for found in look.found]
    records = {record.id: record for record in ledger.browsing.records(ids)}
    counts = ledger.browsing.trial_counts(ids)
    costs = run.costs(ledger.browsing.calls_by_instance(ids))
    rows = tuple(
        _row(run, found, records[found.instance], counts.get(found.instance, 0), costs.get(found.instance, TrialCost()))
        for found in look.found
    )
    return Listing(rows, look.rest, look.last)


def _row(run: ShownRun, found: Found, record: InstanceRecord, trials: int, cost: TrialCost) -> InstanceRow:
    shown = []
    for match in found.matches:
        trial = run.ledger.browsing.trial(match.trial)
        if trial is not None:
            shown.append(MatchView(trial, match.step))
    return InstanceRow(record, trials, cost, tuple(shown), found.count - len(shown))
