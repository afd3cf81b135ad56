"""Sections on how the labels were found: locks, the cascade, what was held back, judge and audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stepdown.builder.common.tables import Table
from stepdown.reports.charts import Bars, Stacked
from stepdown.reports.facts import Facts, JudgedAnswers, LoweredSteps
from stepdown.reports.probes import single_probing
from stepdown.reports.section import Section, counted, percent


def locks(facts: Facts) -> Section | None:
    """Which model each step fell to."""
    if facts.evidence is None or not facts.evidence.locks:
        return None
    workloads = sorted(facts.evidence.locks)
    counts: Counter[tuple[int, str]] = Counter()
    for found in facts.evidence.locks.values():
        counts.update(found)
    order = sorted(counts, key=lambda lock: (lock[0], -counts[lock], lock[1]))
    rows = sum(counts.values())
    audited = facts.evidence.audited
    return Section(
        "locks",
        "Which model each lock fell to",
        "The model that was accepted for each step. The strong tier's own steps stayed with the model that made the "
        "seed.",
        (
            Table(
                "locks by model",
                ("model", "tier", "steps", "share", *workloads),
                tuple(
                    (
                        lock[1],
                        facts.tiers[lock[0]],
                        str(counts[lock]),
                        percent(counts[lock], rows),
                        *(str(facts.evidence.locks[workload][lock]) for workload in workloads),
                    )
                    for lock in order
                ),
                words=2,
                note=f"{counted(audited, 'label')} lowered by the audit below the tier of the lock" if audited else "",
            ),
        ),
        (
            Bars(
                tuple(lock[1] for lock in order),
                tuple(float(counts[lock]) for lock in order),
                tuple(lock[0] for lock in order),
                len(facts.tiers),
                "steps",
                "Steps by the model that was locked in, coloured by its tier",
            ),
        ),
    )


def cascade(facts: Facts) -> Section | None:
    """How many labels a single model per tier would have found."""
    if facts.evidence is None or not facts.evidence.found:
        return None
    groups = dict(sorted(facts.evidence.found.items()))
    if len(groups) > 1:
        groups["all"] = LoweredSteps(
            *(sum(getattr(found, name) for found in groups.values()) for name in LoweredSteps.__dataclass_fields__)
        )
    ranks = facts.evidence.ranks
    places = range(1, 1 + max(rank for counts in ranks.values() for rank in counts))
    tiers = [tier for tier in facts.tiers if tier in ranks]
    names = tuple("first" if place == 1 else f"model {place}" for place in places)
    table = tuple(tuple(ranks[tier][place] for place in places) for tier in tiers)
    return Section(
        "cascade",
        "Single probing against the cascade",
        "Of the labels below the strong tier, those that the tier's first model alone would have found. The others "
        "fell to a later model of the cascade; without it they would stand higher. On last steps no later step can "
        "have helped or harmed.",
        (
            Table(
                "labels below the strong tier that the first model alone would have found",
                ("workload", "steps", "by the first", "share", "last steps", "by the first", "share"),
                tuple(
                    (
                        name,
                        str(found.steps),
                        str(found.first),
                        percent(found.first, found.steps),
                        str(found.last_steps),
                        str(found.last_first),
                        percent(found.last_first, found.last_steps),
                    )
                    for name, found in groups.items()
                ),
            ),
            Table(
                "labels by the accepted model's place in the cascade",
                ("tier", *names),
                tuple((tier, *map(str, counts)) for tier, counts in zip(tiers, table, strict=True)),
            ),
        ),
        (Stacked(tuple(tiers), names, table, "Labels by the accepted model's place in the cascade of its tier"),),
    )


def probes(facts: Facts) -> Section | None:
    """What single probing would have labelled, where every model was tried."""
    return single_probing(facts.probes, facts.tiers) if facts.probes is not None else None


def drops(facts: Facts) -> Section | None:
    """What has no rows, and why."""
    rows: list[tuple[str, str, str, str]] = []
    for word, key in (("dropped", "dropped"), ("blocked", "blocked"), ("left out", "left_out")):
        for workload, reasons in sorted(_mapping(facts.bank.manifest.get(key)).items()):
            for reason, count in sorted(_mapping(reasons).items(), key=lambda item: (-_count(item[1]), item[0])):
                rows.append((str(workload), word, str(reason), str(_count(count))))
    held = _mapping(_mapping(facts.bank.manifest.get("audit")).get("held_back"))
    rows += [("", "held back by the audit", str(reason), str(_count(count))) for reason, count in sorted(held.items())]
    if unfinished := _count(facts.bank.manifest.get("unfinished")):
        rows.append(("", "unfinished", "not labelled yet", str(unfinished)))
    if not rows:
        return None
    done = sum(facts.instances.values())
    lead = f"Beside the {counted(done, 'instance')} in the rows. An instance is in them whole or not at all."
    return Section(
        "drops",
        "What was held back",
        lead,
        (Table("instances without rows", ("workload", "state", "reason", "instances"), tuple(rows), words=3),),
    )


def judge(facts: Facts) -> Section | None:
    """What a judge was asked, where there was one."""
    if facts.evidence is None or not any(judged.answers for judged in facts.evidence.judged.values()):
        return None
    rows = [(name, judged) for name, judged in sorted(facts.evidence.judged.items()) if judged.answers]
    return Section(
        "judge",
        "The judge",
        "Answers that a judge looked at. A flip is an answer that a judge model called passed and that the rules "
        "failed for what the same judge had observed; a split is a panel whose members did not agree.",
        (
            Table(
                "judged answers",
                ("workload", "answers", "failed", "flips", "share", "splits", "unusable"),
                tuple(
                    (
                        name,
                        str(judged.answers),
                        str(judged.failed),
                        str(judged.flips),
                        percent(judged.flips, judged.answers),
                        str(judged.split),
                        str(judged.unusable),
                    )
                    for name, judged in rows
                ),
                note="unusable: reports of a judge that were refused and asked for again",
            ),
            *_rules(rows),
            *_exams(facts),
        ),
    )


def _exams(facts: Facts) -> Iterator[Table]:
    exams = _mapping(_mapping(facts.bank.manifest.get("judge")).get("exam"))
    if not exams:
        return
    yield Table(
        "judges on answers of known worth",
        ("judge", "wrong answers failed", "good answers not passed", "not believed", "below its bar"),
        tuple(
            (str(judge), *(_share(found, name) for name in ("detection", "false_alarm", "not_believed")), _below(found))
            for judge, found in sorted(exams.items())
        ),
        note="asked among the real cases, and no part of any verdict; not believed: no report could be used",
    )


def _share(found: Any, name: str) -> str:
    share = _mapping(_mapping(found).get(name))
    return f"{_count(share.get('count'))} of {_count(share.get('of'))}"


def _below(found: Any) -> str:
    return "yes" if _mapping(found).get("below_bar") else "no"


def _rules(rows: Sequence[tuple[str, JudgedAnswers]]) -> Iterator[Table]:
    rules = sorted({rule for _, judged in rows for rule in judged.rules})
    if rules:
        yield Table(
            "answers by the rules that failed them",
            ("rule", *(name for name, _ in rows)),
            tuple((rule, *(str(judged.rules[rule]) for _, judged in rows)) for rule in rules),
            note="an answer may fail by several rules",
        )


def audit(facts: Facts) -> Section | None:
    """What human reviewers found."""
    audits = [
        _mapping(facts.bank.manifest.get("audit")),
        *(_mapping(run.get("audit")) for run in _released_runs(facts)),
    ]
    audits = [found for found in audits if found]
    if not audits:
        return None
    rows: list[tuple[str, ...]] = []
    for found in audits:
        for slice_ in found.get("workloads") or ():
            one = _mapping(slice_)
            sampled, tight = _count(one.get("sampled")), _count(one.get("tight"))
            rows.append(
                (
                    str(one.get("workload", "")),
                    str(_count(one.get("steps"))),
                    str(sampled),
                    percent(sampled, _count(one.get("steps"))),
                    str(_count(one.get("downgradeable"))),
                    str(_count(one.get("uncertain"))),
                    str(tight),
                    percent(tight, sampled),
                    _above_lowest(one),
                )
            )
    if not rows:
        return None
    lowered, reviewers = (sum(_count(found.get(name)) for found in audits) for name in ("lowered", "reviewers"))
    lead = (
        f"{counted(reviewers, 'reviewer')} asked of every sampled step above the lowest tier whether one tier lower "
        f"would still do; {counted(lowered, 'label')} lowered."
    )
    columns = (
        "workload",
        "steps",
        "sampled",
        "share",
        "downgradeable",
        "uncertain",
        "tight",
        "tight share",
        "above lowest",
    )
    return Section("audit", "The audit", lead, (Table("human audit", columns, tuple(rows)),))


def _above_lowest(audited: Mapping[str, Any]) -> str:
    """The tight share of the sampled steps that people were asked about: labels above the lowest tier."""
    if "lowest" not in audited:
        return "-"  # of a revision that asked about all of them, and does not count them apart
    sampled, tight, lowest = (_count(audited.get(name)) for name in ("sampled", "tight", "lowest"))
    return percent(tight - lowest, sampled - lowest)


def _released_runs(facts: Facts) -> list[Mapping[str, Any]]:
    """The manifests of the runs that a release was made of."""
    runs = facts.bank.manifest.get("runs")
    return [_mapping(run) for run in runs] if isinstance(runs, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one: anybody may have made the manifest."""
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if type(value) is int else 0
