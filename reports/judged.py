"""Reads what a judge left with a trial, as far as a report counts it."""

from __future__ import annotations

from typing import Any

from reports.facts import Judged


def count_judged(judged: Judged, grading: Any, verdict: str) -> None:
    """Count one graded answer. Gradings of other kinds (a test report, say) are no judge's and pass uncounted."""
    panel = grading.get("panel") if isinstance(grading, dict) else None
    if not isinstance(panel, list) or not panel:
        return
    members = [member for member in panel if isinstance(member, dict)]
    verdicts = {str(member.get("verdict")) for member in members}
    judged.answers += 1
    judged.failed += verdict == "fail"
    judged.split += len(verdicts) > 1
