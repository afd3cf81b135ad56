"""Review in another tool: sampled steps are exported as files, reviewed files are imported.

`records` has what goes out and what comes back. Each format is a module. `incoming` checks what comes back.
"""

from __future__ import annotations

from collections.abc import Mapping

from stepdown.audit.exchange import argilla, jsonl, label_studio, spreadsheet
from stepdown.audit.exchange.records import ExchangeFormat

FORMATS: Mapping[str, ExchangeFormat] = {
    "jsonl": jsonl.FORMAT,
    "csv": spreadsheet.FORMAT,
    "label-studio": label_studio.FORMAT,
    "argilla": argilla.FORMAT,
}
