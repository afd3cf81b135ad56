"""Which of a list of tasks a config takes: the first n, all of them, or those it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import PlainValidator

from stepdown.builder.errors import BadInput


def _selection(value: Any) -> int | str | tuple[str, ...]:
    if value == "all":
        return "all"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        if len(set(value)) < len(value):
            raise ValueError("an id is given twice")
        return tuple(value)
    raise ValueError("must be a count of at least 1, `all`, or a list of ids")


Take = Annotated[int | str | tuple[str, ...], PlainValidator(_selection)]
"""The first n, `all`, or a list of ids."""


def taken(there: Sequence[str], wanted: Take, field: str) -> frozenset[str]:
    """The ids selected out of all that are there. Raises BadInput for one that is not, or a count that is too high.

    >>> sorted(taken(["a", "b", "c"], 2, "take"))
    ['a', 'b']
    """
    if wanted == "all":
        return frozenset(there)
    if isinstance(wanted, int):
        if wanted > len(there):
            raise BadInput(f"there are only {len(there)}", field=field)
        return frozenset(there[:wanted])
    known = set(there)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise BadInput(f"no such id: {unknown[0]!r}", field=field)
    return frozenset(wanted)
