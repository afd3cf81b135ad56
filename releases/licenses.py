"""Under what terms the texts of the known workloads stand, as their makers state them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stepdown.builder.common.text import printable
from stepdown.releases.layout import License

KNOWN: Mapping[str, License] = {
    "bfcl": License(
        license="Apache-2.0",
        note="Questions, function definitions and simulated APIs of the Berkeley Function-Calling Leaderboard, as the "
        "bfcl-eval package has them.",
    ),
    "swebench": License(
        license="MIT and the licence of each repository",
        note="SWE-bench itself is MIT. Messages quote source code and issues of the repositories that its tasks are "
        "from; each stands under its repository's own licence.",
    ),
    "mtrag": License(
        license="see the benchmark and its corpora",
        note="Conversations of the mtRAG benchmark with passages of its corpora. The benchmark's terms and those of "
        "each corpus hold for them.",
    ),
    "qmsum": License(
        license="see the benchmark and its corpora",
        note="Queries and transcripts of QMSum, whose makers ask that it be used for research and cited. The "
        "transcripts "
        "are from the AMI and ICSI corpora and from parliamentary committees; their terms hold for them.",
    ),
    "pinchbench": License(
        license="see the benchmark",
        note="Tasks of PinchBench, under the terms that it states.",
    ),
    "planted": License(license="Apache-2.0", note="Made by stepdown itself, to test with; no real task."),
}


def license_of(benchmark: str) -> License:
    """What is known of a workload's terms; of a workload of one's own, that nothing is."""
    return KNOWN.get(benchmark) or License(
        license="not stated", note="A workload of the publisher's own: ask the publisher for its terms."
    )


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
