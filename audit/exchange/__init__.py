"""Review in another tool: sampled steps out as files, reviewed files back in.

`records` is what goes out and what comes back; each format is a file; `incoming` checks what comes back.
"""

from __future__ import annotations

from collections.abc import Mapping

from stepdown.audit.exchange import argilla, label_studio, lines, tables
from stepdown.audit.exchange.records import Format

FORMATS: Mapping[str, Format] = {
    "jsonl": lines.FORMAT,
    "csv": tables.FORMAT,
    "label-studio": label_studio.FORMAT,
    "argilla": argilla.FORMAT,
}
