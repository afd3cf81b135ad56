"""A small repository with a bug, as a SWE-bench instance, and how it is solved.

`merge` joins overlapping spans and forgets that one may lie within another.
"""

from __future__ import annotations

import difflib
from typing import Any

SPANS = '''\
"""Spans: pairs of a first number and the number after the last."""


def merge(spans):
    """The spans in order, those that overlap or touch joined into one."""
    merged = []
    for first, end in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((first, end))
    return merged


def length(spans):
    """How many numbers the spans hold, each counted once."""
    return sum(end - first for first, end in merge(spans))
'''
TESTS = """\
from spans import length, merge


def test_overlapping_spans_become_one():
    assert merge([(4, 9), (1, 5)]) == [(1, 9)]


def test_spans_apart_stay_apart():
    assert merge([(1, 2), (4, 5)]) == [(1, 2), (4, 5)]
"""
NEW_TESTS = (
    TESTS
    + """

def test_a_span_within_another_changes_nothing():
    assert merge([(1, 9), (2, 3)]) == [(1, 9)]
    assert length([(1, 9), (2, 3)]) == 8
"""
)
FILES = {
    "README.md": "# spans\n\nA few functions on spans of numbers.\n",
    "conftest.py": "",
    "spans.py": SPANS,
    "tests/test_spans.py": TESTS,
}
PROBLEM = """\
`merge` loses part of a span that holds another one.

`merge([(1, 9), (2, 3)])` gives `[(1, 3)]`. It should give `[(1, 9)]`: the second span lies within the first."""


def diff(path: str, before: str, after: str) -> str:
    """What git would show of a changed file."""
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return f"diff --git a/{path} b/{path}\n" + "".join(lines)


def added(path: str, text: str) -> str:
    """What git would show of a new file."""
    lines = text.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}"


WRONG, RIGHT = "(merged[-1][0], end)", "(merged[-1][0], max(end, merged[-1][1]))"
SOLUTION = diff("spans.py", SPANS, SPANS.replace(WRONG, RIGHT))
"""The reference patch."""

EVAL_SCRIPT = f"""\
#!/bin/bash
set -uxo pipefail
cd /testbed
git checkout HEAD tests/test_spans.py
git apply -v - <<'EOF_TESTS'
{diff("tests/test_spans.py", TESTS, NEW_TESTS)}
EOF_TESTS
: '>>>>> Start Test Output'
python3 -m pytest -rA -p no:cacheprovider tests/test_spans.py
: '>>>>> End Test Output'
git checkout HEAD tests/test_spans.py
"""


def instance(image: str, name: str = "spans__spans-1", **changes: Any) -> dict[str, Any]:
    """The instance as a row of a data set in the format of swebench 5."""
    return {
        "instance_id": name,
        "repo": "spans/spans",
        "version": "1.0",
        "base_commit": "HEAD",
        "problem_statement": PROBLEM,
        "patch": SOLUTION,
        "image": image,
        "eval_script": EVAL_SCRIPT,
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        "FAIL_TO_PASS": '["tests/test_spans.py::test_a_span_within_another_changes_nothing"]',
        "PASS_TO_PASS": [
            "tests/test_spans.py::test_overlapping_spans_become_one",
            "tests/test_spans.py::test_spans_apart_stay_apart",
        ],
        **changes,
    }


TRAJECTORY = (
    ("I look around first.", "git log --oneline && ls -R"),
    ("The code is in spans.py.", "cat spans.py"),
    ("I reproduce the problem.", "python3 -c 'from spans import merge; print(merge([(1, 9), (2, 3)]))'"),
    ("The end of the longer span is lost. I keep it.", f"sed -i 's/{WRONG.replace('[', '.')}/{RIGHT}/' spans.py"),
    ("Does it hold?", "python3 -m pytest -q -p no:cacheprovider && git status --short"),
    ("I write the patch.", "git diff -- spans.py > patch.txt"),
    ("I look at it.", "cat patch.txt"),
    ("I submit it.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt"),
)
"""A reference trajectory: what the agent thinks at each step, and its command."""
