"""The response cache: every response that was paid for is on disk before it is acted upon. Many runs may share one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from stepdown.builder.actions.rereading import READING
from stepdown.builder.cache.question import Question
from stepdown.builder.cache.store import Store
from stepdown.builder.records import Response


class Entry(NamedTuple):
    """A response as the cache holds it, with the exact digest of the prefix that it was given to.

    `key` is its key in the cache, by which a ledger names it; `run` is the id of the run that paid for it.
    """

    key: str
    prefix_digest: str
    response: Response
    run: str
    reading: int = 0
    """By which count of the rules of reading; 0 where it was kept before they were counted."""

    def to_json(self) -> dict[str, Any]:
        return {
            "prefix": self.prefix_digest,
            "run": self.run,
            "reading": self.reading,
            "response": self.response.to_json(),
        }

    @classmethod
    def from_json(cls, key: str, value: Any) -> Entry:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else."""
        if not isinstance(value, Mapping):
            raise TypeError("an entry is a mapping")
        response, reading = Response.from_json(value["response"]), int(value.get("reading", 0))
        return cls(key, str(value["prefix"]), response, str(value["run"]), reading)


class Answer(NamedTuple):
    """What a question was answered with: the cache's entry, and whether its response was made just now."""

    entry: Entry
    fresh: bool

    @property
    def response(self) -> Response:
        return self.entry.response


class Answers(Protocol):
    """Where questions are answered, for one run: from what is kept, else by asking."""

    @property
    def run(self) -> str:
        """The run's id."""

    def get_or_ask(self, question: Question, ask: Callable[[Question], Response]) -> Answer: ...


class Cache:
    """Responses by question, as one run uses them. `run` is the run's id: every entry says which run paid for it."""

    def __init__(self, store: Store, run: str) -> None:
        self._store, self.run = store, run

    def get_or_ask(self, question: Question, ask: Callable[[Question], Response]) -> Answer:
        """The kept response, else a new one from `ask`, which is on disk when this returns."""
        found = self.get(question)
        return Answer(found, fresh=False) if found else Answer(self.put(question, ask(question)), fresh=True)

    def get(self, question: Question) -> Entry | None:
        """The entry that answers this question; None where there is none."""
        for key in keys_of(question):
            if (found := served(question, key, self._store.get(key))) is not None:
                return found
        return None

    def put(self, question: Question, response: Response) -> Entry:
        """Keep a response. It is on disk when this returns.

        Where the key already holds a response to a prefix with other volatile text, this one is kept under the exact
        key.
        """
        key, *exact = keys_of(question)
        if exact and entry_of(key, self._store.get(key)) is not None:
            key = exact[0]
        entry = Entry(key, question.prefix.exact, response, self.run, READING)
        self._store.put(key, entry.to_json())
        return entry

    def close(self) -> None:
        self._store.close()


def keys_of(question: Question) -> list[str]:
    """Under which keys an answer may stand, in the order of looking: the canonical one, then another exact one."""
    if question.prefix.exact == question.prefix.canonical:
        return [question.key()]
    return [question.key(), question.key(exact=True)]


def served(question: Question, key: str, value: Any) -> Entry | None:
    """What a store holds under one of a question's keys, where it answers the question."""
    found = entry_of(key, value)
    if found is None or not question.served_by(found.prefix_digest, found.response):
        return None
    if found.reading >= READING:
        return found
    response = question.read_anew(found.response)
    return None if response is None else found._replace(response=response)


def entry_of(key: str, value: Any) -> Entry | None:
    """The entry that a store holds under a key; None where there is none that can be read."""
    if value is None:
        return None
    try:
        return Entry.from_json(key, value)
    except (KeyError, TypeError, ValueError):
        return None
