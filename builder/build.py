"""A build, in a run's folder: workloads opened, instances admitted, and labelled by workers."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from builder.budget import Purse, spent
from builder.cache import Cache, DiskStore
from builder.client import Client
from builder.config import Protocol, Workload
from builder.errors import BadInput, Interrupted, StepdownError
from builder.hints import FileHints, Hints, ModelHints
from builder.label import Bench, Context, InstanceLabelling
from builder.ledger import InstanceRecord, State
from builder.pool import Model
from builder.records import Instance, Response
from builder.runs import RunFolder
from builder.seeds import SeedFile, strong_models
from builder.text import LONGEST_ID, is_id
from builder.validation import changes
from builder.workers import Threads, Workers
from harnesses.base import Harness, KeepsFiles, NeedsJudge
from judges.decision import RULES
from judges.prompts import prompts_digest

BUILT_IN = {
    "bfcl": "harnesses.bfcl:BFCL",
    "mtrag": "harnesses.mtrag:MTRAG",
    "planted": "harnesses.planted:Planted",
    "qa": "harnesses.qa:QA",
    "qmsum": "harnesses.qmsum:QMSum",
    "swebench": "harnesses.swebench.harness:SWEBench",
}
"""The workloads that come with stepdown; others are named `module:Class`."""


Job = tuple[InstanceRecord, Instance, Bench]
"""An instance to work at."""


@dataclass(slots=True)
class Progress:
    """What a build has done so far; written by workers, read by whoever shows it."""

    instances: int = 0
    total: int = 0
    steps: int = 0
    counted: str = "steps locked"
    """What `steps` counts."""
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
    if not module or not name:
        known = ", ".join(sorted(BUILT_IN))
        raise BadInput(f"no such workload {workload.harness!r}: {known}, or `module:Class` of your own", field=field)
    if workload.harness not in BUILT_IN and (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # a workload of one's own may lie in the folder one works in
    try:
        made = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise BadInput(f"{workload.harness!r} can not be loaded: {error}", field=field) from None
    except AttributeError:
        raise BadInput(f"module {module!r} has no class {name!r}", field=field) from None
    lacking = [part for part in ("instances", "open") if not callable(getattr(made, part, None))]
    if not isinstance(made, type) or lacking:
        raise BadInput(f"{workload.harness!r} is no workload: it is no class with `instances` and `open`", field=field)
    try:
        harness: Harness = made(**workload.options)
    except TypeError as error:
        raise BadInput(f"options: {error}", field=field) from None
    return harness


def bench_of(protocol: Protocol, index: int, departed: Sequence[str] = ()) -> Bench:
    """A workload of the config, ready to be worked at. Raises BadInput. Loading its harness runs its code.

    `departed` names strong models of the pool before this one, which imported seeds may still be by.
    """
    workload, place = protocol.workloads[index], f"protocol.workloads.{index}"
    harness = harness_of(workload, f"{place}.harness")
    try:
        strong_models(workload.seeds, protocol.pool)
    except BadInput as error:
        raise BadInput(str(error), field=place) from None
    if protocol.judge is None and isinstance(harness, NeedsJudge) and harness.needs_judge:
        problem = f"an LLM judges the answers of {harness.name!r}: name its models in `protocol.judge.models`"
        raise BadInput(problem, field=place)
    file = workload.seeds.file
    return Bench(workload, harness, SeedFile(file, protocol.pool, harness.name, departed) if file else None)


def selected(index: int, bench: Bench) -> Iterator[Instance]:
    """The instances that a workload's source selects. Raises BadInput."""
    field = f"protocol.workloads.{index}.source"
    try:
        yield from bench.harness.instances(bench.workload.source)
    except BadInput as error:
        raise BadInput(str(error), field=field) from None
    except StepdownError:
        raise
    except Exception as error:
        raise BadInput(f"the workload can not read it: {type(error).__name__}: {error}", field=field) from None


class Build:
    """Labels every open instance of a run. `stop` ends it early; what was paid for is kept."""

    def __init__(self, run: RunFolder, stop: threading.Event) -> None:
        """Open the run's workloads. Raises BadInput where one is not what the run was begun with."""
        self._run, self._stop = run, stop
        self._config, self._ledger = run.config, run.ledger
        self.progress = Progress()
        departed = run.origin.departed if run.origin else ()
        self._benches = [bench_of(self.protocol, index, departed) for index in range(len(self.protocol.workloads))]
        self._hints = self._read_hints()
        self._check_versions()

    @property
    def protocol(self) -> Protocol:
        return self._config.protocol

    @property
    def multi_step(self) -> dict[str, bool]:
        """Of each benchmark, whether its trajectories have several steps."""
        return {bench.harness.name: bench.harness.multi_step for bench in self._benches}

    def _check_versions(self) -> None:
        """A harness or judge that changed since the run was begun would label one run by two measures."""
        versions = [
            {"benchmark": bench.harness.name, "version": bench.harness.version, "seeds": bench.workload.seeds.source}
            for bench in self._benches
        ]
        judge = {"prompts": prompts_digest(), "rules": RULES} if self.protocol.judge else None
        measures = {"workloads": versions, "judge": judge}
        begun = {name: self._ledger.meta(name) for name in measures}
        if not self._ledger.is_begun:
            for name, measure in measures.items():
                self._ledger.set_meta(name, measure)
        elif begun != measures:
            differences = "; ".join(changes(begun, measures))
            raise BadInput(
                f"the workloads or their judge have changed since the run was begun ({differences}): "
                "go on with the stepdown that began it, or name another folder",
                file=self._run.path,
            )

    def admit(self) -> None:
        """Register the instances that the sources select, once; open again those that were blocked.

        Raises BadInput where an instance is selected twice.
        """
        self._ledger.reopen()
        if not self._ledger.is_begun:
            self._ledger.admit(self._once_each())
        counts = self._ledger.counts()
        self.progress.total = sum(counts.values())
        self.progress.steps = self._ledger.locked_steps()
        self.progress.instances = self.progress.done_before = self.progress.total - counts.get(State.OPEN, 0)

    def _once_each(self) -> Iterator[Instance]:
        seen: set[tuple[str, str]] = set()
        for index, bench in enumerate(self._benches):
            for instance in selected(index, bench):
                place = f"protocol.workloads.{index}.source"
                if not is_id(instance.id):
                    problem = f"instance id {instance.id!r} is not 1 to {LONGEST_ID} printable characters"
                    raise BadInput(problem, field=place)
                if instance.key in seen:
                    raise BadInput(f"instance {instance.id!r} is selected twice", field=place)
                seen.add(instance.key)
                yield instance

    def execute(self) -> None:
        """Label all open instances. Raises RunStopped, BadInput, BudgetReached or Interrupted; the ledger then says
        where to go on.
        """
        if not self._is_left():
            return
        self.work(self._open_instances(), self._label, self._is_left)

    def _is_left(self) -> bool:
        return bool(self._ledger.counts().get(State.OPEN, 0))

    def work(self, jobs: Iterable[Job], do: Callable[[Context, Job], None], is_left: Callable[[], bool]) -> None:
        """Have the run's workers carry out jobs, within its budget; `is_left` says whether there are any still.

        Raises RunStopped, BadInput, BudgetReached or Interrupted.
        """
        cache = Cache(DiskStore(self._run.cache_folder), run=str(self._ledger.meta("id")))
        for bench in self._benches:
            if isinstance(bench.harness, KeepsFiles):
                bench.harness.keep_in(self._run.cache_folder / "workloads" / bench.harness.name)
        models, operation = self.protocol.models, self._config.operation
        already = spent(self._run.path, self._ledger, models)
        purse = Purse(operation.budget, already, self._run.path, self._stop)
        try:
            with purse, Client(models.values(), operation, self._stop, purse.check) as client:
                context = Context(
                    protocol=self.protocol,
                    ledger=self._ledger,
                    cache=cache,
                    provider=client,
                    hints=self._hints,
                    stop=self._stop,
                    on_call=self.progress.on_call,
                    on_lock=self.progress.on_lock,
                    purse=purse,
                )
                workers: Workers = Threads(operation.workers, self._stop)
                workers.run(jobs, lambda job: do(context, job))
        except Interrupted:
            raise purse.stopped_by or Interrupted("stopped") from None
        finally:
            cache.close()
        if self._stop.is_set() and is_left():
            raise purse.stopped_by or Interrupted("stopped")

    def labelled(self, wanted: Container[tuple[str, str]]) -> Iterator[Job]:
        """The finished instances among those wanted by (benchmark, id), in the run's order."""
        for index, bench in enumerate(self._benches):
            for instance in selected(index, bench):
                if instance.key in wanted:
                    record = self._ledger.instance(*instance.key)
                    if record.state is State.DONE:
                        yield record, instance, bench

    def _read_hints(self) -> Hints | None:
        hints, pool = self.protocol.hints, self.protocol.pool
        if hints.file is not None:
            return FileHints(hints.file, pool)
        return ModelHints(hints.model, pool) if hints.model is not None else None

    def _open_instances(self) -> Iterator[Job]:
        """What is left to label. Raises BadInput where a source no longer selects what it did."""
        left = self._ledger.counts().get(State.OPEN, 0)
        for index, bench in enumerate(self._benches if left else ()):
            field = f"protocol.workloads.{index}.source"
            for instance in selected(index, bench):
                try:
                    record = self._ledger.instance(*instance.key)
                except KeyError:
                    raise BadInput(f"{instance.id!r} was not selected when the run was begun", field=field) from None
                if record.state is State.OPEN:
                    left -= 1
                    yield record, instance, bench
        if left > 0:
            raise BadInput(f"the sources no longer select {left} of the run's instances", file=self._run.path)

    def _label(self, context: Context, job: Job) -> None:
        InstanceLabelling(*job, context).run()
        self.progress.on_instance()
