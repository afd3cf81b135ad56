"""Refuses names that are nearly those of a contract: a misspelt override would turn a feature off without a word."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from stepdown.builder.errors import BadInput

_NEAR = 0.8
"""As difflib measures likeness: `verdicts` and `early_verdict` are near their names, `early` is not."""


def refuse_near_misses(owner: str, names: Iterable[str], contract: Iterable[str]) -> None:
    """Raises BadInput for a public name that is nearly one of the contract's.

    >>> refuse_near_misses("Mine", ["advance", "verdicts"], ["advance", "verdict"])
    Traceback (most recent call last):
    stepdown.builder.errors.BadInput: Mine: `verdicts` is nearly `verdict` of the contract: spell it so, or ...
    """
    known = set(contract)
    for name in names:
        if name.startswith("_") or name in known:
            continue
        if near := get_close_matches(name, known, n=1, cutoff=_NEAR):
            raise BadInput(
                f"{owner}: `{name}` is nearly `{near[0]}` of the contract: "
                "spell it so, or begin a name of your own with an underscore"
            )
