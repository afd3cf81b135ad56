"""What differs between two texts, shown side by side within a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.view.difference import CONTEXT, LONGEST_PIECE, MOST_PIECES, difference, pieces

TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "\n", "One. Two! ", "x" * 700, "é; "]), max_size=40).map("".join)


@given(left=TEXTS, right=TEXTS)
def test_both_texts_stand_whole_beside_each_other(left: str, right: str) -> None:
    rows = difference(left, right).rows
    assert "".join(row.left for row in rows) == left
    assert "".join(row.left if row.kind == "folded" else row.right for row in rows) == right
    assert all(row.left == row.right for row in rows if row.kind == "same")


@given(text=TEXTS)
def test_a_text_differs_in_nothing_from_itself(text: str) -> None:
    assert difference(text, text).is_equal


def test_equal_lines_far_from_a_difference_are_folded() -> None:
    lines = [f"line {number}\n" for number in range(40)]
    other = [*lines[:20], "another\n", *lines[21:]]
    rows = difference("".join(lines), "".join(other)).rows
    assert [row.kind for row in rows] == ["folded", *["same"] * CONTEXT, "changed", *["same"] * CONTEXT, "folded"]
    assert rows[0].right == str(20 - CONTEXT)


def test_a_long_line_is_compared_by_sentences() -> None:
    rows = difference("It is so. It was so. It will be.", "It is so. It was not so. It will be.").rows
    assert [row.kind for row in rows] == ["same", "changed", "same"]


def test_huge_and_repetitive_texts_are_compared_in_part_and_said_to_be() -> None:
    huge = difference("".join(f"line {n}\n" for n in range(10_000)), "other\n")
    assert (huge.compared < huge.of, len(pieces("a\n" * 10_000))) == (True, MOST_PIECES)
    alike = difference("b\n" + "a\n" * 900, "a\n" * 900)
    assert not alike.is_aligned
    assert max(map(len, pieces("x" * 5_000))) == LONGEST_PIECE
