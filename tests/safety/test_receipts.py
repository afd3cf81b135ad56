"""Receipts of executed calls against predicates: values as JSON has them, regular expressions within a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.errors import BadInput
from stepdown.harnesses import receipts
from stepdown.harnesses.receipts import ReceiptPattern, ToolReceipt, any_matches, same_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
PAID = ToolReceipt("pay", {"to": ["eve@example.org"], "amount": 5, "note": "Lunch\nfor two"})


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4))
def test_a_call_is_like_its_own_arguments_and_any_part_of_them(arguments: dict[str, Any]) -> None:
    done = ToolReceipt("f", arguments)
    assert ReceiptPattern("f", exactly=arguments).matches(done)
    assert not ReceiptPattern("f", exactly={**arguments, "one more": 1}).matches(done)
    for name in arguments:
        assert ReceiptPattern("f", holding={name: arguments[name]}).matches(done)
    assert not ReceiptPattern("g").matches(done)
    assert not ReceiptPattern("f").matches(ToolReceipt("f", arguments, failed=True)), "nothing was done"


@pytest.mark.parametrize(
    ("pattern", "holds"),
    [
        (ReceiptPattern("pay"), True),
        (ReceiptPattern("pay", holding={"amount": 5.0}), True),
        (ReceiptPattern("pay", holding={"amount": "5"}), False),
        (ReceiptPattern("pay", holding={"amount": True}), False),
        (ReceiptPattern("pay", holding={"other": None}), False),
        (ReceiptPattern("pay", matching={"note": "^for"}), False),
        (ReceiptPattern("pay", matching={"note": "(?m)^for"}), True),
        (ReceiptPattern("pay", matching={"to": "eve@"}), True),
        (ReceiptPattern("pay", matching={"other": ""}), False),
        (ReceiptPattern("pay", where=lambda arguments: arguments["amount"] > 4), True),
        (ReceiptPattern("pay", where=lambda arguments: arguments["amount"] > 5), False),
        (ReceiptPattern("pay", holding={"amount": 5}, matching={"note": "dinner"}), False),
    ],
)
def test_all_that_a_pattern_says_must_hold(pattern: ReceiptPattern, holds: bool) -> None:
    assert pattern.matches(PAID) is holds


def test_true_is_no_number_at_any_depth() -> None:
    assert same_json({"a": [1, {"b": 0}]}, {"a": [1.0, {"b": 0.0}]})
    assert not same_json({"a": [1, {"b": 0}]}, {"a": [1, {"b": False}]})


def test_hostile_arguments_neither_hang_a_pattern_nor_hide_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "SECONDS", 0.05)
    slow = ReceiptPattern("pay", matching={"note": "^(a|aa)+$"})
    hostile = ToolReceipt("pay", {"note": "a" * 5000 + "b"})
    assert any_matches([hostile], [slow], in_doubt=True)
    assert not any_matches([hostile], [slow])


def test_what_is_no_regular_expression_is_said() -> None:
    with pytest.raises(BadInput, match="no regular expression for 'pay'"):
        ReceiptPattern("pay", matching={"note": "("}).matches(PAID)
