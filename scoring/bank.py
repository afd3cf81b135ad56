"""Where labelled rows come from: a published release, or the folder of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepdown.audit.revisions import current_files
from stepdown.builder.common.reading import read_document
from stepdown.builder.config.validation import validated
from stepdown.builder.errors import BadInput
from stepdown.builder.run.reading import is_run
from stepdown.releases.layout import MANIFEST, ROWS, TierName


@dataclass(frozen=True, slots=True)
class Bank:
    """Labelled rows and what their manifest says."""

    folder: Path
    rows: Path
    tiers: tuple[TierName, ...]
    """Cheapest first; the last is the strong one."""
    manifest: Mapping[str, Any]

    @property
    def strong(self) -> int:
        """Index of the strong tier."""
        return len(self.tiers) - 1

    @property
    def tier_ids(self) -> dict[str, int]:
        return {tier.name: tier.id for tier in self.tiers}


def open_bank(folder: Path) -> Bank:
    """The rows of a release or of a run, as its reviewers left them where an audit's revision stands.

    Raises BadInput: no such folder, no manifest, or one without tiers.
    """
    if not folder.is_dir():
        raise BadInput("not a folder" if folder.exists() else "no such folder", file=folder)
    if is_run(folder):
        folder = current_files(folder)
    path = folder / MANIFEST
    if not path.is_file():
        raise BadInput(f"neither a release nor a finished run: there is no {MANIFEST}", file=folder)
    manifest = read_document(path)
    if not isinstance(manifest, dict):
        raise BadInput("must be an object", file=path)
    return Bank(folder, folder / ROWS, _tiers(manifest, path), manifest)


def _tiers(manifest: Mapping[str, Any], path: Path) -> tuple[TierName, ...]:
    """A release names its tiers, a run those of its pool."""
    pool = manifest.get("pool")
    if "tiers" in manifest:
        found, field = manifest["tiers"], "tiers"
    elif isinstance(pool, dict) and isinstance(pool.get("tiers"), list):
        found = [
            {key: value for key, value in tier.items() if key in ("name", "id")} if isinstance(tier, dict) else tier
            for tier in pool["tiers"]
        ]
        field = "pool.tiers"
    else:
        raise BadInput("names no tiers", file=path, field="tiers")
    tiers = validated(tuple[TierName, ...], found, file=path, field=field)
    ids = [tier.id for tier in tiers]
    if len(tiers) < 2 or ids != sorted(set(ids)) or len({tier.name for tier in tiers}) < len(tiers):
        raise BadInput("must be two tiers or more, of distinct names and growing ids", file=path, field=field)
    return tiers
