"""Puts probes to judges, as questions like any other, and says what each judge made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from stepdown.builder.config.protocol import JudgeConfig
from stepdown.builder.records import Ruling, Verdict
from stepdown.judges.case import JudgeCase, RefusalCase
from stepdown.judges.exam.probes import Probe, probe_beside
from stepdown.judges.exam.tally import Observation, Outcome
from stepdown.judges.panel import JudgeOpinion, opinion_of, rule_on_case
from stepdown.judges.voting import ResponseSource

SUBJECT = "probe"
"""What probes belong to in cache keys: no instance, so that one that is met again is not paid again."""


def examined(probe: Probe, panel: JudgeConfig, source: ResponseSource) -> Iterator[Observation]:
    """What each judge of the panel makes of a probe, one at a time. A judge that does not answer is passed over."""
    for model in panel.models:
        opinion = opinion_of(model, probe.case, panel, source, SUBJECT)
        if not opinion.is_unreachable:
            yield Observation(model.name, probe.kind, probe.case.digest, _outcome(probe, opinion))


def _outcome(probe: Probe, opinion: JudgeOpinion) -> Outcome:
    if opinion.verdict is Verdict.TECHNICAL:
        return "not believed"
    return "right" if (opinion.verdict is Verdict.PASS) == probe.is_honest else "wrong"


def rule_and_examine(case: JudgeCase | RefusalCase, panel: JudgeConfig, source: ResponseSource, subject: str) -> Ruling:
    """The panel's ruling on a case; beside every k-th case a probe is asked.

    What judges make of a probe stands in the grading and has no part in the ruling.
    """
    ruling = rule_on_case(case, panel, source, subject)
    probe = probe_beside(case, panel.probes) if isinstance(case, JudgeCase) else None
    if ruling.verdict is Verdict.TECHNICAL or probe is None:
        return ruling
    observed = [observation.to_json() for observation in examined(probe, panel, source)]
    grading: dict[str, Any] = dict(ruling.grading or {})
    return replace(ruling, grading={**grading, "judge": {**grading["judge"], "probes": observed}})
