"""Finished runs into one release: written beside its place, checked row by row as it is written, moved there whole."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stepdown.audit.revisions import current_files
from stepdown.builder.common.files import sync_folder, sync_tree, write_document, write_text
from stepdown.builder.common.locks import LockHeld, take_lock
from stepdown.builder.common.text import is_id
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.releases.auditchecks import check_audit
from stepdown.releases.card import card
from stepdown.releases.croissant import croissant
from stepdown.releases.documents import (
    card_problems,
    croissant_problems,
    document_texts,
    license_problems,
    text_problems,
)
from stepdown.releases.files import read_digest, sums_text
from stepdown.releases.layout import (
    CARD,
    CROISSANT,
    LICENSES,
    MANIFEST,
    ROWS,
    SUMS,
    TEST,
    TRAIN,
    Holdout,
    Manifest,
    ReleasedFile,
    RunManifest,
    TierName,
)
from stepdown.releases.licenses import license_of, notes
from stepdown.releases.manifestchecks import BY_PUBLISHER, left_out_of, manifest_problems, split_counts, tiers_of
from stepdown.releases.parquet import SHARD_BYTES, Shards
from stepdown.releases.problems import Problems, Tell, silent
from stepdown.releases.rowchecks import Counts, RowChecks
from stepdown.releases.sources import RunRow, RunSource, portable, read_run_rows, read_source, released_line
from stepdown.releases.texts import Watch, names_of


class PublishRefused(StepdownError):
    """The runs do not pass the gates of a release; nothing was published."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(f"{problems.total} problems")
        self.problems = problems


@dataclass(frozen=True, slots=True)
class PublishSettings:
    """What a person decides about a release."""

    name: str
    published: str
    """The day, YYYY-MM-DD."""
    version: str = "1.0.0"
    creator: str = ""
    url: str = ""
    license: str = "Apache-2.0"
    holdout: Holdout = field(default_factory=lambda: Holdout(share=0.2, seed=0))
    allowed_names: frozenset[str] = frozenset()
    allowed_paths: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    """Instances to leave out, as `benchmark/instance_id`."""
    partial: bool = False
    shard_bytes: int = SHARD_BYTES


def publish(runs: Sequence[Path], out: Path, settings: PublishSettings, tell: Tell = silent) -> Manifest:
    """Publish the runs into the folder `out`, which must not be there or be empty. `tell` is called after each row.

    Raises PublishRefused with all that is wrong with the runs, and BadInput where another argument is.
    """
    _check_words(settings)
    problems = Problems()
    sources = list(_read_sources(runs, settings.partial, problems))
    if not sources:
        raise PublishRefused(problems)
    _check_tiers(sources, problems)
    is_complete = len(sources) == len(runs)
    try:
        with _open_draft(out) as draft:
            manifest = _write_release(draft, sources, settings, problems, tell, is_complete)
            if problems:
                raise PublishRefused(problems)
            sync_tree(draft)
            draft.rename(out)
            sync_folder(out.absolute().parent)
    except BadInput as error:
        if not problems:
            raise
        problems.bad_input(str(error.file or out), error, error.line)
        raise PublishRefused(problems) from None
    return manifest


def _read_sources(runs: Sequence[Path], partial: bool, problems: Problems) -> Iterator[RunSource]:
    """The runs that can be read; of the others, what is in the way is a problem, and the rest is looked at all the
    same."""
    for run in runs:
        try:
            source = read_source(run, current_files(run), problems, partial)
            check_audit(source, problems)
        except BadInput as error:
            problems.bad_input(str(error.file or run), error, error.line)
        else:
            yield source


def _check_words(settings: PublishSettings) -> None:
    """Raises BadInput unless each setting is one line: it will stand in headings, YAML and links."""
    for name in ("name", "version", "license", "creator", "url"):
        text: str = getattr(settings, name)
        if not is_id(text) and (text or name in ("name", "version", "license")):
            raise BadInput("must be 1 to 200 characters without control characters", field=f"--{name}")


def _check_tiers(sources: Sequence[RunSource], problems: Problems) -> None:
    """A release has one set of tiers. The rows of a run with others are looked at by its own."""
    first = tiers_of(sources[0].manifest.pool)
    for source in sources:
        tiers = tiers_of(source.manifest.pool)
        if tiers is None:
            problems.add(source.name(MANIFEST), "there are none that can be read", field="pool.tiers")
        elif tiers != first:
            problem = f"not the tiers of {sources[0].folder}: a release has one set of tiers"
            problems.add(source.name(MANIFEST), problem, field="pool.tiers")


@contextmanager
def _open_draft(out: Path) -> Iterator[Path]:
    """A folder beside `out` to write into; gone at the end unless it was moved. One left by a crash is begun anew."""
    try:
        if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
            raise BadInput("is there and not an empty folder: a release is never written over", file=out)
        for folder in out.absolute().parents:
            if (folder / MANIFEST).is_file() and (folder / ROWS).is_file():
                raise BadInput(f"is inside of {folder}, a run or a release, whose files are all listed", file=out)
        draft = out.parent / f".{out.name}.draft"
        draft.mkdir(parents=True, exist_ok=True)
        handle = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (OSError, ValueError) as error:
        raise BadInput(getattr(error, "strerror", None) or str(error), file=out) from None
    try:
        try:
            take_lock(handle, out)
        except LockHeld:
            raise BadInput("another process publishes here", file=out) from None
        for left in draft.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        try:
            yield draft
        finally:
            if draft.exists():
                shutil.rmtree(draft)
    finally:
        os.close(handle)


def _write_release(
    draft: Path,
    sources: Sequence[RunSource],
    settings: PublishSettings,
    problems: Problems,
    tell: Tell,
    is_complete: bool,
) -> Manifest:
    """`is_complete`: whether all runs could be read. Else nobody knows which instances are there."""
    watch = Watch(
        names_of(source.manifest for source in sources),
        settings.allowed_names,
        settings.allowed_paths,
        tuple(_own_paths(sources)),
    )
    tiers = [TierName(name=name, id=number) for name, number in tiers_of(sources[0].manifest.pool) or []]
    left = _LeftOut(settings.without)
    with RowChecks({}, settings.holdout, watch, problems, ordered=False) as checks:
        files = _write_rows(draft, sources, settings, checks, left, problems, tell)
        counts = checks.counts
    for unknown in sorted(left.unknown if is_complete else ()):
        problems.add("--without", "no run has this instance", field=unknown)
    if problems:
        raise PublishRefused(problems)
    return _write_documents(draft, sources, settings, tiers, counts, left, files, problems)


def _own_paths(sources: Sequence[RunSource]) -> Iterator[str]:
    """Folders of this machine that a careless harness may let slip into what a model sees."""
    yield str(Path(__file__).resolve().parent.parent)
    yield from (str(source.folder.resolve()) for source in sources)


class _LeftOut:
    """The instances that the publisher leaves out."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        self._found: dict[str, set[str]] = defaultdict(set)

    def __contains__(self, step: RunRow) -> bool:
        name = f"{step.row.benchmark}/{step.row.instance_id}"
        if name not in self._wanted:
            return False
        self._found[step.row.benchmark].add(name)
        return True

    @property
    def unknown(self) -> frozenset[str]:
        return self._wanted - {name for names in self._found.values() for name in names}

    def counts(self, runs: tuple[RunManifest, ...]) -> dict[str, dict[str, int]]:
        """With what the runs leave out themselves."""
        found = left_out_of(runs)
        for benchmark, names in self._found.items():
            found[benchmark][BY_PUBLISHER] += len(names)
        return {name: dict(sorted(reasons.items())) for name, reasons in sorted(found.items())}


class _Bank:
    """question_bank.jsonl: all of train, then all of test, which waits in a file of its own."""

    def __init__(self, draft: Path) -> None:
        self._place, self._waiting = draft / ROWS, draft / ".test.part"
        self._files = {TRAIN: self._place.open("wb"), TEST: self._waiting.open("wb")}

    def add(self, step: RunRow) -> None:
        self._files[step.row.split].write(released_line(step))

    def finish(self) -> None:
        self._files[TEST].close()
        with self._waiting.open("rb") as waiting:
            shutil.copyfileobj(waiting, self._files[TRAIN], 1 << 20)
        self._files[TRAIN].close()
        self._waiting.unlink()

    def __enter__(self) -> _Bank:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()


def _write_rows(
    draft: Path,
    sources: Sequence[RunSource],
    settings: PublishSettings,
    checks: RowChecks,
    left: _LeftOut,
    problems: Problems,
    tell: Tell,
) -> dict[str, ReleasedFile]:
    """Write rows and shards. Once something is wrong nothing more is written, and the rest is still checked."""
    with (
        _Bank(draft) as bank,
        Shards(draft, TRAIN, settings.shard_bytes) as train,
        Shards(draft, TEST, settings.shard_bytes) as test,
    ):
        shards = {TRAIN: train, TEST: test}
        for source in sources:
            tiers = tiers_of(source.manifest.pool)
            if tiers is None:
                continue  # what would be said of its rows follows from it
            checks.begin(source.name(ROWS), dict(tiers))
            for step in read_run_rows(source, settings.holdout, problems):
                if step in left:
                    continue
                checks.check(step.row, step.number)
                tell(checks.counts.rows)
                if not problems:
                    bank.add(step)
                    shards[step.row.split].add(step.row)
        checks.finish()
        if problems:
            return {}
        bank.finish()
        rows = {ROWS: checks.counts.rows, **train.finish(), **test.finish()}
    return {name: read_digest(draft, name, count) for name, count in rows.items()}


def _write_documents(
    draft: Path,
    sources: Sequence[RunSource],
    settings: PublishSettings,
    tiers: Sequence[TierName],
    counts: Counts,
    left: _LeftOut,
    files: Mapping[str, ReleasedFile],
    problems: Problems,
) -> Manifest:
    """Write licences, card, Croissant file, manifest and SHA256SUMS; the manifest lists all but the last two."""
    runs = tuple(portable(source.manifest) for source in sources)
    names = [tier.name for tier in tiers]
    manifest = Manifest(
        name=settings.name,
        version=settings.version,
        published=settings.published,
        creator=settings.creator,
        url=settings.url,
        license=settings.license,
        tiers=tuple(tiers),
        rows=counts.rows,
        instances=dict(sorted(counts.instances.items())),
        labels={name: _by_tier(found, names) for name, found in sorted(counts.labels.items())},
        holdout=settings.holdout,
        splits={name: split_counts(counts, name) for name in (TRAIN, TEST) if counts.rows_of[name]},
        partial=settings.partial and any(run.unfinished or run.blocked for run in runs),
        left_out=left.counts(runs),
        allowed_names=dict(sorted(counts.names.items())),
        allowed_paths=tuple(sorted(settings.allowed_paths)),
        licenses={name: license_of(name, runs) for name in sorted(counts.labels)},
        runs=runs,
        files=dict(files),
    )
    write_text(draft / LICENSES, notes(settings.license, manifest.licenses))
    write_text(draft / CARD, card(manifest))
    write_document(draft / CROISSANT, croissant(manifest, files))
    documents = {name: read_digest(draft, name) for name in (LICENSES, CARD, CROISSANT)}
    manifest = manifest.model_copy(update={"files": dict(sorted({**files, **documents}.items()))})
    digests = {name: file.sha256 for name, file in manifest.files.items()}
    digests[MANIFEST] = write_document(draft / MANIFEST, manifest.model_dump(mode="json", exclude_none=True))
    write_text(draft / SUMS, sums_text(digests))
    _check_documents(draft, manifest, problems)
    return manifest


def _by_tier(found: Counter[str], names: Sequence[str]) -> dict[str, int]:
    return {name: found[name] for name in names}


def _check_documents(draft: Path, manifest: Manifest, problems: Problems) -> None:
    """Check manifest and documents as `verify` will: runs and settings brought texts into them."""
    for place, problem in manifest_problems(manifest):
        problems.add(MANIFEST, problem, field=place)
    for place, text in document_texts(manifest.model_dump(mode="json", exclude_none=True)):
        for problem in text_problems(text, manifest.allowed_paths):
            problems.add(MANIFEST, problem, field=place)
    for name in (CARD, CROISSANT, LICENSES):
        for problem in text_problems((draft / name).read_text(encoding="utf-8"), manifest.allowed_paths):
            problems.add(name, problem)
    described = json.loads((draft / CROISSANT).read_text(encoding="utf-8"))
    for name, findings in (
        (CARD, card_problems((draft / CARD).read_text(encoding="utf-8"), manifest)),
        (CROISSANT, croissant_problems(described, manifest)),
        (LICENSES, license_problems((draft / LICENSES).read_text(encoding="utf-8"), manifest)),
    ):
        for place, problem in findings:
            problems.add(name, problem, field=place)
