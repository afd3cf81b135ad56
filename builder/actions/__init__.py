"""How one canonical action form is put to each model and read back: native tools, a JSON schema, plain text.

Pure functions over records. `rendered` makes the request, `parsed` the response; `ADAPTER_VERSION` is part of a
model's identity, so a change of what is sent must change it. So must a change of how it is read, unless kept answers
can be read anew: `rereading`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from stepdown.builder.actions import json_schema, text, tools
from stepdown.builder.actions.forms import Parsed, Raw, Request
from stepdown.builder.records import Prefix

Actions = Literal["tools", "json_schema", "text"]

ADAPTER_VERSION: dict[str, int] = {"tools": 1, "json_schema": 2, "text": 1}
"""By adapter. Raised when its requests change: cached answers are then not reused."""


class _Adapter(NamedTuple):
    rendered: Callable[[Prefix], Request]
    parsed: Callable[[Prefix, Raw], Parsed]


_ADAPTERS: dict[str, _Adapter] = {
    "tools": _Adapter(tools.rendered, tools.parsed),
    "json_schema": _Adapter(json_schema.rendered, json_schema.parsed),
    "text": _Adapter(text.rendered, text.parsed),
}


def rendered(actions: Actions, prefix: Prefix) -> Request:
    """The request that puts a prefix to a model of this kind."""
    return _ADAPTERS[actions].rendered(prefix)


def parsed(actions: Actions, prefix: Prefix, raw: Raw) -> Parsed:
    """A model's answer to that request in the canonical action form. Never raises, whatever the answer holds."""
    return _ADAPTERS[actions].parsed(prefix, raw)


__all__ = ["ADAPTER_VERSION", "Actions", "Parsed", "Raw", "Request", "parsed", "rendered"]
