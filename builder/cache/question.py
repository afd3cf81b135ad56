"""A question to a model: all that its response depends on, from which the cache key is made."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from stepdown.builder.actions.rereading import reread
from stepdown.builder.config.pool import WORKLOAD, Model
from stepdown.builder.records import Prefix, Reasoning, Response, Sample, canonical_json


@dataclass(frozen=True, slots=True)
class Question:
    """One question to one model: all that the response depends on, and nothing else."""

    workload: str
    harness_version: str
    """The harness's code, upstream pin, prompts, limits and options: they shape what follows a prefix."""
    instance: str
    step: int
    """A step's place: equal prefixes at different steps are different draws."""
    model: Model
    prefix: Prefix
    sample: Sample
    reasoning: Mapping[int, Reasoning] = field(default_factory=dict, repr=False, compare=False)
    """The model's own reasoning behind its earlier steps, by the place of their messages in the prefix. It is sent to
    APIs that want it and is no part of the key: a prefix does not tell who made its steps."""
    grows: bool = field(default=False, repr=False, compare=False)
    """Whether later questions go on from this prefix, so that a provider does well to keep it. No part of the key."""
    _keys: dict[bool, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def key(self, exact: bool = False) -> str:
        """The cache key, a digest: of the canonical prefix, in which volatile text is masked, or of the exact one."""
        # Kept, since looking up, keeping and recording a response all need it.
        if exact not in self._keys:
            self._keys[exact] = self._made_key(exact)
        return self._keys[exact]

    def _made_key(self, exact: bool) -> str:
        """The digest of a list of all parts. What stays the same from question to question is written as JSON once."""
        prefix = self.prefix.exact if exact else self.prefix.canonical
        about = _json_of_parts(self.workload, self.harness_version, self.instance)
        sample = _json_of_parts(self.sample.namespace, self.sample.number)
        text = f'[{about},{self.step},{self.model.asked},"{prefix}",{"true" if exact else "false"},{sample}]'
        return hashlib.sha256(text.encode()).hexdigest()

    def served_by(self, prefix_digest: str, response: Response) -> bool:
        """Whether a response that was given to the prefix of this exact digest answers the question too.

        A response that repeats volatile text (a temporary path, a time) belongs to the one prefix it was given to.
        """
        if prefix_digest == self.prefix.exact or self.prefix.mask is None:
            return True
        text = canonical_json([response.content, [[c.name, c.arguments] for c in response.tool_calls]])
        return self.prefix.mask(text) == text

    def read_anew(self, response: Response) -> Response | None:
        """An answer that was kept under an earlier way of reading, as it is read today; None where it must be asked
        again. What a workload answers itself is not read.
        """
        if self.model.model.startswith(WORKLOAD):
            return response
        return reread(self.model.actions, self.prefix, response)


@lru_cache(maxsize=1024)
def _json_of_parts(*parts: str | int) -> str:
    return canonical_json(parts)[1:-1]


_KEY = re.compile(r"[0-9a-f]{64}")


def is_key(key: object) -> bool:
    """Whether this has the form of a cache key and of all other digests: SHA-256 in hex.

    >>> is_key("0f" * 32), is_key("0F" * 32), is_key(7)
    (True, False, False)
    """
    return isinstance(key, str) and _KEY.fullmatch(key) is not None
