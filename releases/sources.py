"""The runs that a release is made of: rows are read side by side with their evidence, which is checked."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepdown.builder.artifacts.names import EVIDENCE, ROWS
from stepdown.builder.artifacts.rows import Row
from stepdown.builder.common.reading import LONGEST_LINE, parse_line, read_document
from stepdown.builder.config.validation import validated
from stepdown.builder.errors import BadInput
from stepdown.releases.layout import Holdout, RunManifest, parse_released_row
from stepdown.releases.manifestchecks import run_problems, tiers_of
from stepdown.releases.problems import Problems
from stepdown.releases.splits import split_of
from stepdown.releases.texts import without_paths

LOWERED = "audit"
"""The basis of a label that a reviewer lowered."""
_ABSOLUTE = re.compile(r"(?:/|[A-Za-z]:[\\/])[^\n]*")


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row as the run has it: its line, and the row that a release makes of it."""

    number: int
    line: bytes
    row: Row
    lowered: bool
    """Whether a reviewer lowered its label."""


@dataclass(frozen=True, slots=True)
class RunSource:
    """A finished run."""

    folder: Path
    files: Path
    """Where the rows that stand are: the folder, or that of an audit's revision."""
    manifest: RunManifest

    def name(self, file: str) -> str:
        """A file of it, as problems name it."""
        return str(self.files / file)


def read_source(run: Path, files: Path, problems: Problems, partial: bool) -> RunSource:
    """The run in a folder. Raises BadInput where there is none; what keeps it out of a release is a problem."""
    path = files / "manifest.json"
    if not path.exists():
        raise BadInput("no finished run is here: it has no manifest.json", file=run)
    data = read_document(path)
    manifest = validated(RunManifest, data, file=path)
    for place, problem in run_problems(manifest):
        problems.add(str(path), problem, field=place)
    if not partial:
        if manifest.unfinished:
            problems.add(str(path), f"{manifest.unfinished} instances are unfinished (--partial)", field="unfinished")
        for benchmark, reasons in manifest.blocked.items():
            problem = f"{sum(reasons.values())} instances are blocked (--partial)"
            problems.add(str(path), problem, field=f"blocked.{benchmark}")
    return RunSource(run, files, manifest)


def read_run_rows(source: RunSource, holdout: Holdout, problems: Problems) -> Iterator[RunRow]:
    """The rows of a run with group and split, each beside its evidence. What is no row becomes a problem."""
    rows, evidence = source.files / ROWS, source.files / EVIDENCE
    digests = {ROWS: hashlib.sha256(), EVIDENCE: hashlib.sha256()}
    number = lowered = 0
    tiers = [str(name) for name, _ in tiers_of(source.manifest.pool) or []]
    try:
        with rows.open("rb") as row_file, evidence.open("rb") as evidence_file:
            while line := row_file.readline(LONGEST_LINE + 1):
                number += 1
                proof = evidence_file.readline(LONGEST_LINE + 1)
                digests[ROWS].update(line)
                digests[EVIDENCE].update(proof)
                if (step := _read_row(rows, evidence, number, line, proof, holdout, tiers, problems)) is not None:
                    lowered += step.lowered
                    yield step
            if evidence_file.read(1):
                problems.add(str(evidence), "has more lines than there are rows", number + 1)
                return
    except OSError as error:
        problems.add(str(error.filename or source.files), error.strerror or str(error))
        return
    if lowered != (counted := (source.manifest.audit or {}).get("lowered", 0)):
        problems.add(source.name("manifest.json"), f"{counted}, but {lowered} labels are", field="audit.lowered")
    for name, found in digests.items():
        said = source.manifest.files.get(name, {}).get("sha256")
        if said != found.hexdigest():
            problems.add(source.name(name), "its bytes are not those that the run's manifest lists")


def _read_row(
    rows: Path,
    evidence: Path,
    number: int,
    line: bytes,
    proof: bytes,
    holdout: Holdout,
    tiers: list[str],
    problems: Problems,
) -> RunRow | None:
    try:
        data = parse_line(line, rows, number)
        if isinstance(data, dict):
            for name in ("group", "split"):
                if name in data:
                    raise BadInput("no field of a run's row", field=name)
    except BadInput as error:
        problems.bad_input(str(rows), error, number)
        return None
    try:
        if not proof:
            raise BadInput("there is no evidence of this row")
        record = parse_line(proof, evidence, number)
        if not isinstance(record, dict):
            raise BadInput("must be an object")
        group = _group(data, record)
        _check_proof(data, record, tiers)
    except BadInput as error:
        problems.bad_input(str(evidence), error, number)
        return None
    try:
        benchmark = data.get("benchmark") if isinstance(data, dict) else None
        split = split_of(benchmark, group, holdout) if isinstance(benchmark, str) else ""
        row = parse_released_row(
            {**data, "group": group, "split": split} if isinstance(data, dict) else data, rows, number
        )
    except BadInput as error:
        problems.bad_input(str(rows), error, number)
        return None
    return RunRow(number, line, row, lowered=record["basis"] == LOWERED)


def _group(row: Any, record: dict[str, Any]) -> str:
    """The group that a row's evidence names; of a run that names none, the instance itself."""
    if isinstance(row, dict) and record.get("id") != row.get("id"):
        raise BadInput("not that of the row in the same line", field="id")
    group = record.get("group")
    if group is None and isinstance(row, dict):
        group = row.get("instance_id")
    if not isinstance(group, str):
        raise BadInput("must be text", field="group")
    return group


def _check_proof(row: Any, record: dict[str, Any], tiers: list[str]) -> None:
    """A pool model must have passed under the mixed trace; a reviewer's lower label is proved by none.

    The strong tier's passes are the seed's: there the tier below must have been tried and not accepted.
    """
    if not isinstance(row, dict):
        return
    lock, trials, label = record.get("lock"), record.get("trials"), row.get("target_tier")
    if not isinstance(lock, dict) or not isinstance(trials, list) or not all(isinstance(t, dict) for t in trials):
        raise BadInput("no evidence of a label", field="trials")
    if record.get("basis") == LOWERED:
        if [label, lock.get("tier")] not in [list(pair) for pair in itertools.pairwise(tiers)]:
            raise BadInput(f"a reviewer lowers a label by one tier, not {lock.get('tier')} to {label}", field="basis")
        label = lock.get("tier")
    elif record.get("basis") != "executed":
        raise BadInput("must be executed or audit", field="basis")
    if lock.get("tier") != label:
        raise BadInput(f"locked {lock.get('tier')}, and the row says {label}", field="lock.tier")
    accepted = [(trial.get("tier"), trial.get("model")) for trial in trials if trial.get("accepted") is True]
    if any(trial.get("accepted") is True and trial.get("verdict") != "pass" for trial in trials):
        raise BadInput("an accepted trial that did not pass", field="trials")
    if len(tiers) < 2 or label not in tiers:
        return
    if label != tiers[-1]:
        if (label, lock.get("model")) not in accepted:
            raise BadInput("no accepted trial of the model that is locked", field="trials")
    elif accepted or tiers[-2] not in [trial.get("tier") for trial in trials]:
        raise BadInput("the tier below the strong one must have been tried, and not accepted", field="trials")


def released_line(step: RunRow) -> bytes:
    """The row's line in a release: the run's own bytes, with group and split."""
    added = json.dumps({"group": step.row.group, "split": step.row.split})
    return step.line.rstrip()[:-1] + b", " + added[1:].encode() + b"\n"


def portable(manifest: RunManifest) -> RunManifest:
    """The run's manifest as a release tells of it: of a path on the builder's machine, the file's name.

    Where that changes the protocol, `shortened` names the fields: its digest is of what stood there before.
    """
    data = manifest.model_dump(mode="json", exclude_none=True)
    shortened: list[str] = []
    data["protocol"] = json.loads(json.dumps(manifest.protocol))
    workloads = data["protocol"].get("workloads")
    parts = [
        (f"workloads.{index}.{name}", workload.get(name))
        for index, workload in enumerate(workloads if isinstance(workloads, list) else [])
        if isinstance(workload, dict)
        for name in ("source", "options")
    ]
    pool = data["protocol"].get("pool")
    for place, part in [*parts, ("pool", pool)]:
        _shorten(part, place, shortened)
    for name in ("dropped", "blocked"):
        data[name] = {benchmark: _told(reasons) for benchmark, reasons in data[name].items()}
    if shortened:
        data["shortened"] = sorted(shortened)
    return RunManifest(**data)


def _told(reasons: dict[str, int]) -> dict[str, int]:
    """Reasons without paths: a reason may quote an error, and an error may name a path."""
    found: Counter[str] = Counter()
    for reason, count in reasons.items():
        found[without_paths(reason)] += count
    return dict(found)


def _shorten(value: Any, place: str, shortened: list[str]) -> None:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        here = f"{place}.{key}"
        if isinstance(item, str) and _ABSOLUTE.fullmatch(item):
            value[key] = re.split(r"[\\/]", item.rstrip("\\/"))[-1] or "/"
            shortened.append(here)
        else:
            _shorten(item, here, shortened)
