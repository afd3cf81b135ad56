"""An independent check of a release from anybody: it relies on nothing but the folder, and reads it once."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepdown.builder.artifacts.rows import Row
from stepdown.builder.common.reading import LARGEST_DOCUMENT, LONGEST_LINE, parse_json, parse_line
from stepdown.builder.config.validation import validated
from stepdown.builder.errors import BadInput
from stepdown.releases.documents import (
    card_problems,
    croissant_problems,
    document_texts,
    license_problems,
    text_problems,
)
from stepdown.releases.files import ALWAYS, UNLISTED, is_name, list_files, sha256_of, sums_text
from stepdown.releases.layout import (
    CARD,
    CROISSANT,
    LICENSES,
    MANIFEST,
    ROWS,
    SPLITS,
    SUMS,
    Manifest,
    parse_released_row,
)
from stepdown.releases.manifestchecks import count_problems, manifest_problems
from stepdown.releases.parquet import SHARD_NAME, difference, read_records
from stepdown.releases.problems import Problems, Tell, silent
from stepdown.releases.rowchecks import Counts, RowChecks
from stepdown.releases.texts import Watch, names_of


@dataclass(slots=True)
class Verified:
    """What checking a release found."""

    problems: Problems = field(default_factory=Problems)
    counts: Counts = field(default_factory=Counts)
    manifest: Manifest | None = None


def verify(release: Path, tell: Tell = silent) -> Verified:
    """Check all of a release; `tell` is called for each row. Raises BadInput only where there is no such folder."""
    try:
        there = dict(list_files(release))
    except (OSError, ValueError) as error:
        raise BadInput(getattr(error, "strerror", None) or str(error), file=release) from None
    result = Verified()
    problems = result.problems
    for name, problem in there.items():
        if problem is not None:
            problems.add(name, problem)
    for name in ALWAYS:
        if name not in there:
            problems.add(name, "is missing")
    plain = {name for name, problem in there.items() if problem is None}
    result.manifest = manifest = _check_manifest(release, plain, problems)
    if manifest is None:
        return result
    digests: dict[str, str] = {}
    try:
        digests |= _check_rows(release, manifest, plain, result, tell)
    except BadInput as error:
        problems.bad_input(ROWS, error)
    digests |= _check_documents(release, manifest, plain, problems)
    _check_files(release, manifest, plain, digests, problems)
    return result


def _check_manifest(release: Path, plain: set[str], problems: Problems) -> Manifest | None:
    """The manifest, where it can be read; what is wrong with it by itself."""
    if MANIFEST not in plain:
        return None
    path = release / MANIFEST
    try:
        data = parse_json(_read_plain_file(path), path)
        manifest = validated(Manifest, data, file=path)
        for place, text in document_texts(data):
            for problem in text_problems(text, manifest.allowed_paths):
                problems.add(MANIFEST, problem, field=place)
        for place, problem in manifest_problems(manifest):
            problems.add(MANIFEST, problem, field=place)
    except BadInput as error:
        problems.bad_input(MANIFEST, error)
        return None
    except (RecursionError, UnicodeError, ValueError) as error:
        problems.add(MANIFEST, f"can not be checked: {str(error)[:200]}")
        return None
    return manifest


def _read_plain_file(path: Path) -> bytes:
    """All bytes of a document. Raises BadInput."""
    with _open_plain_file(path) as file:
        data: bytes = file.read(LARGEST_DOCUMENT + 1)
    if len(data) > LARGEST_DOCUMENT:
        raise BadInput(f"larger than {LARGEST_DOCUMENT} bytes", file=path)
    return data


def _open_plain_file(path: Path) -> Any:
    """A plain file, opened; never a link, a pipe or a device."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    except OSError as error:
        raise BadInput(error.strerror or str(error), file=path) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise BadInput("is no file", file=path)
    return file


def _check_rows(release: Path, manifest: Manifest, plain: set[str], result: Verified, tell: Tell) -> dict[str, str]:
    """All rows, and the Parquet records beside them. Returns the digest of the rows' file."""
    if ROWS not in plain:
        return {}
    problems = result.problems
    watch = Watch(names_of(manifest.runs), frozenset(manifest.allowed_names), frozenset(manifest.allowed_paths))
    copies = _Copies(release, manifest, plain, problems)
    found, path = hashlib.sha256(), release / ROWS
    with RowChecks(manifest.tier_ids, manifest.holdout, watch, problems) as checks, _open_plain_file(path) as file:
        result.counts = checks.counts
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            tell(number)
            found.update(line)
            try:
                row = parse_released_row(parse_line(line, path, number), path, number)
            except BadInput as error:
                problems.bad_input(ROWS, error, number)
                copies.skip()
                continue
            checks.check(row, number)
            copies.compare(row, number)
        checks.finish()
        copies.finish(number)
        for place, problem in count_problems(manifest, checks.counts):
            problems.add(MANIFEST, problem, field=place)
    return {ROWS: found.hexdigest()}


class _Copies:
    """The Parquet shards, read along with the rows: each record must be its row."""

    def __init__(self, release: Path, manifest: Manifest, plain: set[str], problems: Problems) -> None:
        self._release, self._problems = release, problems
        self._counted = {name: file.rows for name, file in manifest.files.items()}
        self._names = _in_order(name for name in plain if SHARD_NAME.fullmatch(name))
        for problem in _incomplete(self._names):
            problems.add("data", problem)
        self._at, self._row_there = "data", 0
        self._records = self._read_all()
        self._broken = False

    def _read_all(self) -> Iterator[dict[str, Any]]:
        for name in self._names:
            self._at, self._row_there = name, 0
            for record in read_records(self._release, name):
                self._row_there += 1
                yield record
            if self._counted.get(name) != self._row_there:
                self._problems.add(MANIFEST, f"there are {self._row_there}", field=f"files.{name}.rows")

    def _next(self) -> dict[str, Any] | None:
        if self._broken:
            return None
        try:
            return next(self._records, None)
        except BadInput as error:
            self._problems.bad_input(self._at, error)
            self._broken = True
            return None

    def skip(self) -> None:
        """Pass over the record of a line that is no row."""
        self._next()

    def compare(self, row: Row, number: int) -> None:
        """The next record must be this row."""
        record = self._next()
        if self._broken:
            return
        if record is None:
            self._problems.add("data", f"has no record of row {number}", id=row.id)
            self._broken = True
            return
        shard = SHARD_NAME.fullmatch(self._at)
        if shard is not None and record.get("split") != shard[1]:
            self._problems.add(self._at, f"a row of {record.get('split')}", self._row_there, "split", row.id)
        if (found := difference(row, record)) is not None:
            self._problems.add(self._at, found[1], self._row_there, found[0], row.id)

    def finish(self, rows: int) -> None:
        """There are no more rows, so there must be no more records."""
        if self._next() is not None:
            self._problems.add(self._at, f"has more records than the {rows} rows", self._row_there)


def _in_order(names: Iterator[str]) -> list[str]:
    return sorted(names, key=lambda name: (SPLITS.index(SHARD_NAME.fullmatch(name)[1]), name))  # type: ignore[index]


def _incomplete(names: list[str]) -> Iterator[str]:
    """What is missing of each split's shards, by their own names."""
    for split in SPLITS:
        shards = [found for name in names if (found := SHARD_NAME.fullmatch(name)) and found[1] == split]
        due = [(f"{number:05}", f"{len(shards):05}") for number in range(len(shards))]
        if [(found[2], found[3]) for found in shards] != due:
            yield f"the shards of {split} are not numbered from 0 to one less than their number"


def _check_documents(release: Path, manifest: Manifest, plain: set[str], problems: Problems) -> dict[str, str]:
    """Card, Croissant file and licences. Returns their digests."""
    digests = {}
    for name in (CARD, CROISSANT, LICENSES):
        if name not in plain:
            continue
        path = release / name
        try:
            data = _read_plain_file(path)
            digests[name] = hashlib.sha256(data).hexdigest()
            for place, problem in _document_problems(name, path, data, manifest):
                problems.add(name, problem, field=place)
        except BadInput as error:
            problems.bad_input(name, error)
        except RecursionError:
            problems.add(name, "nested too deeply")
    return digests


def _document_problems(name: str, path: Path, data: bytes, manifest: Manifest) -> Iterator[tuple[str, str]]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8: {error.reason} at byte {error.start}", file=path) from None
    if name == CROISSANT:
        value = parse_json(data, path)
        for place, part in document_texts(value):
            yield from ((place, problem) for problem in text_problems(part, manifest.allowed_paths))
        yield from croissant_problems(value, manifest)
        return
    yield from (("", problem) for problem in text_problems(text, manifest.allowed_paths))
    yield from card_problems(text, manifest) if name == CARD else license_problems(text, manifest)


def _check_files(
    release: Path, manifest: Manifest, plain: set[str], digests: dict[str, str], problems: Problems
) -> None:
    """Every file against the manifest, and SHA256SUMS against every file."""
    for name in sorted(set(manifest.files) | plain):
        if not is_name(name):
            problems.add(MANIFEST, "no file of a release is called so", field=f"files.{name}")
            continue
        if name in UNLISTED:
            if name in manifest.files:
                problems.add(MANIFEST, "can not list itself", field=f"files.{name}")
            continue
        if name not in plain:
            problems.add(name, "is in the manifest and not in the folder")
            continue
        listed = manifest.files.get(name)
        try:
            digest, size = (
                (digests[name], (release / name).lstat().st_size) if name in digests else sha256_of(release / name)
            )
        except (BadInput, OSError) as error:
            problems.add(name, f"can not be read: {error}")
            continue
        digests[name] = digest
        if listed is None:
            problems.add(name, "is in the folder and not in the manifest")
        elif (listed.sha256, listed.bytes) != (digest, size):
            problems.add(name, "its bytes are not those that the manifest lists")
    if ROWS in manifest.files and manifest.files[ROWS].rows != manifest.rows:
        problems.add(MANIFEST, f"must be {manifest.rows}", field=f"files.{ROWS}.rows")
    if SUMS in plain and MANIFEST in plain:
        try:
            digests[MANIFEST] = sha256_of(release / MANIFEST)[0]
            due = sums_text({name: digests[name] for name in digests if name in plain}).encode()
            if _read_plain_file(release / SUMS) != due:
                problems.add(SUMS, "not the digests of the files, a line each, in the order of their names")
        except BadInput as error:
            problems.bad_input(SUMS, error)
