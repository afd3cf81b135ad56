"""The body of an HTTP error, whichever of many forms it has: its codes, its messages, the parameter that it blames."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_SCANNED = 2000
"""Characters of an error that are searched for telling words: a validation error may echo the whole request."""
_DEEPEST = 6
_WRAPPED = ("metadata", "raw")
"""The fields in which a gateway (OpenRouter) puts the provider's own body, as text."""
_SAID = ("message", "msg", "detail", "error", "title", "reason", "errors", *_WRAPPED)
_CODES = ("code", "type", "error_type", "innererror", "error", *_WRAPPED)
_BLAMED = ("param", "loc", "detail", "error", "errors", *_WRAPPED)
_QUOTED = re.compile(r"(?<!\w)'.*?((?<!\\)'(?!\w)|\Z)|(?<![\w\\])\".*?((?<!\\)\"|\Z)|`.*?(`|\Z)", re.DOTALL)
_QUOTED_NAME = re.compile(r"(?<![\w'\"`])(['\"`])([\w. ]{1,60})\1(?![\w'\"`])")
_ECHO = re.compile(
    r"\b(messages|contents|input|content|text|(?<!invalid )prompt)\b(\[|\.\d|['\"]?\]? *[:=] *(?!\d)).*",
    re.DOTALL | re.IGNORECASE,
)
"""Where an error begins to speak of one message or to repeat a field. No provider reports a whole prompt's size so."""


def body_of(reply: Any) -> Any:
    """The JSON of an error's body; None where it is none."""
    try:
        return _unwrapped(reply.text) if reply is not None else None
    except RuntimeError:  # a body that nobody read
        return None


def codes(body: Any, depth: int = 0) -> Iterator[str]:
    """The codes and types that an error's body names, its inner errors' too."""
    body = _unwrapped(body) if isinstance(body, str) else body
    if not isinstance(body, Mapping) or depth > _DEEPEST:
        return
    for key in _CODES:
        value = body.get(key)
        if isinstance(value, str):
            yield value
        yield from codes(value, depth + 1)


def said(body: Any, depth: int = 0) -> Iterator[str]:
    """The messages of an error's body, its inner errors' too, outermost first."""
    body = _unwrapped(body) or body if isinstance(body, str) else body
    if isinstance(body, str):
        yield body
    elif isinstance(body, list) and depth <= _DEEPEST:
        for item in body:
            yield from said(item, depth + 1)
    elif isinstance(body, Mapping) and depth <= _DEEPEST:
        for key in _SAID:
            yield from said(body.get(key), depth + 1)


def own_words(body: Any, text: str, names: Collection[str] = ()) -> str:
    """The provider's own words: its messages, or `text` where it has none, without what they quote or repeat of the
    request. Names of parameters among `names` stay, without their quotes.

    >>> own_words(None, "Unsupported value: 'top_k' does not support '5'", {"top_k"})
    'Unsupported value: top_k does not support '
    """

    def bare(match: re.Match[str]) -> str:
        return match[2] if match[2] in names else match[0]

    messages = list(said(body)) or [text]
    return "\n".join(_ECHO.sub("", _QUOTED.sub("", _QUOTED_NAME.sub(bare, each[:_SCANNED]))) for each in messages)


def blamed(body: Any, depth: int = 0) -> Iterator[str]:
    """The parameters of the request that an error's fields blame: whole names, the first part of a path.

    >>> list(blamed({"error": {"param": "max_tokens"}})), list(blamed({"detail": [{"loc": ["body", "messages", 0]}]}))
    (['max_tokens'], ['messages'])
    """
    body = _unwrapped(body) if isinstance(body, str) else body
    if depth > _DEEPEST:
        return
    if isinstance(body, list):
        for item in body:
            yield from blamed(item, depth + 1)
    if not isinstance(body, Mapping):
        return
    for key in _BLAMED:
        value = body.get(key)
        if key == "param" and isinstance(value, str):
            yield re.split(r"[.\[]", value)[0]
        elif key == "loc" and isinstance(value, list):
            yield from [part for part in value if isinstance(part, str) and part != "body"][:1]
        else:
            yield from blamed(value, depth + 1)


def _unwrapped(text: str) -> Any:
    """The JSON of a text; None where it holds no object or list."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None
