"""What differs between two plays of the same answers is found by shape; a program that throws dice is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from stepdown.builder.records import Prefix
from stepdown.builder.run.ledger import Ledger
from stepdown.harnesses.agent.volatile import mask_of, shapes_between
from tests.agents import orders
from tests.conftest import Shop, stepdown
from tests.provider import Provider

HABITS = ("time", "uuid", "temporary", "pid", "port", "shuffled")
SHAPES = {"time", "uuid", "temporary path", "process id", "port", "order of lines"}


def test_volatile_text_is_found_masked_and_recorded_with_the_seed(shop: Shop) -> None:
    with Provider(orders.ABILITIES) as provider:
        options = {"command": f"{orders.CLERK} {' '.join(HABITS)}"}
        done = shop.build(orders.config(provider.url, shop.folder, [orders.task("one", [0, 2])], options))
        assert done.code == 0, done.err
        # A question is paid for once, though every play shows it with another text.
        assert provider.count("master") == 3
    assert shop.labels() == [["low", "high"]]
    ledger = Ledger(shop.run, read_only=True)
    assert SHAPES <= {*ledger.shapes(1)} <= SHAPES | {"duration"}
    ledger.close()


def test_a_program_that_throws_dice_is_dropped_and_the_difference_shown(shop: Shop) -> None:
    with Provider(orders.ABILITIES) as provider:
        options = {"command": f"{orders.CLERK} dice"}
        shop.build(orders.config(provider.url, shop.folder, [orders.task("one", [0, 1])], options))
    (reason,) = shop.manifest()["dropped"]["agent"]
    told = stepdown("status", str(shop.run)).out
    assert "the dice fell on" in reason
    assert "recorded" in reason
    assert "the dice fell on" in told
    assert not shop.read("question_bank.jsonl")


def between(one: str, other: str) -> list[str] | None:
    found = shapes_between(*(Prefix.start([{"role": "user", "content": text}]) for text in (one, other)))
    return None if found is None else sorted(found)


@pytest.mark.parametrize(
    ("one", "other", "shapes"),
    [
        ("at 12:03 and 2026-11-30T12:00:01Z", "at 12:04 and 2026-12-01T00:00:01Z", ["time"]),
        ("Mon Nov 30 11:00:34 UTC 2026", "Tue Dec  1 11:00:34 UTC 2026", ["time"]),
        ("[Mon 2026-11-30 12:27 UTC] Go", "[Tue 2026-12-01 09:00 UTC] Go", ["time"]),
        ("took 12 ms, then 3.5 s", "took 9 ms, then 3.75 s", ["duration"]),
        ("in /tmp/tmpab12/x.py", "in /tmp/tmpq9_z/x.py", ["temporary path"]),
        ("<f at 0x7f3a5c2d1e50>", "<f at 0x7f3a5c2d1e99>", ["memory address"]),
        ("[1] 4711\nsaved", "[1] 4712\nsaved", ["process id"]),
        ("http://localhost:8123/a", "http://localhost:8999/a", ["port"]),
        ("session ses_9f8a7b6c", "session ses_1a2b3c4d", ["id"]),
        ("{'b', 'a', 'c'}", "{'c', 'b', 'a'}", ["order of words"]),
        ("b 12:00\na 13:01", "a 12:59\nb 14:00", ["order of lines", "time"]),
        ("you drew 4", "you drew 5", None),
        ("apples", "pears", None),
        ("0.7312", "0.1188", None),
        ("a\nb", "a\nb\nb", None),
    ],
)
def test_a_difference_has_the_fewest_shapes_that_explain_it(one: str, other: str, shapes: list[str] | None) -> None:
    assert between(one, other) == shapes
    if shapes is not None:
        mask = mask_of(shapes)
        assert mask is not None
        assert mask(one) == mask(other)


def test_another_message_or_another_tool_is_no_volatile_text() -> None:
    user = {"role": "user", "content": "at 12:03"}

    def tool(name: str, description: str) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {}}}

    now, later, other = tool("f", "Since 12:04."), tool("f", "Since 12:05."), tool("g", "Since 12:04.")
    assert shapes_between(Prefix.start([user]), Prefix.start([user, user])) is None
    assert shapes_between(Prefix.start([user], [now]), Prefix.start([user], [later])) == frozenset({"time"})
    assert shapes_between(Prefix.start([user], [now]), Prefix.start([user], [other])) is None
