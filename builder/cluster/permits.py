"""The limits of every model over all nodes: the head permits requests, each process asks for them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple

from stepdown.builder.cluster.messages import AskPermit, PauseModel, Permit, RequestEnded
from stepdown.builder.cluster.request_queue import AttemptRequests
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import LOCAL, Model
from stepdown.builder.models.limits import ModelLimits, OwnLimits, Settle, Wait, most_at_once
from stepdown.builder.models.rates import LOOK, Admitted, RateLimits

_SHARE = 0.02
"""Seconds. Processes that wait ask in turns: some process asks so often, however many wait."""
_LEAST = 0.05
"""Seconds between two questions of one process, at least."""


class _Given(NamedTuple):
    """A permit that the head has given."""

    process: str
    model: str
    admitted: Admitted


class Permits:
    """Every model's slots and rates, at the head. Threads share one. It never keeps anybody waiting."""

    def __init__(self, models: Mapping[str, Model], operation: OperationConfig) -> None:
        endpoints = {name: operation.endpoint(name) for name in models}
        self._slots = {name: most_at_once(models[name], endpoint) for name, endpoint in endpoints.items()}
        self._rates = {
            name: RateLimits(endpoint.requests_per_minute, endpoint.tokens_per_minute)
            for name, endpoint in endpoints.items()
        }
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._given: dict[int, _Given] = {}
        self._taken: Counter[str] = Counter()
        self._closed_until: dict[str, float] = {}

    def admit(self, process: str, admit: AskPermit, processes: int) -> Permit | float:
        """A permit for a process, or the seconds after which to ask again, of so many processes."""
        turn = max(_LEAST, _SHARE * processes)
        with self._lock:
            most = self._slots[admit.model]
            if most is not None and self._taken[admit.model] >= most:
                return turn
            admitted = self._rates[admit.model].try_admit(admit.tokens)
            if isinstance(admitted, float):
                return min(max(admitted, turn), max(LOOK, turn))
            number = next(self._numbers)
            self._given[number] = _Given(process, admit.model, admitted)
            self._taken[admit.model] += 1
            return Permit(number)

    def end(self, ended: RequestEnded) -> None:
        """A request is no more under way."""
        with self._lock:
            given = self._given.pop(ended.permit, None)
            if given is None:
                return
            self._taken[given.model] -= 1
            if ended.tokens is not None:
                self._rates[given.model].settle(given.admitted, ended.tokens)

    def end_all(self, process: str) -> None:
        """Nothing of a process is under way any more."""
        with self._lock:
            numbers = [number for number, given in self._given.items() if given.process == process]
        for number in numbers:
            self.end(RequestEnded(number, None))

    def pause(self, pause: PauseModel) -> None:
        """A model's provider wants no requests."""
        with self._lock:
            self._closed_until[pause.model] = time.monotonic() + pause.seconds

    def pauses(self) -> Mapping[str, float]:
        """For how many seconds providers want no requests."""
        if not self._closed_until:
            return {}
        now = time.monotonic()
        with self._lock:
            self._closed_until = {name: until for name, until in self._closed_until.items() if until > now}
            return {name: until - now for name, until in self._closed_until.items()}


class RemoteLimits:
    """The limits of a model that many processes call: a permit of the head goes with every request."""

    def __init__(self, requests: AttemptRequests, model: Model, operation: OperationConfig) -> None:
        endpoint = operation.endpoint(model.name)
        self._requests, self._model = requests, model.name
        self.counts_tokens = endpoint.tokens_per_minute is not None
        self._is_limited = any((endpoint.concurrency, endpoint.requests_per_minute, endpoint.tokens_per_minute))
        self._closed_until = 0.0
        self._turn = threading.Lock()
        """Held by the one thread of this process that asks; the others wait for it."""

    @contextmanager
    def request(self, tokens: Callable[[], int], wait: Wait) -> Iterator[Settle]:
        while (left := self._closed_until - time.monotonic()) > 0:
            wait(min(left, LOOK))
        if not self._is_limited:
            yield lambda used: None
            return
        used: int | None = None

        def settle(taken: int) -> None:
            nonlocal used
            used = taken

        number = self._permit(tokens, wait)
        try:
            yield settle
        finally:
            self._requests.tell(RequestEnded(number, used))

    def _permit(self, tokens: Callable[[], int], wait: Wait) -> int:
        while not self._turn.acquire(timeout=LOOK):
            wait(0)
        try:
            while True:
                answer: Permit | float = self._requests.ask(AskPermit(self._model, tokens()))
                if isinstance(answer, Permit):
                    return answer.number
                wait(answer)
        finally:
            self._turn.release()

    def pause(self, seconds: float) -> None:
        self.note_pause(seconds)
        self._requests.tell(PauseModel(self._model, seconds))

    def note_pause(self, seconds: float) -> None:
        """The head has heard that the model's provider wants no requests for so long."""
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)


def limits_on_node(requests: AttemptRequests, model: Model, operation: OperationConfig) -> ModelLimits:
    """The limits of a model for a process on a node. A local model runs in that process: so do its limits."""
    if model.model.startswith(LOCAL):
        return OwnLimits(model, operation.endpoint(model.name))
    return RemoteLimits(requests, model, operation)
