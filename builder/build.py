"""A build, in a run's folder: workloads opened, instances admitted, and labelled by workers."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from builder.cache import Cache, DiskStore
from builder.client import Client
from builder.config import Protocol, Workload
from builder.errors import BadInput, Interrupted
from builder.hints import FileHints, Hints, ModelHints
from builder.label import Bench, Context, InstanceLabelling
from builder.ledger import InstanceRecord, State
from builder.pool import Model
from builder.records import Instance, Response
from builder.runs import RunFolder
from builder.seeds import SeedFile, strong_models
from builder.validation import changes
from builder.workers import Threads
from harnesses.base import Harness

BUILT_IN = {"bfcl": "harnesses.bfcl:BFCL", "planted": "harnesses.planted:Planted"}
"""The workloads that come with stepdown; others are named `module:Class`."""


@dataclass(slots=True)
class Progress:
    """What a build has done so far; written by workers, read by whoever shows it."""

    instances: int = 0
    total: int = 0
    steps: int = 0
    calls: int = 0
    """Calls made now."""
    hits: int = 0
    """Calls answered without being made."""
    usd: float = 0.0
    started: float = field(default_factory=time.monotonic)
    done_before: int = 0
    """Instances that were settled before this process began."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def on_call(self, model: Model, response: Response, fresh: bool) -> None:
        with self._lock:
            if fresh:
                self.calls += 1
                self.usd += model.price.cost(response.usage)
            else:
                self.hits += 1

    def on_lock(self) -> None:
        with self._lock:
            self.steps += 1

    def on_instance(self) -> None:
        with self._lock:
            self.instances += 1

    def seconds_left(self) -> float | None:
        """From the pace so far; None where there is none yet."""
        done = self.instances - self.done_before
        if done <= 0:
            return None
        return (self.total - self.instances) * (time.monotonic() - self.started) / done


def harness_of(workload: Workload, field: str) -> Harness:
    """The harness that a config's entry names, with its options. Raises BadInput. Loading one runs its code."""
    module, _, name = BUILT_IN.get(workload.harness, workload.harness).partition(":")
    if not name:
        known = ", ".join(sorted(BUILT_IN))
        raise BadInput(f"no such workload {workload.harness!r}: {known}, or `module:Class` of your own", field=field)
    if workload.harness not in BUILT_IN and (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # a workload of one's own may lie in the folder one works in
    try:
        made: Harness = getattr(importlib.import_module(module), name)(**workload.options)
    except ImportError as error:
        raise BadInput(f"{workload.harness!r} can not be loaded: {error}", field=field) from None
    except AttributeError:
        raise BadInput(f"module {module!r} has no class {name!r}", field=field) from None
    except TypeError as error:
        raise BadInput(f"options: {error}", field=field) from None
    return made


class Build:
    """Labels every open instance of a run. `stop` ends it early; what was paid for is kept."""

    def __init__(self, run: RunFolder, stop: threading.Event) -> None:
        """Open the run's workloads. Raises BadInput where one is not what the run was begun with."""
        self._run, self._stop = run, stop
        self._config, self._ledger = run.config, run.ledger
        self.progress = Progress()
        self._benches = [self._bench(index, workload) for index, workload in enumerate(self.protocol.workloads)]
        self._check_versions()

    @property
    def protocol(self) -> Protocol:
        return self._config.protocol

    @property
    def multi_step(self) -> dict[str, bool]:
        """Of each benchmark, whether its trajectories have several steps."""
        return {bench.harness.name: bench.harness.multi_step for bench in self._benches}

    def _bench(self, index: int, workload: Workload) -> Bench:
        place = f"protocol.workloads.{index}"
        harness = harness_of(workload, f"{place}.harness")
        try:
            strong_models(workload.seeds, self.protocol.pool)
        except BadInput as error:
            raise BadInput(str(error), field=place) from None
        file, origin = workload.seeds.file, self._run.origin
        departed = origin.departed if origin else ()
        return Bench(workload, harness, SeedFile(file, self.protocol.pool, harness.name, departed) if file else None)

    def _check_versions(self) -> None:
        """A harness that changed since the run was begun would label one run by two measures."""
        versions = {bench.harness.name: bench.harness.version for bench in self._benches}
        begun = self._ledger.meta("harness_versions")
        if not self._ledger.is_begun:
            self._ledger.set_meta("harness_versions", versions)
        elif begun != versions:
            raise BadInput(
                f"the workloads have changed since the run was begun ({'; '.join(changes(begun, versions))}): "
                "go on with the stepdown that began it, or name another folder",
                file=self._run.path,
            )

    def admit(self) -> None:
        """Register the instances that the sources select, once; open again those that were blocked.

        Raises BadInput where an instance is selected twice.
        """
        self._ledger.reopen_blocked()
        if not self._ledger.is_begun:
            self._ledger.admit((instance.benchmark, instance.id, instance.dropped) for instance in self._once_each())
        counts = self._ledger.counts()
        self.progress.total = sum(counts.values())
        self.progress.steps = self._ledger.locked_steps()
        self.progress.instances = self.progress.done_before = self.progress.total - counts.get(State.OPEN, 0)

    def _once_each(self) -> Iterator[Instance]:
        seen: set[tuple[str, str]] = set()
        for index, bench in enumerate(self._benches):
            for instance in self._selected(index, bench):
                if instance.key in seen:
                    place = f"protocol.workloads.{index}.source"
                    raise BadInput(f"instance {instance.id!r} is selected twice", field=place)
                seen.add(instance.key)
                yield instance

    @staticmethod
    def _selected(index: int, bench: Bench) -> Iterator[Instance]:
        try:
            yield from bench.harness.instances(bench.workload.source)
        except BadInput as error:
            raise BadInput(str(error), field=f"protocol.workloads.{index}.source") from None

    def execute(self) -> None:
        """Label all open instances. Raises RunStopped, BadInput or Interrupted; the ledger then says where to go on."""
        cache = Cache(DiskStore(self._run.cache_folder), run=str(self._ledger.meta("id")))
        hints = self.protocol.hints
        models = [model for _, model in self.protocol.pool.models()] + ([hints.model] if hints.model else [])
        try:
            with Client(models, self._config.operation, self._stop) as client:
                context = Context(
                    protocol=self.protocol,
                    ledger=self._ledger,
                    cache=cache,
                    provider=client,
                    hints=self._hints(),
                    stop=self._stop,
                    on_call=self.progress.on_call,
                    on_lock=self.progress.on_lock,
                )
                Threads(self._config.operation.workers, self._stop).run(
                    self._open_instances(), lambda job: self._label(context, *job)
                )
        finally:
            cache.close()
        if self._stop.is_set():
            raise Interrupted("stopped")

    def _hints(self) -> Hints | None:
        hints, pool = self.protocol.hints, self.protocol.pool
        if hints.file is not None:
            return FileHints(hints.file, pool)
        return ModelHints(hints.model, pool) if hints.model is not None else None

    def _open_instances(self) -> Iterator[tuple[InstanceRecord, Instance, Bench]]:
        for index, bench in enumerate(self._benches):
            if self._ledger.counts().get(State.OPEN, 0):
                for instance in self._selected(index, bench):
                    record = self._ledger.instance(*instance.key)
                    if record.state is State.OPEN:
                        yield record, instance, bench

    def _label(self, context: Context, record: InstanceRecord, instance: Instance, bench: Bench) -> None:
        InstanceLabelling(record, instance, bench, context).run()
        self.progress.on_instance()
