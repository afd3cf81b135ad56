"""The manifest: what a run's files hold, and under which protocol they were made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from stepdown.builder.artifacts.spend import list_price
from stepdown.builder.artifacts.summary import Summary
from stepdown.builder.common.files import FileDigest
from stepdown.builder.config.price import Price
from stepdown.builder.config.protocol import JudgeConfig, ProtocolConfig
from stepdown.builder.engine.hints import PROMPT
from stepdown.builder.engine.seeds import REFERENCE
from stepdown.builder.records import Usage, digest
from stepdown.builder.run.folder import RunFolder
from stepdown.builder.run.ledger import BESIDE_LABELS, CallTotal, Ledger, Purpose
from stepdown.judges.exam.tally import Tally, observations_of

REFERENCE_NOTE = (
    "Seeds of source `reference` come from a pseudo-model that knows the benchmark's accepted answers. Their labels "
    "say which steps of such an ideal trajectory a cheaper model can take; they are not comparable with labels of "
    "seeds that a live model made."
)


def _needed(totals: Iterable[CallTotal], prices: Mapping[str, Price]) -> dict[str, Any]:
    """These calls, whoever paid for them, at list price."""
    calls: Counter[str] = Counter()
    usage: dict[str, Usage] = defaultdict(Usage)
    for total in totals:
        calls[total.model] += total.calls
        usage[total.model] += total.usage
    price = sum(list_price(prices, model, used) for model, used in sorted(usage.items()))
    return {"calls": dict(sorted(calls.items())), "list_price_usd": round(price, 6)}


def _exam(ledger: Ledger, judge: JudgeConfig | None) -> dict[str, Any]:
    """What probes say of each judge: how many wrong answers it failed, and how many good ones it did not pass."""
    if judge is None:
        return {}
    tally = Tally(seen for grading in ledger.gradings() for seen in observations_of(grading))
    return tally.to_json(judge.bar, lambda share: {"count": share.count, "of": share.of})


def _probes(protocol: ProtocolConfig, totals: Iterable[CallTotal], probed: Mapping[str, int]) -> dict[str, Any]:
    """How many cells of the grid have which verdict, and what trying them needed beside the labels."""
    if protocol.rules.probe == "none":
        return {}
    needed = _needed([total for total in totals if total.purpose == Purpose.PROBE], protocol.prices)
    return {"probes": {"verdicts": dict(sorted(probed.items())), "needed": needed}}


def manifest_of(
    run: RunFolder,
    summary: Summary,
    files: Mapping[str, FileDigest],
    totals: Collection[CallTotal],
    probed: Mapping[str, int],
) -> dict[str, Any]:
    """The manifest of a run whose other files are `files`, whose ledger's totals are `totals`, and whose grid of probes
    has so many cells of each verdict.
    """
    protocol, pool = run.config.protocol, run.config.protocol.pool
    # As it was frozen: on a resume the config names the run's own copies of its files.
    frozen, versions = run.ledger.meta.run.protocol, run.ledger.meta.versions.to_json()
    judge, own = versions["judge"], run.ledger.meta.own_facts()
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
        "workloads": [{**workload, **own.get(workload["benchmark"], {})} for workload in versions["workloads"]],
        "judge": {"rules": judge["rules"], "exam": _exam(run.ledger, protocol.judge)} if judge else None,
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
        "needed": _needed([total for total in totals if total.purpose not in BESIDE_LABELS], protocol.prices),
        **_probes(protocol, totals, probed),
        "files": {name: asdict(file) for name, file in files.items()},
    }
