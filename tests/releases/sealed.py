"""Files of runs and releases that a test changes, then seals again: digests and copies follow, and only the change is
wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stepdown.builder.records import exact_json
from stepdown.releases.files import sha256_of, sums_text
from stepdown.releases.layout import Holdout
from stepdown.releases.parquet import COLUMNS
from stepdown.releases.publish import PublishSettings

SETTINGS = PublishSettings(name="office", published="2026-01-01", holdout=Holdout(share=0.3, seed=0))
Row = dict[str, Any]
PROOF = "proof"
"""The key under which a run's row has its evidence, while a test holds it."""


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _write_lines(path: Path, records: list[Any]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def _listed(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return {"sha256": hashlib.sha256(data).hexdigest(), "lines": data.count(b"\n"), "bytes": len(data)}


class Sealed:
    """A folder with rows and a manifest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bank, self.manifest_file = folder / "question_bank.jsonl", folder / "manifest.json"

    def rows(self, change: Callable[[list[Row]], None]) -> None:
        raise NotImplementedError

    def manifest(self, change: Callable[[Row], None]) -> None:
        """Change the manifest."""
        data = json.loads(self.manifest_file.read_text())
        change(data)
        self.manifest_file.write_text(json.dumps(data))
        self.seal()

    def run_manifest(self, change: Callable[[Row], None]) -> None:
        """Change what is said of the (first) run."""
        raise NotImplementedError

    def bytes_of_rows(self, change: Callable[[list[bytes]], None]) -> None:
        """Change the lines of the rows' file as bytes."""
        lines = self.bank.read_bytes().splitlines(keepends=True)
        change(lines)
        self.bank.write_bytes(b"".join(lines))
        self.seal()

    def seal(self) -> None:
        raise NotImplementedError


class SealedRun(Sealed):
    """A run: rows are changed together with their evidence."""

    def rows(self, change: Callable[[list[Row]], None]) -> None:
        proofs = _lines(self.folder / "evidence.jsonl")
        rows = [{**row, PROOF: proof} for row, proof in zip(_lines(self.bank), proofs, strict=True)]
        change(rows)
        proofs = [dict(row.pop(PROOF)) for row in rows]
        for row, proof in zip(rows, proofs, strict=True):
            if "id" in row:
                proof["id"] = row["id"]
            if row.get("target_tier") == "ultra":
                proof["lock"] = {**proof["lock"], "tier": "ultra"}
            row.pop("split", None)  # a run's rows have neither
            if "group" in row:
                proof["group"] = row.pop("group")
        _write_lines(self.bank, rows)
        _write_lines(self.folder / "evidence.jsonl", proofs)
        self.seal()

    def run_manifest(self, change: Callable[[Row], None]) -> None:
        self.manifest(change)

    def seal(self) -> None:
        data = json.loads(self.manifest_file.read_text())
        for name in ("question_bank.jsonl", "evidence.jsonl"):
            data["files"][name] = _listed(self.folder / name)
        self.manifest_file.write_text(json.dumps(data))


class SealedRelease(Sealed):
    """A release: Parquet shards, digests and sums follow what is changed."""

    def rows(self, change: Callable[[list[Row]], None]) -> None:
        rows = _lines(self.bank)
        change(rows)
        _write_lines(self.bank, rows)
        self._shards(rows)
        self.seal()

    def run_manifest(self, change: Callable[[Row], None]) -> None:
        self.manifest(lambda data: change(data["runs"][0]))

    def document(self, name: str, change: Callable[[str], str]) -> None:
        """Change the text of a document."""
        path = self.folder / name
        path.write_text(change(path.read_text()))
        self.seal()

    def _shards(self, rows: list[Row]) -> None:
        """Write the rows into the shards anew, where Parquet can hold them at all."""
        for split in ("train", "test"):
            records = [_record(row) for row in rows if row.get("split") == split]
            schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in COLUMNS])
            try:
                table = pa.Table.from_pylist(records, schema=schema)
            except (pa.ArrowException, ValueError, TypeError):
                return
            pq.write_table(table, self.folder / f"data/{split}-00000-of-00001.parquet")
            data = json.loads(self.manifest_file.read_text())
            data["files"][f"data/{split}-00000-of-00001.parquet"]["rows"] = len(records)
            self.manifest_file.write_text(json.dumps(data))

    def seal(self) -> None:
        data = json.loads(self.manifest_file.read_text())
        described = json.loads((self.folder / "croissant.json").read_text())
        for item in described["distribution"]:
            if "sha256" in item:
                sha256, size = sha256_of(self.folder / item["contentUrl"])
                item.update(sha256=sha256, contentSize=f"{size} B")
        (self.folder / "croissant.json").write_text(json.dumps(described))
        for name, file in data["files"].items():
            if (self.folder / name).is_file() and ".." not in name:
                file["sha256"], file["bytes"] = sha256_of(self.folder / name)
        self.manifest_file.write_text(json.dumps(data))
        self.seal_sums()

    def seal_sums(self) -> None:
        names = ["manifest.json", *json.loads(self.manifest_file.read_text())["files"]]
        digests = {name: sha256_of(self.folder / name)[0] for name in names if (self.folder / name).is_file()}
        (self.folder / "SHA256SUMS").write_text(sums_text(digests))


def _record(row: Row) -> Row:
    record = {name: row.get(name) for name, _ in COLUMNS}
    record["messages"] = exact_json(row.get("messages"))
    record["tools"] = exact_json(row["tools"]) if "tools" in row else None
    return record
