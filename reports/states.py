"""The section on what trials came to beside their verdicts: unsafe, complete, refused, technical, incomplete."""

from __future__ import annotations

from collections import Counter

from stepdown.builder.common.tables import Table
from stepdown.builder.records import OutcomeState
from stepdown.reports.facts import Facts
from stepdown.reports.section import Section

_STATES = tuple(state.value for state in OutcomeState)


def states(facts: Facts) -> Section | None:
    """What trials came to, by workload and by the model that made their step."""
    if facts.evidence is None or not facts.evidence.states:
        return None
    rows = [
        (workload, model, facts.tiers[tier], *_counts(found))
        for workload, by_model in sorted(facts.evidence.states.items())
        for (tier, model), found in sorted(by_model.items())
    ]
    return Section(
        "states",
        "What trials came to",
        "A trial has one state, by the calls that were executed and by what is so in the end, not by what a model says "
        "of itself. Unsafe goes before complete. Technical says nothing of a model, and is no safety.",
        (
            Table(
                "trials of the labelled steps by outcome and by the model that made the step",
                ("workload", "model", "tier", "trials", *_STATES),
                tuple(rows),
                words=3,
                note="later steps of a trial are the strong model's, so an outcome is not the tried model's alone",
            ),
        ),
    )


def _counts(found: Counter[str]) -> tuple[str, ...]:
    return str(found.total()), *(str(found[state]) for state in _STATES)
