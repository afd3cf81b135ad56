"""Revisions of a run's files, to which the reviewers' verdicts are applied. The run's own files stay as they are."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stepdown.audit.applying import LabelledStep, RevisionCounts, RevisionPass
from stepdown.audit.settling import ReviewOutcome
from stepdown.audit.store import FILE_NAME, AuditStore
from stepdown.audit.verdicts import AuditStep
from stepdown.builder.artifacts.names import EVIDENCE, MANIFEST, ROWS
from stepdown.builder.artifacts.rows import parse_row
from stepdown.builder.common.files import FileDigest, RecordFile, digest_of, sync_folder, write_document
from stepdown.builder.common.locks import take_lock
from stepdown.builder.common.reading import parse_json, parse_line, read_lines
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.errors import BadInput
from stepdown.builder.run.folder import open_for_reading
from stepdown.builder.run.ledger import Ledger, seed_model_of

FOLDER = "revisions"
APPLIED, UNDONE = "applied", "undone"


def current_files(run_folder: Path) -> Path:
    """The folder whose files a release takes: that of the newest revision not taken back, else the run's own.

    Raises BadInput where the run's files have changed since the revision was made from them, or the revision's files
    since it was applied.
    """
    if not (run_folder / FILE_NAME).is_file():
        return run_folder
    with AuditStore(run_folder) as store:
        standing = standing_revision(store)
    if standing is None:
        return run_folder
    number, digest = standing
    folder = run_folder / FOLDER / str(number)
    manifest = _read_manifest(folder)
    if digest_of(folder / MANIFEST) != digest:
        raise BadInput(f"the manifest of revision {number} is not the one that was applied", file=folder / MANIFEST)
    if manifest["revision_of"] != _base_digests(_read_manifest(run_folder)):
        raise BadInput(
            f"the run has changed since revision {number} was made from it: `stepdown audit sample {run_folder}` and "
            f"`stepdown audit apply {run_folder}` make a new one, `stepdown audit undo {run_folder}` takes it back",
            file=folder,
        )
    return folder


def standing_revision(store: AuditStore) -> tuple[int, str] | None:
    """The newest revision that was not undone, and the digest of its manifest."""
    standing: dict[int, str] = {}
    for entry in store.revisions.all():
        if entry.action == APPLIED:
            standing[entry.number] = entry.manifest
        else:
            standing.pop(entry.number, None)
    return max(standing.items()) if standing else None


def apply(run_folder: Path) -> Mapping[str, Any]:
    """Make a revision of the run's own files by the reviewers' verdicts, and return its manifest.

    One instance is in memory at a time. Raises BadInput where the files are not what the run's manifest says, or do
    not hold every sampled step.
    """
    with ExitStack() as stack:
        ledger, protocol = stack.enter_context(open_for_reading(run_folder))
        store = stack.enter_context(AuditStore(run_folder))
        base = _read_manifest(run_folder)
        stack.enter_context(_lock_folder(run_folder / FOLDER))
        known = store.revisions.count_entries()  # later entries may be in some of the rows, but not in all
        number = _next_number(run_folder, store)
        draft, place = run_folder / FOLDER / f".{number}.part", run_folder / FOLDER / str(number)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        stack.callback(shutil.rmtree, draft, ignore_errors=True)
        revised, files = _write_rows(run_folder, draft, base, store, ledger, protocol)
        manifest = _manifest_of(base, number, revised, files)
        digest = write_document(draft / MANIFEST, manifest)
        draft.rename(place)
        sync_folder(place.parent)
        store.revisions.record(number, APPLIED, digest, known)
    return manifest


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """While the block runs, other processes wait to make a revision here or take one back. Makes the folder."""
    folder.mkdir(exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        take_lock(handle, folder, wait=True)
        yield
    finally:
        os.close(handle)


def undo(run_folder: Path) -> int:
    """Take the newest revision back, and return its number. Its files stay. Raises BadInput where there is none."""
    with AuditStore(run_folder) as store, _lock_folder(run_folder / FOLDER):
        standing = standing_revision(store)
        if standing is None:
            raise BadInput("no revision stands: there is nothing to take back", file=run_folder)
        number, digest = standing
        store.revisions.record(number, UNDONE, digest, store.revisions.count_entries())
    return number


def _next_number(run_folder: Path, store: AuditStore) -> int:
    """A number that no revision has had, not even one that a killed process did not finish."""
    folder = run_folder / FOLDER
    names = [int(path.name) for path in folder.iterdir() if path.name.isdecimal()] if folder.is_dir() else []
    return 1 + max([0, *names, *(entry.number for entry in store.revisions.all())])


def _write_rows(
    run_folder: Path, draft: Path, base: Mapping[str, Any], store: AuditStore, ledger: Ledger, protocol: ProtocolConfig
) -> tuple[RevisionCounts, dict[str, FileDigest]]:
    revision = RevisionPass(store, protocol.pool.tiers, lambda step: _read_seed_model(ledger, step))
    for name in (ROWS, EVIDENCE):
        if digest_of(run_folder / name) != base["files"][name]["sha256"]:
            problem = f"not the file that the run's manifest names: delete it and `stepdown resume {run_folder}`"
            raise BadInput(problem, file=run_folder / name)
    with ExitStack() as stack:
        rows, evidences = (stack.enter_context(RecordFile(draft / name)) for name in (ROWS, EVIDENCE))
        for step in revision.apply(_read_steps(run_folder)):
            _write_line(rows, step.row_line, step.row.to_json())
            _write_line(evidences, step.evidence_line, step.evidence)
        files = {ROWS: rows.finish(), EVIDENCE: evidences.finish()}
    for by, count in revision.counts.missed.items():
        again = f"stepdown audit sample {run_folder} --rate {by.plan.rate} --seed {by.plan.seed}"
        raise BadInput(f"{count} steps would be sampled that are not: the run has grown: {again}", file=run_folder)
    missing = store.count() - revision.counts.seen
    if missing:
        raise BadInput(
            f"{missing} sampled steps are not in the run's files, which are older than its ledger: "
            f"stepdown resume {run_folder}",
            file=run_folder / ROWS,
        )
    return revision.counts, files


def _read_steps(run_folder: Path) -> Iterator[LabelledStep]:
    """The run's rows, each with its evidence, which stands in the same line of its file."""
    rows, evidence = run_folder / ROWS, run_folder / EVIDENCE
    for (number, row_line), (_, evidence_line) in zip(read_lines(rows), read_lines(evidence), strict=True):
        row = parse_row(parse_line(row_line, rows, number), rows, number)
        yield LabelledStep(row, parse_line(evidence_line, evidence, number), row_line, evidence_line)


def _write_line(file: RecordFile, line: bytes | None, record: Mapping[str, Any]) -> None:
    """A line that was not changed is copied, to the byte."""
    if line is None:
        file.write(record)
    else:
        file.copy(line)


def _read_seed_model(ledger: Ledger, step: AuditStep) -> str:
    record = ledger.instance(step.benchmark, step.instance_id)
    return seed_model_of(record, ledger.trials(record.id))


def _manifest_of(
    base: Mapping[str, Any], number: int, revised: RevisionCounts, files: Mapping[str, FileDigest]
) -> dict[str, Any]:
    """The run's manifest with what the revision changed: counts, files, and the audit."""
    labels = {
        workload: {tier: revised.labels[workload][tier] for tier in counts}
        for workload, counts in base["labels"].items()
    }
    models = {
        workload: {
            model: left for model, count in counts.items() if (left := count - revised.held_models[workload][model])
        }
        for workload, counts in base["seeds"]["models"].items()
    }
    outcomes = Counter(outcome for counts in revised.outcomes.values() for outcome in counts.elements())
    sampled = sum(outcomes.values())
    settled = sum(count for outcome, count in outcomes.items() if outcome.is_settled)
    return {
        **base,
        "revision_of": _base_digests(base),
        "seeds": {**base["seeds"], "models": models},
        "rows": sum(sum(counts.values()) for counts in labels.values()),
        "instances": {
            workload: count - sum(revised.held_back[workload].values()) for workload, count in base["instances"].items()
        },
        "labels": labels,
        "audit": {
            "revision": number,
            "sampled": sampled,
            "settled": settled,
            "unsettled": sampled - settled,
            "disputed": outcomes[ReviewOutcome.DISAGREE],
            "tight": outcomes[ReviewOutcome.TIGHT] + outcomes[ReviewOutcome.LOWEST],
            "lowest": outcomes[ReviewOutcome.LOWEST],
            "lowered": revised.lowered,
            "held_back": _totals(revised.held_back),
            "reviewers": len(revised.reviewers),
            "workloads": [
                {
                    "workload": workload,
                    "steps": revised.steps[workload],
                    "sampled": sum(counts.values()),
                    "downgradeable": counts[ReviewOutcome.LOWER],
                    "tight": counts[ReviewOutcome.TIGHT] + counts[ReviewOutcome.LOWEST],
                    "lowest": counts[ReviewOutcome.LOWEST],
                    "uncertain": counts[ReviewOutcome.UNCERTAIN],
                }
                for workload, counts in sorted(revised.outcomes.items())
            ],
        },
        "files": {name: asdict(file) for name, file in files.items()},
    }


def _totals(groups: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for counts in groups.values():
        totals.update(counts)
    return dict(sorted(totals.items()))


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
    except OSError as error:
        way = "stepdown audit undo takes it back" if folder.parent.name == FOLDER else "stepdown resume writes it"
        raise BadInput(f"can not be read: {error.strerror}; {way}", file=path) from None
    found: dict[str, Any] = parse_json(data, path)
    try:
        _base_digests(found)
    except (TypeError, KeyError):
        raise BadInput(f"not a manifest: it has no digests of {ROWS} and {EVIDENCE}", file=path) from None
    return found


def _base_digests(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Digests of the files that a revision is made from."""
    return {name: manifest["files"][name]["sha256"] for name in (ROWS, EVIDENCE)}
