"""Prefixes: chained digests, renumbered calls, masked volatile text, nothing that tells which model spoke."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.records import Message, Prefix, Response, Stop, ToolCall, Usage

texts = st.text(max_size=20)
messages = st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "tool"]), texts)


def mask(text: str) -> str:
    return re.sub(r"\d+", "#", text)


@given(st.lists(messages, max_size=6), st.integers(0, 6))
def test_digests_do_not_depend_on_how_a_prefix_grew(all_messages: list[Message], cut: int) -> None:
    at_once = Prefix.start(all_messages, mask=mask)
    grown = Prefix.start(all_messages[:cut], mask=mask).extend(all_messages[cut:])
    assert (grown.exact, grown.canonical) == (at_once.exact, at_once.canonical)
    assert grown.grew_from(Prefix.start(all_messages[:cut], mask=mask))


@given(st.lists(messages, max_size=4), st.lists(messages, max_size=4))
def test_different_messages_have_different_exact_digests(one: list[Message], other: list[Message]) -> None:
    assert (Prefix.start(one).exact == Prefix.start(other).exact) == (one == other)


def test_volatile_text_changes_the_exact_digest_and_not_the_canonical_one() -> None:
    one, other = (Prefix.start([{"role": "user", "content": f"took {n} ms"}], mask=mask) for n in (12, 3456))
    assert one.canonical == other.canonical
    assert one.exact != other.exact
    assert one.canonical != Prefix.start([{"role": "user", "content": "took long"}], mask=mask).canonical


def test_tools_are_part_of_both_digests() -> None:
    bare = Prefix.start([{"role": "user", "content": "hi"}])
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    assert bare.with_tools([tool]).exact != bare.exact
    assert bare.with_tools([tool]).with_tools([]).exact == bare.exact


def test_messages_hold_their_five_fields_only_and_call_ids_are_numbered_on() -> None:
    prefix = Prefix.start([{"role": "user", "content": "hi", "timestamp": 1, "model": "x", "name": None}])
    assert prefix.messages == ({"role": "user", "content": "hi"},)
    two = Response(tool_calls=(ToolCall("f", "{}"), ToolCall("g", "{}")), extra={"reasoning": "hm", "id": "x-1"})
    later = prefix.respond(two).respond(Response(tool_calls=(ToolCall("f", "{}"),)))
    ids = [call["id"] for message in later.messages for call in message.get("tool_calls", ())]
    assert ids == ["call_1", "call_2", "call_3"]
    assert "hm" not in str(later.messages)
    assert "x-1" not in str(later.messages)


def test_lone_surrogates_can_be_hashed_and_stored() -> None:
    prefix = Prefix.start([{"role": "user", "content": "a\ud800b\x00"}])
    assert prefix.messages[0]["content"] == "a\ufffdb\x00"
    assert prefix.exact


@given(
    st.builds(
        Response,
        content=texts,
        tool_calls=st.lists(st.builds(ToolCall, texts, texts), max_size=3).map(tuple),
        stop=st.sampled_from(Stop),
        malformed=st.booleans(),
        usage=st.builds(Usage, *[st.integers(0, 9)] * 4),
        extra=st.dictionaries(texts, texts, max_size=2),
    )
)
def test_a_response_survives_its_json(response: Response) -> None:
    assert Response.from_json(response.to_json()) == response
