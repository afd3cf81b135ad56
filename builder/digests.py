"""Text that can be stored, and digests of JSON values: what names records in cache, ledger and rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any


def clean_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD, so that it can be encoded, hashed and stored.

    >>> clean_text("a" + chr(0xD800))
    'a\ufffd'
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def json_writer(*, sort_keys: bool = False, ascii_only: bool = False, allow_nan: bool = False) -> Callable[[Any], str]:
    """What writes values as JSON without spaces, as `json.JSONEncoder.encode` does with these settings.

    That makes its C encoder anew at every call, which for a short message is half of the time.
    """
    encoder = json.JSONEncoder(sort_keys=sort_keys, ensure_ascii=ascii_only, allow_nan=allow_nan, separators=(",", ":"))
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return encoder.encode
    text = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    write = make(None, encoder.default, text, None, ":", ",", sort_keys, False, allow_nan)
    return lambda value: text(value) if isinstance(value, str) else "".join(write(value, 0))


_exact = json_writer()
_canonical = json_writer(sort_keys=True)


def canonical_json(value: Any) -> str:
    """JSON text that is the same for equal values: sorted keys, no spaces, no escapes beyond those JSON needs."""
    return _canonical(value)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`, in hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def exact_json(value: Any) -> str:
    """JSON text that keeps the order of keys: what a model is shown, where a schema's order of fields is part of it."""
    return _exact(value)


def exact_digest(value: Any) -> str:
    """SHA-256 of the exact JSON of `value`, in hex."""
    return hashlib.sha256(exact_json(value).encode()).hexdigest()


def masked(value: Any, mask: Callable[[str], str]) -> Any:
    """JSON values with every text in them masked; keys stay."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {key: masked(item, mask) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(item, mask) for item in value]
    return value


def cleaned(value: Any) -> Any:
    """JSON values with every text in them, keys too, as `clean_text` has it."""
    if isinstance(value, str):
        return value if value.isascii() else clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(key)): cleaned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(item) for item in value]
    return value
