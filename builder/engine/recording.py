"""Seeds recorded outside of a run: a strong model does each task of a workload once, and what passes is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from stepdown.builder.cache.responses import Cache
from stepdown.builder.cache.store import DiskStore
from stepdown.builder.config.loading import Config
from stepdown.builder.engine.calls import Calls
from stepdown.builder.engine.replay import Replayer
from stepdown.builder.engine.workloads import LoadedWorkload, select_instances
from stepdown.builder.errors import Interrupted
from stepdown.builder.models import Client
from stepdown.builder.records import Instance, Outcome
from stepdown.judges.panel import rule_on_case

_RUN = "recorded"
"""The run that answers are kept under: they were paid for by none."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one task came to."""

    instance: Instance
    model: str
    outcome: Outcome

    @property
    def line(self) -> str:
        """The trajectory as a line of a seed file."""
        steps = [
            {
                "content": step.response.content,
                "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in step.response.tool_calls],
            }
            for step in self.outcome.trajectory
        ]
        seed = {"instance_id": self.instance.id, "model": self.model, "steps": steps}
        return json.dumps(seed, ensure_ascii=False) + "\n"


def record_seeds(
    config: Config,
    index: int,
    workload: LoadedWorkload,
    model: str,
    answers: Path,
    wanted: Callable[[str], bool],
    stop: threading.Event,
) -> Iterator[Recorded]:
    """Have a model of the pool do the wanted tasks of a workload, one after another.

    `answers` is the folder of a response cache: whatever is paid for is kept there, and found again. Raises RunStopped,
    BadInput and Interrupted.
    """
    protocol = config.protocol
    workload.harness.keep_in(answers / "workloads" / workload.harness.name)
    cache = Cache(DiskStore(answers), run=_RUN)
    try:
        with Client(protocol.models.values(), config.operation, stop) as client:
            for instance in select_instances(index, workload):
                if instance.dropped is not None or not wanted(instance.id):
                    continue
                if stop.is_set():
                    raise Interrupted("stopped")
                calls = Calls(instance, workload.harness, client, cache)
                subject, panel = "/".join(instance.key), protocol.judge
                judge = partial(rule_on_case, panel=panel, source=calls, subject=subject) if panel else None
                replayer = Replayer(instance, workload.harness, protocol.pool, calls, judge, stop)
                yield Recorded(instance, model, replayer.collect(model, 0))
    finally:
        cache.close()


def recorded_ids(file: Path) -> Container[str]:
    """The instances that a seed file which is being written has already; a line that a crash cut short has none."""
    found = set()
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            found.add(json.loads(line)["instance_id"])
        except (ValueError, LookupError, TypeError):
            continue
    return found
