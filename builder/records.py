"""The data model: every record that crosses a module border. A newcomer starts here.

The words are those of the field: an *instance* is one task of a workload; a *step* is one LLM call of a *trajectory*,
numbered from 1; the *prefix* is what a router sees before a step. Records are frozen; what acts on them is elsewhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from stepdown.builder.digests import canonical_json as canonical_json
from stepdown.builder.digests import clean_text as clean_text
from stepdown.builder.digests import cleaned, masked
from stepdown.builder.digests import digest as digest
from stepdown.builder.digests import exact_digest as exact_digest
from stepdown.builder.digests import exact_json as exact_json
from stepdown.builder.verdicts import NO_SIGNS as NO_SIGNS
from stepdown.builder.verdicts import OutcomeState as OutcomeState
from stepdown.builder.verdicts import Ruling as Ruling
from stepdown.builder.verdicts import Signs as Signs
from stepdown.builder.verdicts import Verdict as Verdict
from stepdown.builder.verdicts import outcome_state as outcome_state

Message = dict[str, Any]
"""A chat message with `role`, `content`, `tool_calls`, `tool_call_id` and `name` only. Never changed once made."""

Tool = dict[str, Any]
"""A tool definition as chat APIs take it: `{"type": "function", "function": {name, description, parameters}}`,
`parameters` being standard JSON Schema. Names are the workload's own; the client maps what a provider rejects."""

Mask = Callable[[str], str]
"""Replaces volatile text (times, temporary paths, addresses) by a constant, for canonical digests only."""

MESSAGE_FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name")


MOST_TOKENS = 1 << 40
"""A provider that reports more for one call is mistaken; sums of such counts still fit where they are stored."""


class Stop(StrEnum):
    """Why a response ended."""

    END = "end"
    LENGTH = "length"
    """max_tokens was reached; the response is taken as it is."""
    REFUSED = "refused"
    """An explicit refusal or a provider's content filter."""
    OVERFLOW = "overflow"
    """The prefix does not fit the model's context; there is no answer."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call: the tool's name as the prefix defines it, and its arguments as the text of one JSON object."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, reported by its provider or estimated. `prompt` includes what its cache read or wrote."""

    prompt: int = 0
    cache_read: int = 0
    cache_write: int = 0
    completion: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.completion + other.completion,
        )


USAGE_ESTIMATED = "usage_estimated"
REPORTED_USD = "reported_usd"
REASONING = "reasoning"
SEALED_REASONING = "sealed_reasoning"
WITHOUT_THINKING = "without_thinking"
"""Fields of a response's `extra`."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A model's own reasoning behind one of its steps, for the API that made it."""

    text: str = ""
    sealed: str = ""
    """What its API signed or encrypted, as JSON text: nobody else can read or check it."""


@dataclass(frozen=True, slots=True)
class Response:
    """One model's answer to one prefix, in the canonical action form, whoever made it.

    `malformed` marks an attempted tool call that could not be parsed: its text is then the `content` and there are no
    `tool_calls`. `extra` holds reasoning and provider fields (JSON); it stays in cache and ledger and reaches no row.
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop: Stop = Stop.END
    malformed: bool = False
    usage: Usage = Usage()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def usage_is_estimated(self) -> bool:
        """Whether its provider did not report all of its usage: the rest is estimated by the texts' lengths."""
        return self.extra.get(USAGE_ESTIMATED) is True

    @property
    def reasoning(self) -> Reasoning:
        """The model's own reasoning behind it, where its API showed any."""
        text, sealed = (self.extra.get(name) for name in (REASONING, SEALED_REASONING))
        return Reasoning(text if isinstance(text, str) else "", sealed if isinstance(sealed, str) else "")

    @property
    def reported_usd(self) -> float | None:
        """What a gateway said that the call cost, in USD; None where it said nothing."""
        value = self.extra.get(REPORTED_USD)
        return value if isinstance(value, float) and 0 <= value < math.inf else None

    def to_json(self) -> dict[str, Any]:
        """The response as JSON values; empty fields are left out.

        >>> Response.from_json(Response("hi").to_json()) == Response("hi")
        True
        """
        out: dict[str, Any] = {"content": self.content}
        if self.tool_calls:
            out["tool_calls"] = [[call.name, call.arguments] for call in self.tool_calls]
        if self.stop is not Stop.END:
            out["stop"] = self.stop.value
        if self.malformed:
            out["malformed"] = True
        usage = self.usage
        if usage.prompt or usage.cache_read or usage.cache_write or usage.completion:
            out["usage"] = [usage.prompt, usage.cache_read, usage.cache_write, usage.completion]
        if self.extra:
            out["extra"] = dict(self.extra)
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Response:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else: it may be foreign."""
        content, usage, extra = data["content"], data.get("usage", (0, 0, 0, 0)), data.get("extra", {})
        calls = tuple(ToolCall(name, arguments) for name, arguments in data.get("tool_calls", ()))
        texts = [content, *(text for call in calls for text in (call.name, call.arguments))]
        if any(not isinstance(text, str) or text != clean_text(text) for text in texts):
            raise ValueError("not text")
        if any(type(count) is not int or not 0 <= count <= MOST_TOKENS for count in usage):
            raise ValueError("not a count of tokens")
        if not isinstance(extra, Mapping):
            raise ValueError("not a mapping")
        stop, malformed = Stop(data.get("stop", "end")), bool(data.get("malformed", False))
        return cls(content, calls, stop, malformed, Usage(*usage), extra)


def _chain(previous: str, link: str) -> str:
    return hashlib.sha256(f"{previous}{link}".encode()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """The messages and tool definitions that a router sees before a step.

    Made with `Prefix.start` and grown with `extend` and `respond`; growing costs the new messages only, since digests
    are chained. Two digests: `exact` names these very bytes (storage, rows), `canonical` the same under the workload's
    mask (cache keys). They are equal where nothing is volatile.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    message_digests: tuple[str, ...]
    calls: int
    """Tool calls made so far: the next one is `call_{calls + 1}`, whatever id its provider gave it."""
    mask: Mask | None
    tools_digest: str
    """Of the definitions; empty where there are none."""
    _exact_chain: str
    _canonical_chain: str

    @classmethod
    def start(cls, messages: Iterable[Message], tools: Iterable[Tool] = (), mask: Mask | None = None) -> Prefix:
        """The prefix of a first step. `mask` is the workload's; None where nothing is volatile."""
        tools = tuple(tools)
        empty = cls((), tools, (), 0, mask, exact_digest(tools) if tools else "", "", "")
        return empty.extend(messages)

    def extend(self, messages: Iterable[Message]) -> Prefix:
        """This prefix with messages added. Fields that do not belong into a message are dropped."""
        added, links, calls = list(self.messages), list(self.message_digests), self.calls
        exact, canonical, mask = self._exact_chain, self._canonical_chain, self.mask
        for raw in messages:
            message = {name: cleaned(raw[name]) for name in MESSAGE_FIELDS if raw.get(name) is not None}
            link = exact_digest(message)
            exact = _chain(exact, link)
            canonical = exact if mask is None else _chain(canonical, exact_digest(masked(message, mask)))
            if "tool_calls" in message:
                calls += len(message["tool_calls"])
            added.append(message)
            links.append(link)
        # By position, since a prefix is grown at every step.
        return Prefix(tuple(added), self.tools, tuple(links), calls, mask, self.tools_digest, exact, canonical)

    def respond(self, response: Response, following: Iterable[Message] = ()) -> Prefix:
        """This prefix with the response as the assistant's message, its calls numbered on from those before it, and
        with the messages `following` it.

        >>> prefix = Prefix.start([{"role": "user", "content": "hi"}])
        >>> [c["id"] for c in prefix.respond(Response("", (ToolCall("f", "{}"),))).messages[-1]["tool_calls"]]
        ['call_1']
        """
        return self.extend([assistant_message(response, first_call=self.calls + 1), *following])

    def with_tools(self, tools: Iterable[Tool]) -> Prefix:
        """This prefix with other tool definitions, for workloads whose tools change on the way."""
        tools = tuple(tools)
        return replace(self, tools=tools, tools_digest=exact_digest(tools) if tools else "")

    @property
    def exact(self) -> str:
        """The digest of the very messages and tools."""
        return _chain(self._exact_chain, self.tools_digest) if self.tools_digest else self._exact_chain

    @property
    def canonical(self) -> str:
        """The digest of the messages and tools with volatile text masked."""
        return _chain(self._canonical_chain, self.tools_digest) if self.tools_digest else self._canonical_chain

    def grew_from(self, earlier: Prefix) -> bool:
        """Whether this prefix is `earlier` with messages added (tools aside)."""
        count = len(earlier.messages)
        return self.message_digests[:count] == earlier.message_digests


def assistant_message(response: Response, first_call: int = 1) -> Message:
    """The response as a chat message; its tool calls are numbered `call_{first_call}` and on."""
    message: Message = {"role": "assistant", "content": response.content}
    if response.tool_calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for number, call in enumerate(response.tool_calls, first_call)
        ]
    return message


@dataclass(frozen=True, slots=True)
class Instance:
    """One task of a workload. `task` is the workload's own data (JSON); `id` is unique within the benchmark.

    A workload's structural filter sets `dropped` to the reason: such an instance is counted, not searched. `group`
    names what an honest evaluation holds out whole (a repository, a conversation, a meeting, a family of functions);
    an instance that has nothing in common with others is a group of its own.
    """

    benchmark: str
    id: str
    task: Mapping[str, Any]
    dropped: str | None = None
    group: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.benchmark, self.id


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One executed LLM call: what the model saw, what it answered, and its name in the pool."""

    prefix: Prefix
    response: Response
    model: str


Trajectory = tuple[Step, ...]
"""The ordered steps of one run; step i is `trajectory[i - 1]`."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Which of several independent draws a call belongs to. Namespaces never share responses.

    `search` is the search itself; collecting seeds, confirming, controlling and hinting have their own.
    """

    namespace: str = "search"
    number: int = 0

    @property
    def shift(self) -> int:
        """What is added to a generation seed, so that other draws are other draws where a model takes a seed."""
        start = 0 if self.namespace == "search" else int(digest(self.namespace)[:6], 16)
        return start + self.number


FIRST = Sample()
"""The search's first draw, the only one where one accepted sample is enough."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One mixed-model trajectory to execute: `model` of tier `tier` (an index, 0 the cheapest) makes step `step`.

    Earlier steps are replayed as locked, later ones made by the strong model; at most `limit` calls in all (None: as
    many as the workload lets an agent make).
    """

    step: int
    tier: int
    model: str
    limit: int | None
    sample: Sample = FIRST


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a trial came to. `trajectory` holds all steps that were executed, replayed ones included.

    `reason` says in a few words why the verdict is not pass. `trajectory` is empty where none was kept. `grading` is
    what the verdict rests on, JSON, where the workload has more to say than the reason.
    """

    verdict: Verdict
    trajectory: Trajectory = ()
    reason: str = ""
    grading: Mapping[str, Any] | None = None
    cut_off: bool = False
    """Whether the verdict was certain before the agent had halted, so that the rest was not played. The limit of calls
    cuts nothing off in this sense."""
    state: OutcomeState | None = None
    """As far as it was played; None where the workload does not tell states."""

    def __post_init__(self) -> None:
        # Both may quote what a model wrote.
        object.__setattr__(self, "reason", clean_text(self.reason))
        object.__setattr__(self, "grading", cleaned(self.grading))


@dataclass(frozen=True, slots=True)
class Lock:
    """A step's accepted tier (an index) and model."""

    tier: int
    model: str


class Call(NamedTuple):
    """One question that a trial asked and did not know the answer of: the key of the cache's entry, its model, what it
    took."""

    key: str
    model: str
    usage: Usage
    paid: bool
    """Whether this run paid for it; else an earlier run did, and the cache answered."""
    reported_usd: float | None = None
    """What a gateway said that it cost; None where it said nothing."""
    usage_is_estimated: bool = False
    """Whether its provider did not report all of its usage."""


@dataclass(slots=True)
class Receipt:
    """What executing one trial took: its calls, and the errors that came before retries, oldest first."""

    calls: list[Call] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
