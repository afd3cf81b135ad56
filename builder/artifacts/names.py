"""The files that a run writes."""

from __future__ import annotations

ROWS, EVIDENCE, QUEUE = "question_bank.jsonl", "evidence.jsonl", "audit_queue.jsonl"
PROBES = "probes.jsonl"
"""Where the protocol asks for probes."""
MANIFEST, SPEND = "manifest.json", "spend.json"
