"""Writes a live run as TwinRouterBench's own scorer reads it: a result and a trace for each task, by policy.

Its fields are those of that benchmark's `dynamic score`: `results/<instance>.json` and `<instance>.trace.jsonl`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stepdown.builder.common.files import write_text
from stepdown.builder.config.pool import Pool
from stepdown.builder.digests import digest
from stepdown.builder.errors import BadInput
from stepdown.routing.live.records import LiveStep, LiveTask, TaskState

OPENROUTER = "openrouter/"


def write_twinrouterbench(folder: Path, tasks: Iterable[LiveTask], pool: Pool) -> list[Path]:
    """Write a folder for each policy; the folders. Models go by their names at the provider, as that benchmark's locked
    pool has them. Raises BadInput where two tasks would be written under one name.
    """
    ids = {model.name: model.model.removeprefix(OPENROUTER) for _, model in pool.models()}
    written: dict[str, set[str]] = {}
    for task in tasks:
        place = folder / file_name(task.policy)
        name = file_name(task.instance)
        if name in written.setdefault(task.policy, set()):
            raise BadInput(f"two tasks of {task.policy!r} have the name {task.instance!r}", file=folder)
        written[task.policy].add(name)
        (place / "results").mkdir(parents=True, exist_ok=True)
        trace = f"{name}.trace.jsonl"
        lines = (json.dumps(_step(step, ids)) for step in task.steps)
        write_text(place / trace, "".join(f"{line}\n" for line in lines))
        write_text(place / "results" / f"{name}.json", json.dumps(_result(task, trace, ids), indent=1) + "\n")
    return [folder / file_name(policy) for policy in written]


def file_name(text: str) -> str:
    """A name as a file's: other than ASCII letters, digits, `.`, `_` and `-` is replaced; a digest keeps apart."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in text).lstrip(".")
    return plain if plain == text and plain else f"{plain}.{digest(text)[:8]}"


def _result(task: LiveTask, trace: str, ids: Mapping[str, str]) -> dict[str, Any]:
    technical = task.state is TaskState.TECHNICAL
    return {
        "instance_id": task.instance,
        "resolved": task.resolved,
        "trace_path": trace,
        "step_count": len(task.steps),
        "total_router_cost_usd": task.usd,
        "model_distribution": dict(Counter(ids[step.model] for step in task.steps)),
        "patch_applied": task.resolved,
        "agent_error": task.reason if technical else None,
        "eval_error": None,
    }


def _step(step: LiveStep, ids: Mapping[str, str]) -> dict[str, Any]:
    usage = step.usage
    fresh = usage.prompt - usage.cache_read - usage.cache_write
    return {
        "step_index": step.step - 1,
        "model_id": ids[step.model],
        "started_at": step.at,
        "seconds": step.seconds,
        "usage": {
            "input_tokens": fresh,
            "cache_read_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            "output_tokens": usage.completion,
        },
        "raw_usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        },
        "step_cost_usd": step.usd,
        "rationale": step.reason,
    }
