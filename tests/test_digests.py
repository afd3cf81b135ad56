"""JSON is written as the standard library writes it, to the byte: digests of before name the same records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.digests import canonical_json, exact_json, json_writer

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(values)
def test_any_value_is_written_as_the_standard_library_writes_it(value: Any) -> None:
    short: dict[str, Any] = {"separators": (",", ":"), "allow_nan": False}
    assert exact_json(value) == json.dumps(value, ensure_ascii=False, **short)
    assert canonical_json(value) == json.dumps(value, ensure_ascii=False, sort_keys=True, **short)
    assert json_writer(ascii_only=True)(value) == json.dumps(value, **short)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")]])
def test_what_is_no_number_in_json_is_refused_unless_it_is_allowed(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        exact_json(value)
    assert json_writer(allow_nan=True)(value) == json.dumps(value)
