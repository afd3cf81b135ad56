"""Under what terms the texts of a release stand, as each workload says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stepdown.builder.common.text import printable
from stepdown.builder.config.validation import validated
from stepdown.harnesses.registry import facts_of
from stepdown.releases.layout import License, RunManifest


def license_of(benchmark: str, runs: Iterable[RunManifest] = ()) -> License:
    """What a workload says of its terms: in a run's manifest where it is somebody's own, else where it is installed; of
    another, that nothing is known. Raises BadInput.
    """
    for said in told_in(benchmark, runs):
        if isinstance(terms := said.get("terms"), dict):
            return validated(License, terms, field="workloads.terms")
    found = facts_of(benchmark).terms
    return License(license=found.license, note=found.note)


def limits_of(benchmark: str, runs: Iterable[RunManifest]) -> Iterable[str]:
    """The sentences on a release's card that are a workload's own, found as its terms are."""
    own = list(told_in(benchmark, runs))
    told = [said.get("known_limits") for said in own]
    listed = [str(sentence) for limits in told if isinstance(limits, list) for sentence in limits]
    return dict.fromkeys(listed) if own else facts_of(benchmark).known_limits


def told_in(benchmark: str, runs: Iterable[RunManifest]) -> Iterator[Mapping[str, Any]]:
    """What the runs' manifests tell of a workload that is somebody's own: its code need not be here."""
    for run in runs:
        yield from (said for said in run.workloads if said.get("benchmark") == benchmark and "terms" in said)


def notes(labels: str, licenses: Mapping[str, License]) -> str:
    """The text of LICENSE.md."""
    return "\n".join(
        [
            "# Licences",
            "",
            f"The labels, the counts and the documentation of this release: {printable(labels)}.",
            "",
            "The texts that rows quote are their workloads' own and stand under the terms of those:",
            "",
            *_lines(licenses),
            "",
        ]
    )


def _lines(licenses: Mapping[str, License]) -> Iterable[str]:
    for benchmark, found in sorted(licenses.items()):
        yield f"- **{printable(benchmark)}**: {printable(found.license)}. {printable(found.note)}"
