"""What is found, in words: values cut to a length, the place where two prefixes differ, and where code broke."""

from __future__ import annotations

import json
from dataclasses import dataclass

from stepdown.builder.common.faults import Place
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.records import Prefix, Ruling

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Breach:
    """Something that a harness does and its contract does not allow."""

    words: str
    place: Place | None = None
    """The line of its code that raised, or the part of it that is to blame; None where neither is known."""

    def __str__(self) -> str:
        return self.words


def raised(error: Exception) -> str:
    return SECRETS.hidden(f"{type(error).__name__}: {short(' '.join(str(error).split()), 200)}")


def said(ruling: Ruling | None) -> str:
    return "none" if ruling is None else f"{ruling.verdict} ({short(ruling.reason)})"


def short(value: object, longest: int = _SHOWN) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"


def where_different(one: Prefix, other: Prefix) -> str:
    """The first place where two prefixes differ."""
    for left, right in zip(one.messages, other.messages, strict=False):
        if left != right:
            a, b = json.dumps(left, ensure_ascii=False), json.dumps(right, ensure_ascii=False)
            place = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            start = max(place - 20, 0)
            return f"…{a[start : place + 20]}… and …{b[start : place + 20]}…"
    return "one has more messages than the other" if one.tools == other.tools else "the tools differ"
