"""The response cache: every response that was paid for, on disk before it is acted upon, for many runs."""

from __future__ import annotations

import gc
import re
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import diskcache
from diskcache.core import MODE_PICKLE

from builder.errors import BadInput
from builder.pool import Model
from builder.records import Prefix, Response, Sample, canonical_json, digest


@dataclass(frozen=True, slots=True)
class Question:
    """One question to one model: what a response depends on, and nothing else."""

    workload: str
    harness_version: str
    """The harness's code, upstream pin, prompts, limits and options: they shape what follows a prefix."""
    instance: str
    step: int
    """A step's place: equal prefixes at different steps are different draws."""
    model: Model
    prefix: Prefix
    sample: Sample
    _keys: dict[bool, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def key(self, exact: bool = False) -> str:
        """The cache key. Canonical by default: volatile text does not make another question."""
        # Made once: looking up, keeping and recording a response all need it.
        if exact not in self._keys:
            self._keys[exact] = self._made_key(exact)
        return self._keys[exact]

    def _made_key(self, exact: bool) -> str:
        return digest(
            [
                self.workload,
                self.harness_version,
                self.instance,
                self.step,
                self.model.identity,
                self.model.parameters,
                self.prefix.exact if exact else self.prefix.canonical,
                exact,
                self.sample.namespace,
                self.sample.number,
            ]
        )

    def served_by(self, prefix_exact: str, response: Response) -> bool:
        """Whether a response given to the prefix of that exact digest answers this question.

        A response that repeats volatile text (a temporary path, a time) belongs to the very prefix it was given to.
        """
        if prefix_exact == self.prefix.exact or self.prefix.mask is None:
            return True
        text = canonical_json([response.content, [[c.name, c.arguments] for c in response.tool_calls]])
        return self.prefix.mask(text) == text


_KEY = re.compile(r"[0-9a-f]{64}")


def is_key(key: object) -> bool:
    """Whether this has the shape of a cache key, and of every other digest here: SHA-256 in hex.

    >>> is_key("0f" * 32), is_key("0F" * 32), is_key(7)
    (True, False, False)
    """
    return isinstance(key, str) and _KEY.fullmatch(key) is not None


class Store(Protocol):
    """What a response cache keeps its entries in: a folder here, a shared service elsewhere. Values are JSON."""

    def get(self, key: str) -> Any | None: ...

    def put(self, key: str, value: Any) -> None:
        """Durable when it returns."""

    def keys(self) -> Iterator[str]: ...

    def delete(self, key: str) -> None:
        """Forget an entry, if there is one; safe while others read and write."""

    def close(self) -> None: ...


COMPRESSION = 1
"""zlib's level; stored keys are compressed too, so that it is part of what a key is found by."""


class JsonOnly(diskcache.JSONDisk):  # type: ignore[misc]
    """JSONDisk that refuses the pickled rows which its base class would load: a cache may be somebody else's."""

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
        if mode == MODE_PICKLE:
            raise ValueError("a pickled entry")
        return super().fetch(mode, filename, value, read)

    def get(self, key: Any, raw: bool) -> Any:
        if not raw:
            raise ValueError("a pickled key")
        return super().get(key, raw)


DATABASE: str = diskcache.core.DBNAME


def is_cache(folder: Path) -> bool:
    return (folder / DATABASE).is_file()


_UNUSABLE = (OSError, sqlite3.Error, diskcache.Timeout)


class DiskStore:
    """A folder, by diskcache, without eviction. Threads and processes may share it. Raises BadInput where unusable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._cache = diskcache.Cache(
                str(folder),
                disk=JsonOnly,
                disk_compress_level=COMPRESSION,
                eviction_policy="none",
                cull_limit=0,
                statistics=False,
                timeout=60,
                # Every thread has a connection of its own: what each may hold in memory counts as often.
                sqlite_cache_size=2000,
                sqlite_mmap_size=0,
            )
        except _UNUSABLE as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> BadInput:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return BadInput(f"the response cache can not be used: {reason}", file=self._folder)

    def get(self, key: str) -> Any | None:
        """The value, or None. An entry that cannot be read (truncated, foreign) counts as absent."""
        try:
            return self._cache.get(key)
        except _UNUSABLE as error:
            raise self._unusable(error) from error
        except (ValueError, TypeError, EOFError, zlib.error):
            return None

    def put(self, key: str, value: Any) -> None:
        try:
            self._cache.set(key, value)
        except _UNUSABLE as error:
            raise self._unusable(error) from error

    def keys(self) -> Iterator[str]:
        return iter(self._cache)

    def delete(self, key: str) -> None:
        try:
            self._cache.delete(key)
        except _UNUSABLE as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        # The connections of threads that have ended lie in reference cycles, and while one is open SQLite leaves its
        # log, megabytes long, beside the file.
        gc.collect()
        self._cache.close()


@dataclass(frozen=True, slots=True)
class Entry:
    """A response as the cache holds it: the exact digest of the prefix it was given to, and the run that paid.

    `key` is what it is kept under: by it a ledger says what a run used.
    """

    key: str
    prefix: str
    response: Response
    run: str

    def to_json(self) -> dict[str, Any]:
        return {"prefix": self.prefix, "run": self.run, "response": self.response.to_json()}

    @classmethod
    def from_json(cls, key: str, value: Any) -> Entry:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else."""
        if not isinstance(value, Mapping):
            raise TypeError("an entry is a mapping")
        return cls(key, str(value["prefix"]), Response.from_json(value["response"]), str(value["run"]))


class Cache:
    """Responses by question, as one run uses them. `run` is its id: every entry says which run paid for it."""

    def __init__(self, store: Store, run: str) -> None:
        self._store, self.run = store, run

    def get(self, question: Question) -> Entry | None:
        """The response that was paid for this question; None where there is none that may be served."""
        keys = [question.key()]
        if question.prefix.exact != question.prefix.canonical:
            keys.append(question.key(exact=True))
        for key in keys:
            found = self._read(key)
            if found is not None and question.served_by(found.prefix, found.response):
                return found
        return None

    def put(self, question: Question, response: Response) -> Entry:
        """Keep a response; on disk when this returns.

        Where another response, to a prefix with other volatile text, has the question's place, it gets one of its own.
        """
        key = question.key()
        if question.prefix.exact != question.prefix.canonical and self._read(key) is not None:
            key = question.key(exact=True)
        entry = Entry(key, question.prefix.exact, response, self.run)
        self._store.put(key, entry.to_json())
        return entry

    def _read(self, key: str) -> Entry | None:
        value = self._store.get(key)
        try:
            return Entry.from_json(key, value)
        except (KeyError, TypeError, ValueError):
            return None

    def close(self) -> None:
        self._store.close()
