"""The client, through which many threads call many models. It retries calls and keeps to limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from stepdown.builder import actions
from stepdown.builder.common import tokens
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.config.operation import Endpoint, OperationConfig
from stepdown.builder.config.pool import LOCAL, WORKLOAD, Model
from stepdown.builder.errors import Interrupted, RunStopped, Technical
from stepdown.builder.models import prompt_cache, proxies
from stepdown.builder.models.addresses import known_address, open_address, place
from stepdown.builder.models.errors import CutOff, Rejected, Unusable, WrongCall
from stepdown.builder.models.failures import Failure, FailureKind, classify
from stepdown.builder.models.families import family_of
from stepdown.builder.models.limits import ModelLimits, OwnLimits, Settle
from stepdown.builder.models.local import Runtime
from stepdown.builder.models.outage import EQUAL_FAILURES, Outage
from stepdown.builder.models.reading import read_response
from stepdown.builder.models.reasoning import Form, ReasoningWanted, forms
from stepdown.builder.models.roads import Roads
from stepdown.builder.models.warming import PromptWarming
from stepdown.builder.records import FIRST, WITHOUT_THINKING, Prefix, Reasoning, Response, Sample, Stop, Usage

_LONGEST_WAIT = 7 * 24 * 3600.0
"""Seconds. A longer wait would overflow the clock."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's response, and the errors that came before it, oldest first."""

    response: Response
    attempts: tuple[str, ...] = ()


class _Transient(Exception):
    """A request failed in a way that may not happen again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class _EndpointState:
    """What the calls of one model share: its endpoint's settings, its limits, and what is known of its provider."""

    def __init__(
        self, model: Model, endpoint: Endpoint, limits: ModelLimits, longest_wait: float, clock: Callable[[], float]
    ) -> None:
        self.settings = endpoint
        self.family = family_of(model)
        self.outage = Outage(longest_wait)
        self.warming = PromptWarming(clock) if prompt_cache.is_asked(model) else None
        self.takes_marks = self.warming is not None
        self.wants: ReasoningWanted | None = None
        self.limits = limits
        self._longest_answer = 0

    def expected_tokens(self, request: Mapping[str, Any]) -> int:
        """Of a request and its answer; 0 where no limit counts them.

        Its answer is expected to be as long as the longest so far, or as long as allowed where there is none yet.
        """
        if not self.limits.counts_tokens:
            return 0
        may = request.get("max_tokens") or request.get("max_completion_tokens") or tokens.USUAL_ANSWER
        expected = tokens.of_request(request["messages"], request.get("tools", ()))
        return expected + (self._longest_answer or (may if isinstance(may, int) else tokens.USUAL_ANSWER))

    def note_answer(self, usage: Usage, settle: Settle) -> None:
        """Count an answered request by its usage."""
        if taken := usage.prompt + usage.completion:
            self._longest_answer = max(self._longest_answer, usage.completion)
            settle(taken)


class Client:
    """Calls models as the config's operation says. Thread-safe; a context manager.

    Once `stop` is set every wait ends and the call raises Interrupted. Requests under way are finished, since they are
    paid for. `check` is called before every request and raises where none may be begun. `clock` gives the seconds by
    which requests and tokens per minute are counted. `on_error` is told of every request that failed, `notify` of what
    a person should know at once: an endpoint pauses, or answers again. `limits` gives those of each model; without it
    they are this client's own. Addresses on this machine are asked without the environment's proxies.
    Raises BadInput where a proxy variable can not be used.
    """

    def __init__(
        self,
        models: Iterable[Model],
        operation: OperationConfig,
        stop: threading.Event | None = None,
        check: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        on_error: Callable[[str], None] = lambda text: None,
        notify: Callable[[str], None] = lambda line: None,
        limits: Callable[[Model], ModelLimits] | None = None,
    ) -> None:
        models = list(models)
        proxies.prepare([known_address(model, operation.endpoint(model.name)) for model in models if _is_asked(model)])
        self._retries = retries = operation.retries
        limits = limits or (lambda model: OwnLimits(model, operation.endpoint(model.name), clock))
        self._endpoints = {
            model.name: _EndpointState(
                model, operation.endpoint(model.name), limits(model), retries.longest_wait, clock
            )
            for model in models
        }
        self._on_error, self._notify = on_error, notify
        first, longest = retries.first_wait, retries.longest_wait
        self._backoff = wait_exponential_jitter(multiplier=first, max=longest, jitter=first)
        self._stop = stop or threading.Event()
        self._check = check
        self._secrets = SECRETS
        self._secrets.know(
            endpoint.settings.api_key for endpoint in self._endpoints.values() if endpoint.settings.api_key
        )
        self._runtime, self._roads = Runtime(), Roads()
        self._idle = threading.Condition()
        self._under_way = 0
        self._warned: set[str] = set()
        self._closed = False

    def complete(
        self,
        model: Model,
        prefix: Prefix,
        sample: Sample = FIRST,
        reasoning: Mapping[int, Reasoning] | None = None,
        grows: bool = False,
    ) -> Completion:
        """The model's response to a prefix. `reasoning` is the model's own behind its earlier steps, by the place of
        their messages; texts are sent where its API wants them, what is sealed wherever it gave such. `grows`: later
        calls go on from this prefix, so its provider is asked to keep it.

        Where the model's parameters hold a `seed`, it is shifted by the sample: samples differ and can be had again.

        Raises Technical where all tries failed for technical reasons, RunStopped where every call would fail (the key,
        the credit, the model or its parameters are wrong), Interrupted, and BadInput where a local model is not
        installed.
        """
        endpoint = self._endpoints[model.name]
        request = self._request_body(model, prefix, sample)
        if endpoint.takes_marks:
            request = prompt_cache.marked(model, request, grows)
        own = (reasoning or {}) if model.actions == "tools" else {}
        errors: list[str] = []

        def attempt() -> Response:
            warming = endpoint.warming.turn(prefix, self._wait) if endpoint.warming and grows else nullcontext()
            try:
                expected = partial(endpoint.expected_tokens, request)
                with warming, endpoint.outage.turn(self._wait), endpoint.limits.request(expected, self._wait) as settle:
                    with self._count_under_way(), self._watch_for_outage(model, endpoint):
                        response = self._request_once(model, endpoint, request, prefix, own)
                    endpoint.note_answer(response.usage, settle)
                    return response
            except _Transient as error:
                errors.append(error.failure.text)
                raise

        retrying = Retrying(
            stop=stop_after_attempt(self._retries.attempts),
            wait=self._pause_seconds,
            sleep=self._wait,
            retry=retry_if_exception_type(_Transient),
            reraise=True,
        )
        try:
            response = retrying(attempt)
        except _Transient as error:
            raise Technical(f"{model.name}: {error.failure.text}", errors[:-1]) from None
        except Technical as error:
            raise Technical(error.reason, errors) from None
        return Completion(response, tuple(errors))

    def close(self) -> None:
        """Wait for the requests under way, then close connections and stop the local servers. Later calls raise
        Interrupted."""
        with self._idle:
            self._closed = True
            self._idle.wait_for(lambda: self._under_way == 0)
        self._roads.close()
        self._runtime.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def _request_body(model: Model, prefix: Prefix, sample: Sample) -> dict[str, Any]:
        """The part of the request that is the same at every attempt."""
        if model.model.startswith(WORKLOAD):
            raise ValueError(f"{model.name!r} is answered for by the workload's harness, not by a client")
        rendered = actions.rendered(model.actions, prefix)
        request: dict[str, Any] = {"messages": rendered.messages, **model.parameters}
        if isinstance(seed := request.get("seed"), int) and not isinstance(seed, bool):
            request["seed"] = seed + sample.shift
        if rendered.tools:
            request["tools"] = rendered.tools
        if rendered.response_format:
            request["response_format"] = rendered.response_format
        return request

    def _request_once(
        self,
        model: Model,
        endpoint: _EndpointState,
        request: Mapping[str, Any],
        prefix: Prefix,
        reasoning: Mapping[int, Reasoning],
    ) -> Response:
        """Make one request, once more in another form where the API turns out to want the model's reasoning otherwise.

        Raises _Transient where it is worth another try.
        """
        tried: list[Form] = []
        want = endpoint.wants
        waiting = list(forms(model.model, request, reasoning, want))
        while True:
            form = waiting.pop(0)
            tried.append(form)
            answer = self._send(model, endpoint, form.request, prefix)
            if isinstance(answer, Response):
                return self._told_of_thinking(model, answer) if form.without_thinking else answer
            if answer.wants not in (None, want):
                want = endpoint.wants = answer.wants
                waiting = list(forms(model.model, request, reasoning, want))
            waiting = [one for one in waiting if one not in tried] if answer.wants else []
            if not waiting:
                return self._handle_failure(model, endpoint, answer)

    def _send(
        self, model: Model, endpoint: _EndpointState, request: Mapping[str, Any], prefix: Prefix
    ) -> Response | Failure:
        """The response to one request, or why there is none, where that is not certain to end the call."""
        settings = endpoint.settings
        whole = {**request, **open_address(model, settings, endpoint.family, self._runtime)}
        try:
            answer = self._roads.ask(endpoint.family, whole, settings.timeout)
        except Unusable as error:
            raise _Transient(Failure(FailureKind.TRANSIENT, self._secrets.line(str(error)))) from None
        except CutOff as error:
            text = f"time-out: {place(model, settings)}: {error} within {settings.timeout:g} s"
            raise _Transient(Failure(FailureKind.TRANSIENT, self._secrets.line(text))) from None
        except WrongCall as error:
            text = f"model {model.name!r}, {model.model}: {self._secrets.line(str(error))}"
            raise RunStopped(text, in_protocol=True) from None
        except Rejected as error:
            raise Technical(f"{model.name}: {error}") from None
        except Exception as error:
            address = None if model.model.startswith(LOCAL) else whole.get("api_base")
            failure = classify(error, self._secrets, address, _fields(request))
            if not failure.refuses_marks or (plain := prompt_cache.unmarked(request)) == request:
                return failure
            endpoint.takes_marks = False
            self._tell_of_refused_marks(model)
            return self._send(model, endpoint, plain, prefix)
        response, left_as_text = read_response(model, prefix, request, answer, self._secrets.remover())
        if left_as_text:
            self._warn_of_calls_as_text(model)
        return response

    def _told_of_thinking(self, model: Model, response: Response) -> Response:
        """A response that was given without thinking, marked as one; a person is told once for each model."""
        self._notify_once(
            f"{model.name} answers without `thinking` after steps that other models made: its API wants its own signed "
            "thinking before each tool call, for which nothing can stand in",
            f"thinking of {model.name}",
        )
        return replace(response, extra={**response.extra, WITHOUT_THINKING: True})

    def _tell_of_refused_marks(self, model: Model) -> None:
        self._notify_once(
            f"{model.name} at {place(model, self._endpoints[model.name].settings)} refuses `{prompt_cache.MARK}`: its "
            "prompts are not kept, and cost more; `prompt_cache: off` in its entry asks for nothing",
            f"prompts of {model.name}",
        )

    def _warn_of_calls_as_text(self, model: Model) -> None:
        """Once for each model: every such answer fails, and the model is not to blame."""
        self._notify_once(
            f"{model.name} at {place(model, self._endpoints[model.name].settings)} leaves tool calls as text, where "
            "they can not be parsed, so its steps fail: start its server with the model's tool parser, or set "
            "`actions: text`",
            f"calls of {model.name}",
        )

    def _notify_once(self, line: str, about: str) -> None:
        with self._idle:
            first = about not in self._warned
            self._warned.add(about)
        if first:
            self._notify(line)

    def _handle_failure(self, model: Model, endpoint: _EndpointState, failure: Failure) -> Response:
        if failure.kind is FailureKind.OVERFLOW:
            return Response(stop=Stop.OVERFLOW, extra={"error": failure.text})
        if failure.kind is FailureKind.REFUSED:
            return Response(stop=Stop.REFUSED, extra={"error": failure.text})
        if failure.kind is FailureKind.STOPPED:
            key = f" (key variable: {endpoint.settings.api_key})" if endpoint.settings.api_key else ""
            raise RunStopped(
                f"model {model.name!r}, {model.model}: {failure.text}{key}", in_protocol=failure.in_protocol
            )
        if failure.kind is FailureKind.REJECTED:
            raise Technical(f"{model.name}: {failure.text}")
        if failure.wait is not None:
            endpoint.limits.pause(min(failure.wait, self._retries.longest_wait))
        raise _Transient(failure)

    @contextmanager
    def _watch_for_outage(self, model: Model, endpoint: _EndpointState) -> Iterator[None]:
        """Count what a request comes to; say so where its endpoint begins to pause, or answers again."""
        try:
            yield
        except (_Transient, Technical) as error:
            text = error.failure.text if isinstance(error, _Transient) else str(error)
            self._on_error(text)
            pause = endpoint.outage.note_failure(text)
            if pause is not None:
                self._notify(
                    f"{model.name} at {place(model, endpoint.settings)} pauses for {pause:g} s: "
                    f"{EQUAL_FAILURES} or more equal failures in a row: {text}"
                )
            raise
        if endpoint.outage.note_answer():
            self._notify(f"{model.name} at {place(model, endpoint.settings)} answers again")

    def _pause_seconds(self, state: RetryCallState) -> float:
        """Seconds to the next try: exponential with jitter, or longer where the provider asks for it, but bounded."""
        backoff = self._backoff(state)
        error = state.outcome.exception() if state.outcome else None
        asked = error.failure.wait if isinstance(error, _Transient) else None
        return min(max(backoff, asked or 0.0), self._retries.longest_wait)

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(min(seconds, _LONGEST_WAIT)):
            raise Interrupted("the run was asked to stop")

    @contextmanager
    def _count_under_way(self) -> Iterator[None]:
        """Count a request as under way, so that `close` waits for it."""
        self._wait(0)
        self._check()
        with self._idle:
            if self._closed:
                raise Interrupted("the client is closed")
            self._under_way += 1
        try:
            yield
        finally:
            with self._idle:
                self._under_way -= 1
                self._idle.notify_all()


def _fields(request: Mapping[str, Any]) -> frozenset[str]:
    """What a request holds beside its messages."""
    return frozenset(request) - {"messages"}


def _is_asked(model: Model) -> bool:
    """Whether a model is asked over a connection; pseudo-models are not."""
    return not model.model.startswith(WORKLOAD)
