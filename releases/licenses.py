"""Under what terms the texts of a release stand, as each workload says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stepdown.builder.common.text import printable
from stepdown.harnesses.registry import facts_of
from stepdown.releases.layout import License


def license_of(benchmark: str) -> License:
    """What an installed workload says of its terms; of another, that nothing is known. Raises BadInput."""
    terms = facts_of(benchmark).terms
    return License(license=terms.license, note=terms.note)


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
