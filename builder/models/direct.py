"""One request in the OpenAI form, spoken to the endpoint itself, whose answer is read from the body as it came."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from stepdown.builder.config.pool import GENERATION_PARAMETERS
from stepdown.builder.models.connections import LONGEST_BODY, Connections, Header, RawReply, Target
from stepdown.builder.models.envelope import RawCompletion, chat_completion, read_answer
from stepdown.builder.models.error_body import body_of, codes, said
from stepdown.builder.models.errors import Rejected, Unusable, WrongCall
from stepdown.builder.models.families import Family
from stepdown.builder.records import Message

_PATH = "/chat/completions"
_OURS = frozenset({"messages", "tools", "response_format"})
_HEADERS: Sequence[Header] = (
    (b"accept", b"application/json"),
    (b"accept-encoding", b"identity"),
    (b"content-type", b"application/json"),
    (b"user-agent", b"stepdown"),
)
_MOST_MOVES = 5
_MOVED = (307, 308)
"""The redirects after which a request is made again as it was."""
_TELLING = (b"retry-after", b"location")
"""The headers of an error that matter."""
_MUST_ALTERNATE = ("Conversation roles must alternate user/assistant", "user and assistant roles should be alternating")
_MUST_END_WITH_USER = "Last message must have role `user`"


class Direct:
    """Asks endpoints of the OpenAI form. Threads share one."""

    def __init__(self) -> None:
        self._connections = Connections()
        self._targets: dict[str, Target] = {}

    def ask(self, family: Family, request: Mapping[str, Any], timeout: float) -> RawCompletion:
        """The answer to a request, which also says where it goes: `model`, `api_base`, `api_key`. The whole answer must
        come within `timeout` seconds.

        Raises Unusable, CutOff, Rejected, WrongCall, or what httpx names an HTTPStatusError or a TransportError.
        """
        until = time.monotonic() + timeout
        address, key, body = _parted(request)
        body = family.adapted(body)
        try:
            return self._ask_once(address, key, body, until)
        except httpx.HTTPStatusError as error:
            # A server whose chat template wants roles to alternate gets the messages once more with blank ones between.
            messages = _reordered(body["messages"], error.response.text)
            if messages is None:
                raise
        try:
            return self._ask_once(address, key, {**body, "messages": messages}, until)
        except httpx.HTTPStatusError as error:
            if _reordered(messages, error.response.text) is None:
                raise
            raise Rejected(
                "the provider rejects the order of the messages, also with blank ones between them"
            ) from None

    def close(self) -> None:
        """Close all connections. No request may be under way."""
        self._connections.close()

    def _ask_once(self, address: str, key: str, body: Mapping[str, Any], until: float) -> RawCompletion:
        reply, url = self._post(address, key, _encoded(body), until)
        text = _decoded(reply)
        if not 200 <= reply.status < 300:
            raise _status_error(reply, text, url)
        answer = chat_completion(text)
        if answer is None:
            raise Unusable(f"HTTP 200 with a body that is no answer: {text}")
        return read_answer(answer, answer)

    def _post(self, address: str, key: str, data: bytes, until: float) -> tuple[RawReply, httpx.URL]:
        """The reply, and the address that gave it: another one where the first has moved."""
        target = self._target(address)
        sign_in = (b"authorization", b"Bearer " + key.encode())
        for _ in range(_MOST_MOVES):
            headers = [(b"host", target.url.netloc), *_HEADERS, (b"content-length", b"%d" % len(data)), sign_in]
            reply = self._connections.post(target, headers, data, until)
            place = _header(reply, b"location") if reply.status in _MOVED else None
            if place is None:
                break
            url = target.url.join(place.decode("latin-1"))
            if url.host != target.url.host or (target.url.scheme, url.scheme) == ("https", "http"):
                break  # the key is for the address that the config names
            target = self._target(str(url))
        return reply, target.url

    def _target(self, address: str) -> Target:
        if address not in self._targets:
            try:
                self._targets[address] = Target.of(address)
            except httpx.InvalidURL as error:
                raise httpx.UnsupportedProtocol(str(error)) from None
        return self._targets[address]


def _parted(request: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Address, key and body of a request. What `extra_body` holds replaces what stands beside it."""
    body = {**request, **request.get("extra_body", {})}
    body.pop("extra_body", None)
    base, key, name = str(body.pop("api_base")).rstrip("/"), body.pop("api_key"), body.pop("model")
    if orders := sorted(body.keys() - GENERATION_PARAMETERS - _OURS):
        raise WrongCall(f"{orders[0]!r} is no generation parameter but says where or how the request goes")
    address = base if base.endswith(_PATH) else base + _PATH
    # Some servers' chat templates write out a content that is null; a turn that only calls tools needs none.
    messages = [_without_null(message) for message in body.pop("messages")]
    return address, key, {"model": name.partition("/")[2], "messages": messages, **body}


def _without_null(message: Message) -> Message:
    if message.get("content", "") is not None:
        return message
    return {name: value for name, value in message.items() if name != "content"}


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:  # half of a pair of surrogates, which only an escape can carry
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise WrongCall(f"the request can not be written as JSON: {error}") from None


def _decoded(reply: RawReply) -> str:
    """The body's text. What is no UTF-8 in it is marked as such."""
    packed = (_header(reply, b"content-encoding") or b"identity").strip().lower()
    body = reply.body if packed == b"identity" else _unpacked(packed, reply.body)
    return body.decode("utf-8-sig", "replace")


def _unpacked(how: bytes, body: bytes) -> bytes:
    """A packed body, though none was asked for."""
    if how not in (b"gzip", b"x-gzip", b"deflate"):
        raise Unusable(f"the body is packed in a way that was not asked for: {how.decode('latin-1')}")
    try:
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)
        unpacked = unpacking.decompress(body, LONGEST_BODY)
    except zlib.error as error:
        raise Unusable(f"the packed body is broken: {error}") from None
    if unpacking.unconsumed_tail:
        raise Unusable(f"a body of more than {LONGEST_BODY >> 20} MiB")
    return unpacked


def _header(reply: RawReply, name: bytes) -> bytes | None:
    return next((value for given, value in reply.headers if given.lower() == name), None)


def _status_error(reply: RawReply, text: str, url: httpx.URL) -> httpx.HTTPStatusError:
    """The error as httpx has it, with what the body says as its message."""
    headers = [(name, value) for name, value in reply.headers if name.lower() in _TELLING]
    request = httpx.Request("POST", url)
    response = httpx.Response(reply.status, headers=headers, content=text.encode("utf-8", "replace"), request=request)
    body = body_of(response)
    message = next(said(body), "") or text
    if response.has_redirect_location:
        message = f"moved to {response.headers['location']}"
    code = next(codes(body), "")
    return httpx.HTTPStatusError(
        f"{message} ({code})" if code and code not in message else message, request=request, response=response
    )


def _reordered(messages: Sequence[Message], refusal: str) -> list[Message] | None:
    """The messages in an order that the server says it wants, by blank ones; None where it says something else."""
    if any(words in refusal for words in _MUST_ALTERNATE):
        spaced = list(messages[:1])
        for message in messages[1:]:
            if message["role"] == spaced[-1]["role"]:
                spaced.append({"role": "assistant" if message["role"] == "user" else "user", "content": ""})
            spaced.append(message)
        return spaced
    return [*messages, {"role": "user", "content": ""}] if _MUST_END_WITH_USER in refusal else None
