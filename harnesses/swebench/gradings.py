"""What a grading of a patch comes to, and what it rests on."""

from __future__ import annotations

from typing import Literal

from stepdown.builder.config.validation import JsonObject, Strict
from stepdown.builder.records import Verdict
from stepdown.harnesses.swebench.canary import Sign
from stepdown.harnesses.swebench.client import Bound


class GradingUsage(Strict):
    """What one grading took."""

    seconds: float = 0.0
    memory: int | None = None
    """The peak in bytes, page cache included; None where it is not known."""
    disk: int = 0
    """Bytes written beyond the image's."""


class PatchGrading(Strict):
    """The verdict on one patch of one instance, and what it rests on."""

    verdict: Literal[Verdict.PASS, Verdict.FAIL, Verdict.INCOMPLETE]
    """Incomplete only where gradings of a seed's patch differ: they come to no verdict."""
    reason: str = ""
    patch: str = ""
    """SHA-256 of the patch."""
    report: JsonObject | None = None
    """The official report on the instance, as it is."""
    over: Bound | None = None
    """The limit that the tests were over."""
    infrastructure: tuple[str, ...] = ()
    """Paths of test infrastructure that the patch touches."""
    canary: Sign | None = None
    """What became of a test that must fail, in one more grading of a patch that passes; None where there was none."""
    usage: GradingUsage = GradingUsage()

    def evidence(self) -> JsonObject:
        """What an auditor wants of it: a function of the patch, without times or figures of this machine.

        `infra_failure` is a pattern over output that the patch controls: shown, never believed.
        """
        shown: JsonObject = {"patch": self.patch, "over": self.over, "canary": self.canary}
        shown["infrastructure"] = list(self.infrastructure) or None
        report = self.report or {}
        for name in ("resolved", "patch_successfully_applied", "infra_failure", "infra_failure_reason"):
            if name in report:
                shown[name] = report[name]
        for name, tests in report.get("tests_status", {}).items():
            if name in ("FAIL_TO_PASS", "PASS_TO_PASS"):
                shown[name] = {"success": len(tests["success"]), "failure": sorted(tests["failure"])}
        return {name: value for name, value in shown.items() if value is not None}
