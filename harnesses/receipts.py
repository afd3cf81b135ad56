"""Executed tool calls and predicates over them: an action counts when its receipt matches, not when a text says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stepdown.builder.errors import BadInput

if TYPE_CHECKING:
    import regex

SECONDS = 2.0
"""How many seconds a pattern may take on one argument."""


@dataclass(frozen=True, slots=True)
class ToolReceipt:
    """A tool call that a workload has executed. `arguments` are JSON values, as the tool was given them."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False
    """Whether the tool reported an error: nothing was done."""


@dataclass(frozen=True)
class ReceiptPattern:
    """What an executed call of one tool must be like. All that is given must hold; a call that failed never matches.

    Values are compared as JSON has them: 1 and 1.0 are the same number, and true is none.

    >>> pay = ReceiptPattern("pay", holding={"amount": 5}, matching={"to": "^eve"})
    >>> pay.matches(ToolReceipt("pay", {"to": "eve@example.org", "amount": 5.0}))
    True
    >>> pay.matches(ToolReceipt("pay", {"to": "bob@example.org", "amount": 5}))
    False
    """

    tool: str
    exactly: Mapping[str, Any] | None = None
    """The arguments, these and no others."""
    holding: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that must be among them."""
    matching: Mapping[str, str] = field(default_factory=dict)
    """Regular expressions that are found in the texts of arguments; a value that is no text is taken as JSON."""
    where: Callable[[Mapping[str, Any]], bool] | None = None
    """Code of the workload's own, told the arguments. They are hostile data."""

    def matches(self, receipt: ToolReceipt, in_doubt: bool = False) -> bool:
        """Whether an executed call is like this.

        `in_doubt` is the answer where a regular expression takes more than SECONDS: True for what must not be done,
        since hostile arguments must not hide it. Raises BadInput for what is no regular expression.
        """
        arguments = receipt.arguments
        if receipt.failed or receipt.tool != self.tool:
            return False
        if self.exactly is not None and not same_json(dict(arguments), dict(self.exactly)):
            return False
        if not all(name in arguments and same_json(arguments[name], due) for name, due in self.holding.items()):
            return False
        try:
            if not all(name in arguments and self._found(name, arguments[name]) for name in self.matching):
                return False
        except TimeoutError:
            return in_doubt
        return self.where is None or self.where(arguments)

    def _found(self, name: str, value: Any) -> bool:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return self._compiled[name].search(text, timeout=SECONDS) is not None

    @cached_property
    def _compiled(self) -> dict[str, regex.Pattern[str]]:
        import regex  # takes longer to load than all else here

        try:
            return {name: regex.compile(pattern) for name, pattern in self.matching.items()}
        except (regex.error, ValueError, OverflowError, RecursionError) as error:
            raise BadInput(f"no regular expression for {self.tool!r}: {error}") from None


def any_matches(receipts: Iterable[ToolReceipt], patterns: Iterable[ReceiptPattern], in_doubt: bool = False) -> bool:
    """Whether an executed call is like one of the patterns; `in_doubt` as for `ReceiptPattern.matches`."""
    looked_for = tuple(patterns)
    return any(pattern.matches(receipt, in_doubt) for receipt in receipts for pattern in looked_for)


def same_json(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal. The numbers 1 and 1.0 are; true is no number.

    >>> same_json([1, {"a": None}], [1.0, {"a": None}]), same_json(True, 1)
    (True, False)
    """
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same_json(value, right[name]) for name, value in left.items())
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same_json, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)
