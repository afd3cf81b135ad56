"""Rows, evidence, audit queue and manifest of a run: functions of its protocol, responses and verdicts only.

`spend.json` alone says what was really paid, and may differ between two runs of one protocol.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from audit.cases import NameMask, lower_answers
from audit.queue import queue_entry
from audit.sampling import is_sampled
from builder.budget import kept, spent
from builder.files import WholeFile, digest_of
from builder.hints import PROMPT
from builder.ledger import InstanceRecord, Ledger, Purpose, State, TrialRecord
from builder.pool import Model, Pool
from builder.records import Lock, Trajectory, Usage, digest
from builder.runs import RunFolder
from builder.seeds import REFERENCE

ROWS, EVIDENCE, QUEUE = "question_bank.jsonl", "evidence.jsonl", "audit_queue.jsonl"
MANIFEST, SPEND = "manifest.json", "spend.json"
REFERENCE_NOTE = (
    "Seeds of source `reference` come from a pseudo-model that knows the benchmark's accepted answers. Their labels "
    "say which steps of such an ideal trajectory a cheaper model can take; they are not comparable with labels of "
    "seeds that a live model made."
)


@dataclass(slots=True)
class Summary:
    """What a release holds, by workload."""

    labels: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Rows by tier name."""
    instances: Counter[str] = field(default_factory=Counter)
    drops: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Instances that will have no rows, by reason."""
    blocked: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Instances that wait for a resume, by reason."""
    unfinished: int = 0
    seed_models: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @property
    def rows(self) -> int:
        return sum(sum(counts.values()) for counts in self.labels.values())


@dataclass(frozen=True, slots=True)
class Labelled:
    """A finished instance as the ledger has it."""

    record: InstanceRecord
    trajectory: Trajectory
    locks: tuple[Lock, ...]
    trials: tuple[TrialRecord, ...]
    hints: Mapping[int, int]


def labelled_instances(ledger: Ledger) -> Iterator[Labelled]:
    """Every finished instance, in the run's order, one in memory at a time."""
    for record in ledger.instances(State.DONE):
        if record.final is None:
            raise ValueError(f"instance {record.instance_id!r} is finished without a trajectory")
        trials = tuple(trial for trial in ledger.trials(record.id) if not trial.superseded)
        yield Labelled(record, ledger.trajectory(record.final), record.locks, trials, ledger.hints(record.id))


def row(instance: Labelled, index: int, pool: Pool) -> dict[str, Any]:
    """The released row of a step: exactly the fields of the published format, `tools` where the prefix has them."""
    step, lock, record = instance.trajectory[index - 1], instance.locks[index - 1], instance.record
    tier = pool.tiers[lock.tier]
    fields: dict[str, Any] = {
        "id": f"{record.benchmark}/{record.instance_id}/{index}",
        "benchmark": record.benchmark,
        "instance_id": record.instance_id,
        "step_index": index,
        "total_steps": len(instance.trajectory),
        "messages": list(step.prefix.messages),
        "target_tier": tier.name,
        "target_tier_id": tier.id,
    }
    if step.prefix.tools:
        fields["tools"] = list(step.prefix.tools)
    return fields


def evidence(instance: Labelled, index: int, pool: Pool) -> dict[str, Any]:
    """Why a step has its label: every trial that was executed for it, in order. Internal: it names models."""
    lock, record = instance.locks[index - 1], instance.record
    tiers = pool.tiers
    return {
        "id": f"{record.benchmark}/{record.instance_id}/{index}",
        "group": record.group,
        "basis": "executed",
        "lock": {"tier": tiers[lock.tier].name, "model": lock.model},
        "hint": tiers[instance.hints[index]].name if index in instance.hints else None,
        "trials": [
            trial_evidence(trial, tiers[trial.trial.tier].name) for trial in _search_trials(instance, index, pool)
        ],
        **_fresh_draws("confirm", [t for t in instance.trials if t.purpose is Purpose.CONFIRM]),
        **_fresh_draws(
            "control", [t for t in instance.trials if t.purpose is Purpose.CONTROL and t.trial.step == index]
        ),
    }


def trial_evidence(record: TrialRecord, tier: str) -> dict[str, Any]:
    """A trial as evidence shows it; `tier` is the name of its tier."""
    return {
        "tier": tier,
        "model": record.trial.model,
        "sample": record.trial.sample.number,
        "limit": record.trial.limit,
        "verdict": record.verdict.value,
        "accepted": record.accepted,
        "calls": record.calls,
        "reason": record.reason,
        **({"grading": record.grading} if record.grading is not None else {}),
    }


def _fresh_draws(name: str, trials: list[TrialRecord]) -> dict[str, Any]:
    """How fresh executions came out, where the protocol asks for them: how many, how many accepted, their verdicts."""
    if not trials:
        return {}
    verdicts = Counter(trial.verdict.value for trial in trials)
    accepted = sum(trial.accepted for trial in trials)
    return {name: {"of": len(trials), "accepted": accepted, "verdicts": dict(sorted(verdicts.items()))}}


def _search_trials(instance: Labelled, index: int, pool: Pool) -> list[TrialRecord]:
    """A step's trials in the protocol's order: tiers as they were probed, models as the cascade has them, samples.

    Models that are probed together are recorded as they end, which is no order of the protocol's.
    """
    found = [trial for trial in instance.trials if trial.purpose is Purpose.SEARCH and trial.trial.step == index]
    tiers = list(dict.fromkeys(trial.trial.tier for trial in found))
    models = [model.name for _, model in pool.models()]
    return sorted(
        found,
        key=lambda record: (
            tiers.index(record.trial.tier),
            models.index(record.trial.model),
            record.trial.sample.number,
        ),
    )


def write(run: RunFolder, multi_step: Mapping[str, bool]) -> Summary:
    """Write the run's files, unless they stand there as they would be written. Delete one to have all written anew.

    `multi_step` says of each benchmark whether its steps are audited.
    """
    return _standing(run) or _written(run, multi_step)


def _standing(run: RunFolder) -> Summary | None:
    """What the run's files hold, where nothing was recorded since they were written and no byte of them changed."""
    digests = run.ledger.released
    if digests is None or any(digest_of(run.path / name) != found for name, found in digests.items()):
        return None
    spend = json.loads((run.path / SPEND).read_bytes())
    if "unbooked" not in spend or spend["calls"] + spend["unbooked"]["calls"] != kept(run.path).calls:
        return None  # a trial that has not ended was paid for since
    manifest = json.loads((run.path / MANIFEST).read_bytes())
    summary = Summary(instances=Counter(manifest["instances"]), unfinished=manifest["unfinished"])
    for groups, found in (
        (summary.labels, manifest["labels"]),
        (summary.drops, manifest["dropped"]),
        (summary.blocked, manifest["blocked"]),
        (summary.seed_models, manifest["seeds"]["models"]),
    ):
        groups.update({benchmark: Counter(counts) for benchmark, counts in found.items()})
    return summary


def _written(run: RunFolder, multi_step: Mapping[str, bool]) -> Summary:
    protocol, ledger, pool = run.config.protocol, run.ledger, run.config.protocol.pool
    summary, mask = Summary(), NameMask(protocol.models.values())
    with ExitStack() as stack:
        rows, evidences, queue = (stack.enter_context(WholeFile(run.path, name)) for name in (ROWS, EVIDENCE, QUEUE))
        for instance in labelled_instances(ledger):
            benchmark = instance.record.benchmark
            summary.instances[benchmark] += 1
            summary.seed_models[benchmark][seed_model_of(instance.record, instance.trials)] += 1
            for index, lock in enumerate(instance.locks, 1):
                released = row(instance, index, pool)
                rows.write(released)
                evidences.write(evidence(instance, index, pool))
                summary.labels[benchmark][pool.tiers[lock.tier].name] += 1
                audited = multi_step.get(benchmark, True)
                if audited and is_sampled(protocol.audit.seed, released["id"], protocol.audit.rate):
                    lower = lower_answers(ledger, instance.trials, index, lock.tier, pool, mask)
                    queue.write(queue_entry(released, instance.trajectory[index - 1].response, lower))
        _count_unreleased(ledger, summary)
        files = {file.name: file.finish() for file in (rows, evidences, queue)}
        spend = stack.enter_context(WholeFile(run.path, SPEND))
        spend.write(_spend(run), indent=1)
        spend_file = spend.finish()
        # The manifest last: where it stands, the files it names are whole.
        manifest = stack.enter_context(WholeFile(run.path, MANIFEST))
        manifest.write(_manifest(run, summary, files), indent=1)
        written = {**files, SPEND: spend_file, MANIFEST: manifest.finish()}
    ledger.set_released({name: str(file["sha256"]) for name, file in written.items()})
    return summary


def seed_model_of(record: InstanceRecord, trials: Iterable[TrialRecord]) -> str:
    """The model that made a finished instance's seed; `trials` are the instance's."""
    return next(trial.trial.model for trial in trials if trial.id == record.seed)


def _count_unreleased(ledger: Ledger, summary: Summary) -> None:
    for record in ledger.instances(State.DROPPED, State.BLOCKED, State.OPEN):
        if record.state is State.DROPPED:
            summary.drops[record.benchmark][record.reason] += 1
        elif record.state is State.BLOCKED:
            summary.blocked[record.benchmark][record.reason] += 1
        else:
            summary.unfinished += 1


def _spend(run: RunFolder) -> dict[str, Any]:
    """What this run really paid, by purpose and model; what the cache answered is counted beside it.

    `unbooked` was paid for trials that have not ended, or lost when the run was killed.
    """
    ledger, models = run.ledger, run.config.protocol.models
    totals = ledger.call_totals()
    calls = sum(total.calls for total in totals if total.paid)
    usd = sum(_price(models, total.model, total.usage) for total in totals if total.paid)
    everything = spent(run.path, ledger, models)
    unbooked = everything.calls - calls
    paid = [
        {
            "purpose": total.purpose,
            "model": total.model,
            "calls": total.calls,
            "tokens": _tokens(total.usage),
            "usd": _price(models, total.model, total.usage),
        }
        for total in totals
        if total.paid
    ]
    return {
        "usd": round(usd, 6),
        "calls": calls,
        "unbooked": {"usd": round(everything.usd - usd, 6) if unbooked else 0.0, "calls": unbooked},
        "calls_paid_by_earlier_runs": sum(total.calls for total in totals if not total.paid),
        "errors_retried": ledger.retried_errors(),
        "by_model": paid,
    }


def _needed(ledger: Ledger, models: Mapping[str, Model]) -> dict[str, Any]:
    """The calls that the protocol needed, whoever paid for them, at list price."""
    calls: Counter[str] = Counter()
    usage: dict[str, Usage] = defaultdict(Usage)
    for total in ledger.call_totals():
        if total.purpose == Purpose.REPEAT:
            continue  # the audit's, not the protocol's
        calls[total.model] += total.calls
        usage[total.model] += total.usage
    price = sum(_price(models, model, used) for model, used in sorted(usage.items()))
    return {"calls": dict(sorted(calls.items())), "list_price_usd": round(price, 6)}


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "prompt": usage.prompt,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "completion": usage.completion,
    }


def _price(models: Mapping[str, Model], model: str, usage: Usage) -> float:
    entry = models.get(model)
    return round(entry.price.cost(usage), 6) if entry else 0.0


def _manifest(run: RunFolder, summary: Summary, files: Mapping[str, Any]) -> dict[str, Any]:
    protocol, pool = run.config.protocol, run.config.protocol.pool
    # As it was frozen: on a resume the config names the run's own copies of its files.
    frozen, judge = run.ledger.meta("protocol"), run.ledger.meta("judge")
    reference = any(pool.by_name[m].model == REFERENCE for counts in summary.seed_models.values() for m in counts)
    return {
        "pool": {
            "version": pool.version,
            "digest": digest(pool.model_dump(mode="json")),
            "tiers": [
                {"name": tier.name, "id": tier.id, "models": [model.name for model in tier.models]}
                for tier in pool.tiers
            ],
        },
        "workloads": run.ledger.meta("workloads"),
        "judge": {"rules": judge["rules"]} if judge else None,
        "prompts": {
            **({"hint": digest(PROMPT)} if protocol.hints.source == "model" else {}),
            **({"judge": judge["prompts"]} if judge else {}),
        },
        "protocol_digest": digest(frozen),
        "protocol": frozen,
        "seeds": {
            "models": {name: dict(sorted(counts.items())) for name, counts in sorted(summary.seed_models.items())},
            "note": REFERENCE_NOTE if reference else None,
        },
        "rows": summary.rows,
        "instances": dict(sorted(summary.instances.items())),
        "labels": {
            name: {tier.name: counts[tier.name] for tier in pool.tiers}
            for name, counts in sorted(summary.labels.items())
        },
        "dropped": {name: dict(sorted(counts.items())) for name, counts in sorted(summary.drops.items())},
        "blocked": {name: dict(sorted(counts.items())) for name, counts in sorted(summary.blocked.items())},
        "unfinished": summary.unfinished,
        "needed": _needed(run.ledger, protocol.models),
        "files": dict(files),
    }
