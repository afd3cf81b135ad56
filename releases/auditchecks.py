"""Whether a run's audit is the one that stands: its sample, what reviewers said, and the revision made of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stepdown.audit.settling import review_outcome
from stepdown.audit.store import FILE_NAME as AUDIT
from stepdown.audit.store import AuditStore
from stepdown.builder.artifacts.names import MANIFEST, QUEUE
from stepdown.releases.problems import Problems
from stepdown.releases.sources import RunSource


def check_audit(source: RunSource, problems: Problems) -> None:
    """Every step of a run's sample and all that was said of it must be in the revision that stands: the sample may have
    grown since it was made, and reviewers may have gone on."""
    if not (source.folder / AUDIT).is_file():
        return
    with AuditStore(source.folder) as store:
        sampled, asked, newer = store.count(), store.count_to_review(), store.revisions.count_newer_entries()
        is_settled = all(review_outcome(step).is_settled for step in store.reviewed())
    audit, again = source.manifest.audit, f"stepdown audit apply {source.folder}"
    if audit is None:
        if asked:
            ways = f"stepdown audit serve {source.folder}, then {again}"
            problem = f"people are asked about {asked} sampled steps, and no revision stands: {ways}"
            problems.add(source.name(MANIFEST), problem, field="audit")
        return
    if not sampled and (queued := _count_queued(source.folder)):
        ways = f"stepdown audit sample {source.folder}, review them, then {again}"
        problems.add(
            source.name(MANIFEST),
            f"no step was sampled, and the run has {queued} to audit: {ways}",
            field="audit.sampled",
        )
    said, said_asked = audit.get("sampled", 0), _asked(audit)
    if said != sampled and said_asked != asked:
        problem = f"{sampled} steps are sampled, and the revision that stands has {said}: {again}"
        problems.add(source.name(MANIFEST), problem, field="audit.sampled")
    if newer:
        problem = f"reviewers have said or been reassigned {newer} things since the latest revision: {again}"
        problems.add(source.name(MANIFEST), problem, field="audit")
    elif is_settled and audit.get("unsettled"):
        problem = f"all sampled steps are settled now, and the revision that stands is from before: {again}"
        problems.add(source.name(MANIFEST), problem, field="audit")


def _count_queued(run: Path) -> int:
    """How many steps a run's own protocol gives to reviewers."""
    try:
        with (run / QUEUE).open("rb") as lines:
            return sum(1 for _ in lines)
    except FileNotFoundError:
        return 0


def _asked(audit: Mapping[str, object]) -> int | None:
    """How many sampled steps people were asked about; None of a revision that does not tell them apart."""
    sampled, lowest = audit.get("sampled"), audit.get("lowest")
    return sampled - lowest if isinstance(sampled, int) and isinstance(lowest, int) else None
