"""A process on a node that works on instances. It holds nothing that its death could lose."""

from __future__ import annotations

import logging
import os
import pickle
import platform
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from stepdown.builder.cluster.messages import (
    NO_ATTEMPT,
    Assignment,
    AttemptFinished,
    Delivery,
    HeadState,
    NodeRequest,
    ProgressNote,
)
from stepdown.builder.cluster.parcels import Fetch, Parcel, is_there, localized, placed
from stepdown.builder.cluster.permits import RemoteLimits, limits_on_node
from stepdown.builder.cluster.remote import KnownTexts, RemoteAnswers, RemoteLedger
from stepdown.builder.cluster.request_queue import AttemptRequests, RequestQueue
from stepdown.builder.cluster.versions import CodeVersion, code_version
from stepdown.builder.common.faults import said
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.common.text import printable
from stepdown.builder.config.loading import Config
from stepdown.builder.config.pool import Model
from stepdown.builder.engine.context import Job, RunContext
from stepdown.builder.engine.executor import Task
from stepdown.builder.engine.hints import HintSource, read_hints
from stepdown.builder.engine.workloads import LoadedWorkload, give_folder, load_workload, versions_of
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.builder.models import Client, local
from stepdown.builder.models.limits import ModelLimits
from stepdown.builder.records import Instance, Response
from stepdown.builder.run.ledger import RunVersions
from stepdown.harnesses.base import Need, NodeNeeds

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What a process on a node is told of the run before it works."""

    config: Config
    parcels: tuple[Parcel, ...]
    """Files that the config names, as they lie at the head."""
    departed: tuple[str, ...]
    """Models that were strong in an earlier version and are no more."""
    run: str
    """The run's id."""
    task: Task
    """What is done with each instance."""


class WorkerPlace(NamedTuple):
    """Where a process runs, for somebody who looks for it."""

    machine: str
    log: str
    """The file that it writes to there; empty where it writes to none."""


class BrokenOnNode(Exception):
    """Something that stepdown does not raise on purpose went wrong on a node. Its text is the traceback there."""


class NodeWorker:
    """The process. `begin` comes first; then the head calls `exchange` again and again, until `close`."""

    def __init__(self) -> None:
        self._queue, self._stop = RequestQueue(), threading.Event()
        self._known = KnownTexts()
        self._setup: RunSetup | None = None
        self._workloads: Sequence[LoadedWorkload] = ()
        self._hints: HintSource | None = None
        self._client: Client | None = None
        self._limits: dict[str, ModelLimits] = {}
        self._state = HeadState()

    def describe(self) -> CodeVersion:
        """What is installed here."""
        return code_version()

    def keep_log(self) -> WorkerPlace:
        """Write to standard error from now on which instances are begun and ended; where that is read."""
        _log.addHandler(made := logging.StreamHandler())
        made.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        _log.setLevel(logging.INFO)
        return WorkerPlace(platform.node(), _log_file())

    def missing(self, parcels: Sequence[Parcel]) -> list[str]:
        """The digests of the parcels that are to be sent here."""
        return [parcel.digest for parcel in parcels if not is_there(parcel, _own_folder() / "files")]

    def begin(self, setup: RunSetup, keys: Mapping[str, str], fetch: Fetch) -> RunVersions:
        """Load the run's workloads, and say by which code they measure. Raises BadInput.

        `keys` are those of the head, by their variables: a variable that this node has itself stays as it is. `fetch`
        gives what was packed of a parcel.
        """
        for name, value in keys.items():
            os.environ.setdefault(name, value)
        SECRETS.know(keys)
        try:
            places = {parcel.path: placed(parcel, _own_folder() / "files", fetch) for parcel in setup.parcels}
        except OSError as error:
            raise BadInput(f"files can not be unpacked on {platform.node()}: {error}") from None
        for parcel in setup.parcels:
            if parcel.files is not None:  # code of one's own: at the head it may lie where the command was given
                sys.path.append(str(places[parcel.path]))
        config = localized(setup.config, places)
        self._setup = setup = replace(setup, config=config)
        protocol = config.protocol
        self._workloads = [load_workload(protocol, index, setup.departed) for index in range(len(protocol.workloads))]
        for workload in self._workloads:
            give_folder(workload, _own_folder() / setup.run / "workloads" / workload.harness.name)
        self._hints = read_hints(protocol)
        operation, requests = setup.config.operation, AttemptRequests(self._queue, NO_ATTEMPT)
        self._limits = {name: limits_on_node(requests, model, operation) for name, model in protocol.models.items()}
        self._client = Client(
            protocol.models.values(),
            operation,
            self._stop,
            self._check,
            limits=lambda model: self._limits[model.name],
            on_error=partial(self._tell, "on_error"),
            notify=lambda line: self._tell("notify", f"{platform.node()}: {line}"),
        )
        return versions_of(self._workloads, protocol)

    def prepare(self, needs: Sequence[NodeNeeds], archives: Path | None) -> list[Need]:
        """Make this node ready for instances with these needs, by workload, and say how it stands with each.

        After `begin`. Models that are to run here are looked for too.
        """
        found: list[Need] = []
        for workload, needed in zip(self._workloads, needs, strict=True):
            try:
                found += workload.harness.prepare_node(needed, archives)
            except (Exception, SystemExit) as error:  # a harness is anybody's code
                found.append(Need(f"workload {workload.harness.name}", False, _words(error)))
        assert self._setup is not None
        for model in self._setup.config.protocol.models.values():
            if model.weights is not None:
                found.append(_weights(model))
        return found

    def exchange(self, delivery: Delivery, patience: float) -> list[NodeRequest]:
        """Take answers and instances; give what is asked, within so many seconds."""
        self._state = delivery.state
        for name, seconds in delivery.state.pauses.items():
            if isinstance(limits := self._limits.get(name), RemoteLimits):
                limits.note_pause(seconds)
        for assignment in delivery.assignments:
            name = f"attempt-{assignment.attempt}"
            threading.Thread(target=self._work, args=(assignment,), name=name, daemon=True).start()
        return self._queue.exchange(delivery.replies, patience)

    def stop(self) -> None:
        """Begin no further step."""
        self._stop.set()

    def close(self) -> None:
        """Wait for the requests under way, and end local servers."""
        self._stop.set()
        if self._client is not None:
            self._client.close()

    def _check(self) -> None:
        """Raises BudgetReached where the head's budget is: for what waits between a call's start and its request."""
        if self._state.reached is not None:
            raise self._state.reached

    def _tell(self, what: str, *arguments: Any) -> None:
        self._queue.tell(NO_ATTEMPT, ProgressNote(what, arguments))

    def _work(self, assignment: Assignment) -> None:
        """Work on one instance, in a thread of its own."""
        requests = AttemptRequests(self._queue, assignment.attempt)
        error: BaseException | None = None
        name = printable(f"{assignment.instance.benchmark}/{assignment.instance.id}")
        _log.info("begun: %s", name)
        try:
            assert self._setup is not None
            job = Job(assignment.record, assignment.instance, self._workloads[assignment.workload])
            self._setup.task(job, self._context(requests, self._setup))
        except BaseException as raised:
            error = _portable(raised)
            _log.info("ended early: %s: %s", name, printable(SECRETS.hidden(str(error))))
        else:
            _log.info("ended: %s", name)
        requests.tell(AttemptFinished(error))

    def _context(self, requests: AttemptRequests, setup: RunSetup) -> RunContext:
        assert self._client is not None

        def note_call(model: Model, response: Response, fresh: bool) -> None:
            if not fresh:  # the head has booked the others
                requests.tell(ProgressNote("hit"))

        def note_blocked(instance: Instance, reason: str) -> None:
            requests.tell(ProgressNote("on_blocked", (reason,)))

        return RunContext(
            protocol=setup.config.protocol,
            ledger=RemoteLedger(requests, self._known),
            cache=RemoteAnswers(requests, setup.run, self._stop),
            provider=self._client,
            hints=self._hints,
            stop=self._stop,
            on_call=note_call,
            on_lock=lambda: requests.tell(ProgressNote("on_lock")),
            on_blocked=note_blocked,
            speculate=setup.config.operation.speculate,
        )


def _own_folder() -> Path:
    """What workloads keep on this node goes in here."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepdown" / "cluster"


def _log_file() -> str:
    """What standard error goes to, where that is a file."""
    try:
        path = os.readlink("/proc/self/fd/2")
    except OSError:
        return ""
    return path if path.startswith("/") and os.path.isfile(path) else ""


def _words(error: BaseException) -> str:
    return str(error) if isinstance(error, StepdownError) else f"it can not be made ready here: {said(error)}"


def _weights(model: Model) -> Need:
    """Whether a local model's runtime and weights are here."""
    try:
        return Need(f"model {model.name}", True, local.check(model))
    except StepdownError as error:
        return Need(f"model {model.name}", False, str(error))


def _portable(error: BaseException) -> BaseException:
    """The error as another process can raise it."""
    if isinstance(error, StepdownError):
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        except Exception:
            return BrokenOnNode(f"{type(error).__name__}: {error}")
        return error
    text = "".join(traceback.format_exception(error))
    return BrokenOnNode(f"on {platform.node()}: {text}")
