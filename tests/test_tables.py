"""Tables on a screen: words stay whole, whatever its width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from stepdown.builder.common.tables import Table, draw

TABLE = Table(
    "labels that must be expected to be still too high",
    ("workload", "label", "other steps", "reviewed", "downgradeable", "expected too high", "95% interval"),
    (
        ("swebench", "mid_high", "12345", "678", "91", "not known", "1234.5–6789.0"),
        ("all", "(sum)", "1", "2", "3", "4", "5"),
    ),
    words=2,
)


def shown(table: Table, width: int, *, sums: bool = False) -> str:
    out = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    out.print(draw(table, sums=sums))
    text: str = out.file.getvalue()  # type: ignore[attr-defined]
    return text


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 160])
@pytest.mark.parametrize("sums", [False, True])
def test_no_word_is_split_and_no_line_is_longer_than_the_screen(width: int, sums: bool) -> None:
    text = shown(TABLE, width, sums=sums)
    assert max(map(len, text.splitlines())) <= width
    words = {word for cells in (TABLE.columns, *TABLE.rows) for cell in cells for word in cell.split()}
    assert words <= set(text.replace(":", " ").replace("│", " ").replace("┃", " ").split())


def test_a_screen_too_narrow_for_the_columns_shows_each_row_as_lines() -> None:
    lines = shown(TABLE, 40).splitlines()
    assert "downgradeable: 91" in lines
    assert lines.index("workload: swebench") < lines.index("95% interval: 1234.5–6789.0") < lines.index("workload: all")
