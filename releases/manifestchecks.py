"""What a manifest must say of its runs and of itself, and what the rows must come to for it to be true."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from stepdown.builder.records import digest
from stepdown.releases.layout import ANY, Manifest, RunManifest, Split
from stepdown.releases.problems import FieldProblem
from stepdown.releases.rowchecks import Counts

BY_PUBLISHER = "left out by the publisher"
UNFINISHED = "unfinished"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def manifest_problems(manifest: Manifest) -> Iterator[FieldProblem]:
    """What is wrong with the manifest by itself."""
    yield from _tiers(manifest)
    for number, run in enumerate(manifest.runs):
        for name, problem in run_problems(run):
            yield f"runs.{number}.{name}", problem
        if (run.unfinished or run.blocked) and not manifest.partial:
            yield f"runs.{number}", "has instances left to do, and the release does not say that it is partial"
    yield from _consistent(manifest)


def run_problems(run: RunManifest) -> Iterator[FieldProblem]:
    """What keeps a run out of a release: sources that are not pinned, audit verdicts that are not settled."""
    yield from _pinned(run)
    yield from _digests(run)
    yield from _models(run)
    yield from _seeds(run)
    yield from _audit(run)


def _tiers(manifest: Manifest) -> Iterator[FieldProblem]:
    tiers = [(tier.name, tier.id) for tier in manifest.tiers]
    for part, values in (("name", [name for name, _ in tiers]), ("id", [number for _, number in tiers])):
        if len(set(values)) < len(values):
            yield "tiers", f"two tiers have the same {part}"
    for number, run in enumerate(manifest.runs):
        for place, pool in (("pool", run.pool), ("protocol.pool", run.protocol.get("pool"))):
            if tiers_of(pool) != tiers:
                yield f"runs.{number}.{place}.tiers", "not the tiers of the release, in their order"


def tiers_of(pool: Any) -> list[tuple[Any, Any]] | None:
    """Names and ids of a pool's tiers; None where it has none that can be read."""
    tiers = pool.get("tiers") if isinstance(pool, dict) else None
    if not isinstance(tiers, list) or not all(isinstance(tier, dict) for tier in tiers):
        return None
    return [(tier.get("name"), tier.get("id")) for tier in tiers]


def _pinned(run: RunManifest) -> Iterator[FieldProblem]:
    if not isinstance(run.pool.get("version"), str) or not run.pool["version"]:
        yield "pool.version", "is missing: a pool without a version can not be named"
    if not run.workloads:
        yield "workloads", "is empty"
    for index, workload in enumerate(run.workloads):
        for name in ("benchmark", "version"):
            if not isinstance(workload.get(name), str) or not workload[name].strip():
                yield f"workloads.{index}.{name}", "is missing: the source is not pinned"
    known = {workload.get("benchmark") for workload in run.workloads if isinstance(workload.get("benchmark"), str)}
    for benchmark in run.instances:
        if benchmark not in known:
            yield "workloads", f"has no version of {benchmark}: the source is not pinned"
    parts = [("hints", run.protocol.get("hints"))]
    workloads = run.protocol.get("workloads")
    for index, workload in enumerate(workloads if isinstance(workloads, list) else []):
        parts.append((f"workloads.{index}.seeds", workload.get("seeds") if isinstance(workload, dict) else None))
    for place, part in parts:
        if isinstance(part, dict) and part.get("file") is not None and not _is_digest(part.get("sha256")):
            yield f"protocol.{place}.sha256", "is missing: the file it names is not pinned"
    for name in ("question_bank.jsonl", "evidence.jsonl"):
        if not _is_digest(run.files.get(name, {}).get("sha256")):
            yield f"files.{name}.sha256", "is missing"


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _digests(run: RunManifest) -> Iterator[FieldProblem]:
    """The digests that name protocol and pool; where a path was shortened the digest is of what stood there before."""
    shortened = (run.model_extra or {}).get("shortened")
    if not shortened and run.protocol_digest != digest(run.protocol):
        yield "protocol_digest", "not that of the protocol"
    pool = run.protocol.get("pool")
    if not shortened and run.pool.get("digest") != digest(pool):
        yield "pool.digest", "not that of the protocol's pool"
    if isinstance(pool, dict) and run.pool.get("version") != pool.get("version"):
        yield "pool.version", "not that of the protocol's pool"


def _seeds(run: RunManifest) -> Iterator[FieldProblem]:
    """Each instance has one seed, which passed and which a strong model made: a run keeps no other."""
    models = run.seeds.get("models")
    strong = _strong(run.pool)
    for benchmark, count in run.instances.items():
        made = models.get(benchmark) if isinstance(models, dict) else None
        if not isinstance(made, dict) or not all(type(number) is int for number in made.values()):
            if count:
                yield f"seeds.models.{benchmark}", "is missing: nothing says who made the seeds"
            continue
        if sum(made.values()) != count:
            yield f"seeds.models.{benchmark}", f"{sum(made.values())} seeds of {count} instances"
        for model in made:
            if model not in strong:
                yield f"seeds.models.{benchmark}", f"{model!r} is no model of the strong tier"


def _models(run: RunManifest) -> Iterator[FieldProblem]:
    """Each tier has models, and both lists of them agree: their names are looked for in the rows."""
    protocol = run.protocol.get("pool")
    for index, (said, priced) in enumerate(zip(_tier_models(run.pool), _tier_models(protocol), strict=False)):
        names = [model.get("name") if isinstance(model, dict) else None for model in priced]
        if not said or said != names:
            yield f"pool.tiers.{index}.models", "not the names of the models of the protocol's pool"


def _tier_models(pool: Any) -> list[list[Any]]:
    """The models of each tier, as they stand there."""
    tiers = pool.get("tiers") if isinstance(pool, dict) else None
    found = [
        tier.get("models") if isinstance(tier, dict) else None for tier in (tiers if isinstance(tiers, list) else ())
    ]
    return [models if isinstance(models, list) else [] for models in found]


def _strong(pool: Any) -> list[Any]:
    tiers = _tier_models(pool)
    return tiers[-1] if tiers else []


_WITHOUT_AUDIT = "`audit: {rate: 0}` in the config, and stepdown relabel RUN --config CONFIG --run NEW"


def _audit(run: RunManifest) -> Iterator[FieldProblem]:
    queued = run.files.get("audit_queue.jsonl", {}).get("lines")
    if run.audit is None:
        if queued != 0:
            problem = f"{queued} steps were sampled for the audit and no revision stands"
            audited = "stepdown audit sample RUN, review them, then stepdown audit apply RUN"
            yield "audit", f"{problem}: {audited}; or have no audit: {_WITHOUT_AUDIT}"
        return
    unsettled = run.audit.get("unsettled")
    if unsettled != 0 or type(unsettled) is not int:
        yield "audit.unsettled", f"{unsettled} audit verdicts are not settled{_how_to_settle(run.audit)}"
    elif run.audit.get("sampled") != run.audit.get("settled"):
        yield "audit.settled", f"{run.audit.get('settled')} of {run.audit.get('sampled')} sampled steps are settled"


def _how_to_settle(audit: Mapping[str, Any]) -> str:
    """What its publisher has to do about the sampled steps of a run that are not settled."""
    unsettled, disputed = audit.get("unsettled"), audit.get("disputed", 0)
    if type(unsettled) is not int or type(disputed) is not int:
        return ""
    ways = []
    if unsettled > disputed:
        ways.append(f"{unsettled - disputed} wait for reviewers (stepdown audit serve RUN)")
    if disputed:
        ways.append(f"on {disputed} reviewers disagree (stepdown audit sample RUN --settle NAME asks one more)")
    return f": {', '.join(ways)}; then stepdown audit apply RUN"


def left_out_of(runs: tuple[RunManifest, ...]) -> dict[str, Counter[str]]:
    """Instances that the runs themselves leave out, by benchmark and reason."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for run in runs:
        for word, groups in (("dropped", run.dropped), ("blocked", run.blocked)):
            for benchmark, reasons in groups.items():
                for reason, count in reasons.items():
                    found[benchmark][f"{word}: {reason}"] += count
        if run.unfinished:
            found[ANY][UNFINISHED] += run.unfinished
        held = (run.audit or {}).get("held_back")
        for reason, count in held.items() if isinstance(held, dict) else ():
            if type(count) is int and count:
                found[ANY][f"audit: {reason}"] += count
    return found


def _consistent(manifest: Manifest) -> Iterator[FieldProblem]:
    """What must follow from the runs, and from one part of the manifest for another."""
    given = {name: dict(reasons) for name, reasons in manifest.left_out.items()}
    withheld = {name: reasons.pop(BY_PUBLISHER, 0) for name, reasons in given.items()}
    if {name: reasons for name, reasons in given.items() if reasons} != left_out_of(manifest.runs):
        yield "left_out", "not what the runs leave out"
    there: Counter[str] = Counter()
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    for run in manifest.runs:
        there.update(run.instances)
        for benchmark, counts in run.labels.items():
            labels[benchmark].update(counts)
    for benchmark in sorted({*there, *manifest.instances}):
        left = there[benchmark] - withheld.get(benchmark, 0)
        if manifest.instances.get(benchmark, 0) != left:
            yield f"instances.{benchmark}", f"the runs have {left}"
    if not any(withheld.values()) and _counts(manifest.labels) != _counts(labels):
        yield "labels", "not those of the runs"
    if manifest.rows == 0:
        yield "rows", "there are none"
    if set(manifest.licenses) != set(manifest.labels):
        yield "licenses", "must name the terms of each benchmark, and of no other"
    if set(manifest.splits) - {"train", "test"}:
        yield "splits", "there are train and test"


def _counts(groups: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Without what is zero."""
    found = {name: {key: count for key, count in counts.items() if count} for name, counts in groups.items()}
    return {name: counts for name, counts in found.items() if counts}


def count_problems(manifest: Manifest, counts: Counts) -> Iterator[FieldProblem]:
    """Where the manifest does not count what is there."""
    if manifest.rows != counts.rows:
        yield "rows", f"{manifest.rows}, but there are {counts.rows}"
    for benchmark in sorted({*manifest.labels, *counts.labels}):
        said, found = manifest.labels.get(benchmark, {}), counts.labels.get(benchmark, Counter())
        for tier in sorted({*said, *found}):
            if said.get(tier, 0) != found[tier]:
                yield f"labels.{benchmark}.{tier}", f"{said.get(tier, 0)}, but there are {found[tier]}"
    for benchmark in sorted({*manifest.instances, *counts.instances}):
        here = counts.instances[benchmark]
        if manifest.instances.get(benchmark, 0) != here:
            yield f"instances.{benchmark}", f"{manifest.instances.get(benchmark, 0)}, but there are {here}"
    for name in sorted({*manifest.splits, *counts.rows_of}):
        if manifest.splits.get(name, Split(rows=0, instances=0, groups=0)) != split_counts(counts, name):
            yield f"splits.{name}", f"there are {split_counts(counts, name)}"
    if manifest.allowed_names != {name: counts.names[name] for name in manifest.allowed_names}:
        yield "allowed_names", f"rows that hold them: {dict(counts.names)}"


def split_counts(counts: Counts, name: str) -> Split:
    """What a split holds."""
    return Split(rows=counts.rows_of[name], instances=counts.instances_of[name], groups=counts.groups_of[name])
