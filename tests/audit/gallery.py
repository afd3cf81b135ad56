"""The workshop with more to read: tool calls, diffs, long output, and what a hostile model would write into them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stepdown.builder.records import Instance, Prefix
from tests.workshop import Bench, Workshop

SCRIPT = "<script>alert('script ran'); document.title = 'owned'; fetch('http://evil.example/')</script>"
IMAGE = '<img src="http://evil.example/x.png" onerror="alert(\'image ran\')">'
BREAKOUT = '</textarea></details></div>"\'><svg onload=alert(1)><a href="javascript:alert(2)">{{7*7}}{% raw %}'
UNSEEN = "safe\u202eevil\u2066\x1b[31m\x00\u200bend"
TWICE = json.dumps({"path": IMAGE})[:-1] + ', "path": "b"}'
"""Arguments with a key twice."""
NEEDLE = "the needle in the middle"

DIFF = """diff --git a/bench.py b/bench.py
--- a/bench.py
+++ b/bench.py
@@ -1,3 +1,3 @@ class Bench:
 def make(piece):
-    return piece
+    return shaped(piece)
 # end
"""


def output(size: int) -> str:
    """Tool output of about `size` characters, in lines, with a needle halfway."""
    line = "{:08d} planed, sanded and oiled; nothing to report from the bench\n"
    length = len(line.format(0))
    lines = [line.format(number) for number in range(size // length)]
    lines[len(lines) // 2] = f"{NEEDLE}\n"
    return "".join(lines)


def call(number: int, name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


class GalleryBench(Bench):
    def _start(self) -> Prefix:
        shop = self._shop
        assert isinstance(shop, Gallery)
        start = Prefix.start(
            [
                {"role": "system", "content": f"Make every piece of {self._job}."},
                {"role": "user", "content": f"Here is the plan.\n\n```python\nprint('{self._job}')\n```\nGo on."},
            ],
            tools=[TOOL],
            mask=shop.mask,
        )
        for turn in range(shop.turns):
            edit = json.dumps({"path": f"bench_{turn}.py", "patch": DIFF, "flags": ["a", "b"]})
            start = start.extend(
                [
                    {"role": "assistant", "content": "Next.", "tool_calls": [call(turn + 1, "edit", edit)]},
                    {"role": "tool", "tool_call_id": f"call_{turn + 1}", "content": f"applied\n{DIFF}"},
                ]
            )
        if shop.hostile:
            first, second = shop.turns + 1, shop.turns + 2
            bad = f"{SCRIPT}\n{IMAGE}\n{BREAKOUT}\n{UNSEEN}"
            start = start.extend(
                [
                    {
                        "role": "assistant",
                        "content": bad,
                        "tool_calls": [call(first, SCRIPT, json.dumps({IMAGE: bad}))],
                    },
                    {
                        "role": "tool",
                        "tool_call_id": f"call_{first}",
                        "content": f"{SCRIPT}{IMAGE}\n{output(shop.output)}",
                    },
                    {"role": "assistant", "content": "", "tool_calls": [call(second, "edit", TWICE)]},
                    {
                        "role": "tool",
                        "tool_call_id": f"call_{second}",
                        "content": '{"code": 1, "tail": [{"b": "\\u202e"}]}',
                    },
                ]
            )
        return start.extend([self._order(0)])


TOOL = {
    "type": "function",
    "function": {
        "name": "edit",
        "description": "Apply a patch.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "patch": {"type": "string"}}},
    },
}


class Gallery(Workshop):
    """The harness. `turns` pairs of a tool call and its answer stand before the first order."""

    name = "gallery"

    def __init__(self, turns: int = 0, hostile: bool = False, output: int = 2_000_000) -> None:
        super().__init__()
        self.turns, self.hostile, self.output = turns, hostile, output
        self.version = f"1-{turns}-{hostile}-{output}"

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Bench]:
        yield GalleryBench(self, instance, at)
