"""What a call costs at the head of a cluster, measured by its own code: `python -m benchmarks.cluster_plan --measure`.

A build of SWE-bench's shape (12 steps, prefixes of 4,000 to 30,000 tokens) is executed once by a head and one process
in place of a node, here, and every request that reaches the head is kept. Then the same requests are put to the head of
a fresh run, one after another, and processor time is taken of nothing else. What Ray takes to carry one exchange is
measured between this process and an actor.
"""

from __future__ import annotations

import json
import os
import pickle
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import cost
from benchmarks.cost_bank import STEPS
from stepdown.builder.cluster.dispatch import Dispatch
from stepdown.builder.cluster.executor import OnCluster
from stepdown.builder.cluster.head import Head
from stepdown.builder.cluster.messages import Delivery, HeadReply, KeepAnswer, NodeRequest, WriteTrial
from stepdown.builder.config.loading import load_config
from stepdown.builder.config.operation import ClusterConfig
from stepdown.builder.engine.build import Build
from stepdown.builder.engine.context import Job
from stepdown.builder.engine.executor import Executor, RunHoldings, Task
from stepdown.builder.run.folder import open_for_work
from tests.cluster.here import Here, HereProcess

EXCHANGES = 2000
"""So many are carried by Ray, to measure one."""


@dataclass(slots=True)
class Heard:
    """What reached the head in one exchange: how many instances it had handed out with it, and what was asked."""

    taken: int
    asked: Sequence[NodeRequest]


@dataclass(slots=True)
class HeadFigures:
    """What a build's requests took at its head. Milliseconds are processor time of the thread that answers."""

    calls: int = 0
    trials: int = 0
    answered: int = 0
    """Requests that somebody waits for: each may need an exchange of its own."""
    told: int = 0
    bytes_heard: int = 0
    bytes_said: int = 0
    bytes_stored: int = 0
    ms_by_kind: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def ms_per_call(self) -> float:
        return sum(self.ms_by_kind.values()) / self.calls


class _Overheard(HereProcess):
    """A process in place of a node, of which is kept what it asks."""

    def __init__(self, node: str) -> None:
        super().__init__(node, 0, lambda process, asked: None)
        self.heard: list[Heard] = []

    def exchange(self, delivery: Delivery, patience: float) -> Sequence[NodeRequest]:
        asked = super().exchange(delivery, patience)
        self.heard.append(Heard(len(delivery.assignments), asked))
        return asked


class _Listening(Here):
    """A cluster of one such process."""

    def __init__(self) -> None:
        super().__init__(1)
        self.process = _Overheard(self.ids[0])

    def start(self, node: str) -> HereProcess:
        return self.process


class _Replaying:
    """An executor whose head is asked what was kept, by one thread that takes its own processor time."""

    where = "this machine"

    def __init__(self, heard: Sequence[Heard]) -> None:
        self._heard, self.figures = heard, HeadFigures()

    def work(self, jobs: Iterable[Job], do: Task, done: Callable[[Job], None], holdings: RunHoldings) -> None:
        dispatch = Dispatch(jobs, holdings.workloads, done, holdings.stop, holdings.run.config.operation.workers)
        head, figures = Head(holdings, dispatch), self.figures
        for one in self._heard:
            dispatch.take(one.taken)
            for asked in one.asked:
                figures.bytes_heard += len(pickle.dumps(asked))
                began = time.thread_time()
                reply = head.answer("here", asked)
                self._note(asked, reply, 1000 * (time.thread_time() - began))
        dispatch.raise_first_error()

    def _note(self, asked: NodeRequest, reply: HeadReply | None, ms: float) -> None:
        figures, kind = self.figures, type(asked.request).__name__
        if reply is not None and reply.error is not None:
            raise reply.error
        figures.ms_by_kind[kind] += ms
        figures.answered += reply is not None
        figures.told += reply is None
        figures.bytes_said += 0 if reply is None else len(pickle.dumps(reply))
        figures.calls += isinstance(asked.request, KeepAnswer)
        figures.trials += isinstance(asked.request, WriteTrial)


def head_figures(instances: int = 6) -> HeadFigures:
    """The requests of a build of so many instances, put to a fresh head."""
    listening = _Listening()
    with tempfile.TemporaryDirectory(prefix="head-costs-") as folder:
        executor = OnCluster(ClusterConfig(ray="auto"), lambda required: nullcontext(listening))
        _build(Path(folder), instances, executor)
    replaying = _Replaying(listening.process.heard)
    with tempfile.TemporaryDirectory(prefix="head-costs-") as folder:
        _build(Path(folder), instances, replaying)
        files = (*Path(folder, "run").glob("*.sqlite*"), *Path(folder, "run", "cache").glob("*.sqlite*"))
        replaying.figures.bytes_stored = sum(file.stat().st_size for file in files)
    return replaying.figures


def _build(folder: Path, instances: int, executor: Executor) -> None:
    source = {"instances": instances, "steps": STEPS, "weights": list(cost.WEIGHTS)}
    made = cost.config("none", False, source, False, {}, "http://127.0.0.1:9/v1", folder)
    made["operation"]["workers"] = instances
    (folder / "config.yaml").write_text(json.dumps(made))
    with open_for_work(folder / "run", load_config(folder / "config.yaml")) as run:
        build = Build(run, threading.Event(), executor)
        build.admit()
        build.execute()


class _Echo:
    """In place of a node's process: gives back as much as the mean exchange brings."""

    def __init__(self, size: int) -> None:
        self._given = b"x" * size

    def exchange(self, brought: bytes) -> bytes:
        return self._given


def exchange_ms(heard: int, said: int) -> tuple[float, float]:
    """What one exchange of so many bytes takes of this process: in its own thread, and in Ray's threads beside it."""
    import ray

    os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # else Ray leaves a token in the user's home
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=80 * 1024 * 1024)
    try:
        actor: Any = ray.remote(_Echo).remote(heard)
        brought = b"x" * said
        ray.get([actor.exchange.remote(brought) for _ in range(200)])
        began, began_all = time.thread_time(), time.process_time()
        for _ in range(EXCHANGES):
            ray.get(actor.exchange.remote(brought))
        own, everything = time.thread_time() - began, time.process_time() - began_all
    finally:
        ray.shutdown()
    return 1000 * own / EXCHANGES, 1000 * max(0.0, everything - own) / EXCHANGES
