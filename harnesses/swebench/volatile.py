"""What of a command's output differs from one execution to the next though nothing else does.

It is masked in digests only: models and rows get the words as they are. Each pattern is narrow, since commands are
masked with the rest: a longer `sleep` is another command.
"""

from __future__ import annotations

import re

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"

PATTERNS = (
    # 2026-11-30, 2026-11-30T01:56:21.123456+00:00
    r"\b20\d\d-[01]\d-[0-3]\d(?:[T ][0-2]\d:[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?: ?(?:Z\b|[+-]\d\d:?\d\d\b))?)?",
    # Mon Nov 30 01:56:21 UTC 2026, Nov 30 01:56, Nov 30  2025
    rf"\b(?:{_DAY},? )?{_MONTH} {{1,2}}\d{{1,2}}(?:,? {{1,2}}[0-2]?\d:[0-5]\d(?::[0-5]\d)?)?(?: [A-Z]{{3,4}}\b)?"
    r"(?: {1,2}20\d\d\b)?(?: [+-]\d{4}\b)?",
    # Mon, 30 Nov 2026 01:56:21
    rf"\b(?:{_DAY}, )?\d{{1,2}} {_MONTH} 20\d\d(?: [0-2]\d:[0-5]\d:[0-5]\d)?(?: [+-]\d{{4}}\b| GMT\b)?",
    # 01:56:21, 0:00:01.25
    r"\b\d{1,2}:[0-5]\d:[0-5]\d(?:[.,]\d{1,9})?\b",
    # 0.12s, 0m0.003s, 3.4 seconds
    r"\b(?:\d{1,4}m)?\d{1,6}\.\d{1,9} ?(?:ns|us|µs|ms|s|sec|secs|seconds|minutes)\b",
    # in 3s, took 12 ms
    r"\b(?:in|took|after|elapsed:?|duration:?) \d{1,9} ?(?:ns|us|µs|ms|s|sec|secs|seconds?)\b",
    # 12.3 MB/s
    r"\b\d{1,9}(?:\.\d{1,9})? ?[kKMG]?i?B/s\b",
    # <object at 0x7f3a5c2d1e50>
    r"\b0x[0-9a-fA-F]{9,16}\b",
    # /tmp/tmpab12cd_3, /tmp/tmp.AbCdEfGhIj, /tmp/pytest-of-root/pytest-12
    r"/tmp/(?:tmp[A-Za-z0-9_]{8}|tmp\.[A-Za-z0-9]{6,12}|pytest-of-[a-z]{1,32}/pytest-\d{1,9}|pip-[a-z-]{1,40}-\w{8})\b",  # noqa: S108
    # pid 123, [1] 123
    r"(?i:\bpid)[ =:]{1,3}\d{1,9}\b",
    r"(?m:^\[\d{1,3}\] \d{1,9}$)",
    # Using --randomly-seed=123, random seed: 123
    r"\bseed[=: ]{1,2}\d{1,12}\b",
    # A commit made a moment ago: [main 1a2b3c4], Dropped refs/stash@{0} (1a2b...)
    r"(?m:^\[[\w./-]{1,80}(?: \(root-commit\))? [0-9a-f]{7,12}\])",
    r"\(\b[0-9a-f]{40}\b\)",
    # How much of an endless output was read before its command was killed
    r"\b\d{1,12} (?:characters elided|bytes left out)\b",
)

_VOLATILE = re.compile("|".join(f"(?:{pattern})" for pattern in PATTERNS))


def mask(text: str) -> str:
    """The text with times, durations, temporary paths, addresses and the like replaced by a constant.

    >>> mask("1 passed in 0.03s at 0x7f3a5c2d1e50 in /tmp/tmpab12cd_3")
    '1 passed in … at … in …'
    >>> mask("sleep 5s; mask = 0xdeadbeef; cat /tmp/test_fix.py")
    'sleep 5s; mask = 0xdeadbeef; cat /tmp/test_fix.py'
    """
    return _VOLATILE.sub("…", text)
