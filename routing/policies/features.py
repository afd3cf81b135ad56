"""What a trained policy knows of a call: the latest text, embedded, and figures of the prefix.

All of it is known when the call is routed. What is known only later (how many steps the task took, what was tried, what
its label is) has no place here.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from stepdown.builder.errors import BadInput
from stepdown.builder.records import Message
from stepdown.harnesses.roles import Role, role_of
from stepdown.routing.policies.contract import View

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

LONGEST_TEXT = 4000
"""Characters of a text that are looked at: half from its head, half from its tail."""
TOOL_BUCKETS = 16
"""The last tool's name is hashed into so many places."""
_CODE = re.compile(r"```|^\s*(?:def|class|import|from|function|const|public|#include)\b", re.MULTILINE)
_TROUBLE = re.compile(
    r"\b(?:traceback|exception|error|failed|failure|not found|no such|denied|invalid|fatal)\b"
    r"|(?:exit(?:ed)? (?:code|status)|returncode)\W{1,20}[1-9]",
    re.IGNORECASE,
)


def text_of(message: Message) -> str:
    """The text of a message, whatever form its content has."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """The head and the tail of a text; the middle of a long one is left out."""
    return text if len(text) <= longest else f"{text[: longest // 2]}\n{text[-longest // 2 :]}"


def latest_text(messages: Sequence[Message]) -> str:
    """The latest user or tool text, shortened: what the next call has to react to."""
    for message in reversed(messages):
        if message.get("role") in ("user", "tool"):
            return shortened(text_of(message))
    return ""


class _Facts:
    """What the figures are read from; looked up once a view."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.latest = latest_text(view.messages)
        self.last = view.messages[-1] if view.messages else {}
        self.previous = next((m for m in reversed(view.messages) if m.get("role") == "assistant"), None)
        self.task = next((text_of(m) for m in view.messages if m.get("role") == "user"), "")
        self.roles = [m.get("role") for m in view.messages]
        self.characters = sum(len(text_of(m)) for m in view.messages)
        self.previous_role = role_of(self.previous) if self.previous is not None else None

    @property
    def last_tool(self) -> str:
        for call in reversed((self.previous or {}).get("tool_calls") or []):
            function = call.get("function") if isinstance(call, Mapping) else None
            if isinstance(function, Mapping):
                return str(function.get("name", ""))
        return ""


def _log(count: float) -> float:
    return math.log1p(max(0.0, count))


_FIGURES: Mapping[str, Callable[[_Facts], float]] = {
    "step": lambda facts: _log(facts.view.step),
    "is_first_step": lambda facts: float(facts.view.step <= 1),
    "messages": lambda facts: _log(len(facts.roles)),
    "user_messages": lambda facts: _log(facts.roles.count("user")),
    "tool_messages": lambda facts: _log(facts.roles.count("tool")),
    "prefix_characters": lambda facts: _log(facts.characters),
    "latest_characters": lambda facts: _log(len(text_of(facts.last))),
    "task_characters": lambda facts: _log(len(facts.task)),
    "tools": lambda facts: _log(len(facts.view.tools)),
    "tools_characters": lambda facts: _log(len(json.dumps(list(facts.view.tools)))) if facts.view.tools else 0.0,
    "latest_is_tool": lambda facts: float(facts.last.get("role") == "tool"),
    "latest_has_trouble": lambda facts: float(bool(_TROUBLE.search(facts.latest))),
    "latest_has_code": lambda facts: float(bool(_CODE.search(facts.latest))),
    "latest_asks": lambda facts: float("?" in facts.latest),
    "latest_digits": lambda facts: _share(str.isdigit, facts.latest),
    "task_has_code": lambda facts: float(bool(_CODE.search(shortened(facts.task)))),
}
"""By name; each is 0 where there is nothing to count."""
FIGURES = (
    *_FIGURES,
    *(f"previous_{role}" for role in Role),
    *(f"last_tool_{bucket}" for bucket in range(TOOL_BUCKETS)),
)
"""Names of the figures of a prefix, in the order of `figures`."""
_KNOWN_LATER = """
total_steps target_tier target_tier_id label trials verdict verdicts samples confirm control evidence hint response
answer cost passed
"""
KNOWN_LATER = frozenset(_KNOWN_LATER.split())
"""What tells of a label's own trials, or of what came after the call; no policy may be made on it."""


def figures(view: View, names: Sequence[str] = FIGURES) -> NDArray[float64]:
    """The named figures of a prefix, one number each; unscaled. Raises BadInput as `refuse_unknown` does."""
    import numpy as np

    refuse_unknown(names)
    facts = _Facts(view)
    found = {name: count(facts) for name, count in _FIGURES.items() if name in names}
    if facts.previous_role is not None:
        found[f"previous_{facts.previous_role}"] = 1.0
    if tool := facts.last_tool:
        found[f"last_tool_{zlib.crc32(tool.encode('utf-8', 'replace')) % TOOL_BUCKETS}"] = 1.0
    return np.array([found.get(name, 0.0) for name in names], dtype=np.float64)


def refuse_unknown(names: Sequence[str]) -> None:
    """Raises BadInput for a figure that there is not, or that nobody can know when a call is routed."""
    for name in names:
        if name in KNOWN_LATER:
            problem = f"{name!r} is known only after the call was made: a policy made on it would not hold when it runs"
            raise BadInput(problem, field="features")
        if name not in FIGURES:
            raise BadInput(f"no such feature {name!r}: {', '.join(_FIGURES)}, previous_ROLE", field="features")


def _share(is_one: Callable[[str], bool], text: str) -> float:
    return sum(map(is_one, text)) / len(text) if text else 0.0
