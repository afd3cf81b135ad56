"""What of a command's output differs from one execution to the next though nothing else does.

It is masked in digests only: models and rows get the words as they are. Each pattern is narrow, since commands are
masked with the rest: a longer `sleep` is another command.
"""

from __future__ import annotations

import regex

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_YEAR = r"20(?:2[6-9]|[3-9]\d)"
"""Years in which commands are run. A date of an earlier one is a fact: of a commit, of a file, or of what is mended."""
_EARLIER = r"(?! {1,2}(?:1\d\d\d|20[01]\d|202[0-5])\b)"
_UNIT = "(?:ns|us|µs|ms|s)"

PATTERNS = (
    # 2026-11-30, 2026-11-30T01:56:21.123456+00:00
    rf"\b{_YEAR}-[01]\d-[0-3]\d(?:[T ][0-2]\d:[0-5]\d(?::[0-5]\d(?:[.,]\d{{1,9}})?)?(?: ?(?:Z\b|[+-]\d\d:?\d\d\b))?)?",
    # Mon Nov 30 01:56:21 UTC 2026, Nov 30 01:56, Nov 30  2026
    rf"\b(?:{_DAY},? )?{_MONTH} {{1,2}}\d{{1,2}}(?!\d)(?:,? {{1,2}}[0-2]?\d:[0-5]\d(?::[0-5]\d)?)?+"
    rf"(?: [A-Z]{{3,4}}\b)?+{_EARLIER}(?: {{1,2}}20\d\d\b)?(?: [+-]\d{{4}}\b)?",
    # Mon, 30 Nov 2026 01:56:21
    rf"\b(?:{_DAY}, )?\d{{1,2}} {_MONTH} {_YEAR}(?: [0-2]\d:[0-5]\d:[0-5]\d)?(?: [+-]\d{{4}}\b| GMT\b)?",
    # 1796003781, 1796003781.123456, and the same in milliseconds, microseconds or nanoseconds
    r"\b1(?:7[6-9]|[89]\d)\d{7}(?:\.\d{1,9}|(?:\d{3}){1,3})?\b",
    # 3 seconds ago, 2 years, 5 months ago
    r"\b\d{1,3} (?:second|minute|hour|day|week|month|year)s?(?:, \d{1,2} months?)? ago\b",
    # 01:56:21, 0:00:01.25
    r"\b\d{1,2}:[0-5]\d:[0-5]\d(?:[.,]\d{1,9})?\b",
    # 50000 loops, best of 5: 4.93 usec per loop
    r"\b\d{1,9} loops?, best of \d{1,3}: \d{1,9}(?:\.\d{1,9})? ?[nuµm]?s(?:ec)? per loop\b",
    # 1.2 µs ± 3.4 ns per loop (mean ± std. dev. of 7 runs, 1,000,000 loops each)
    rf"\b\d{{1,9}}(?:\.\d{{1,9}})? {_UNIT} ± \d{{1,9}}(?:\.\d{{1,9}})? {_UNIT} per loop"
    r" \(mean ± std\. dev\. of \d{1,3} runs, [\d,]{1,13} loops? each\)",
    # 0.12s, 0m0.003s, 3.4 seconds, 61.02s (0:01:01)
    r"\b(?:\d{1,4}m)?\d{1,6}\.\d{1,9} ?(?:ns|us|µs|ms|s|sec|secs|seconds|minutes)\b(?: \(\d{1,3}:[0-5]\d:[0-5]\d\))?",
    # in 3s, took 12 ms
    r"\b(?:in|took|after|elapsed:?|duration:?) \d{1,9} ?(?:ns|us|µs|ms|s|sec|secs|seconds?)\b",
    # Elapsed: 0.00123, Time taken: 1.2231845855712891e-05
    r"(?i:\b(?:elapsed|took|time|duration|runtime)(?: (?:taken|elapsed|time))?)(?:: ?| ?= ?| )"
    r"\d{1,9}\.(?:\d{4,18}|\d{1,18}e-\d\d)\b",
    # 12.3 MB/s
    r"\b\d{1,9}(?:\.\d{1,9})? ?[kKMG]?i?B/s\b",
    # <object at 0x7f3a5c2d1e50>, <Thread(Thread-1, started 140283018458880)>
    r"\b0x[0-9a-fA-F]{9,16}\b",
    r"\bstarted (?:daemon )?\d{12,15}\b",
    # /tmp/tmpab12cd_3, /tmp/tmp.AbCdEfGhIj, /tmp/pytest-of-root/pytest-12, /tmp/django_ab12cd_3
    r"/tmp/(?:tmp[A-Za-z0-9_]{8}|tmp\.[A-Za-z0-9]{6,12}|pytest-of-[a-z]{1,32}/pytest-\d{1,9}|pip-[a-z-]{1,40}-\w{8}"  # noqa: S108
    r"|(?:django_|matplotlib-)[a-z0-9_]{8})\b",
    # Identifiers that are drawn by chance or made of the time
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[147][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b",
    # Device: 0,58  Inode: 3801234
    r"\bDevice: [0-9a-f]{1,8}[h,/][0-9a-f]{1,8}(?:h?/\d{1,8}d)?",
    r"\bInode: \d{1,20} *",
    # A wheel that was built here: its archive holds the time
    r"\bsize=\d{1,12} sha256=[0-9a-f]{64}\b",
    # ps aux, ps -ef: what stands before the command
    r"(?m:^\w[\w+-]{0,31} {1,12}\d{1,7} {1,8}\d{1,3}\.\d {1,4}\d{1,3}\.\d {1,9}\d{1,12} {1,9}\d{1,12} "
    r"\S{1,8} {1,9}\S{1,5} {1,9}\S{1,6} {1,9}\d{1,6}:\d\d)(?= )",
    r"(?m:^\w[\w+-]{0,31} {1,12}\d{1,7} {1,8}\d{1,7} {1,4}\d{1,3} \d\d:\d\d \S{1,8} {1,9}\d\d:\d\d:\d\d)(?= )",
    # df, free: the host's
    r"(?: {1,20}\d{1,12}(?:\.\d)?[KMGTP]?i?){3} {1,9}\d{1,3}%(?= /)",
    r"(?m:^(?:Mem|Swap):[ \d.KMGTiB]{1,120}$)",
    # cProfile: tottime, percall, cumtime, percall
    r"(?: {1,12}\d{1,6}\.\d{3}){4}(?= )",
    # pid 123, [1] 123
    r"(?i:\bpid)[ =:]{1,3}\d{1,9}\b",
    r"(?m:^\[\d{1,3}\] \d{1,9}$)",
    # Using --randomly-seed=123, random seed:        123, @seed(123)
    r"\bseed(?:[=:] {0,12}| )\d{1,12}\b",
    r"@seed\(\d{1,50}\)",
    # A commit made a moment ago: [main 1a2b3c4], [detached HEAD 1a2b3c4], Dropped refs/stash@{0} (1a2b...)
    r"(?m:^\[(?:detached HEAD|[\w./-]{1,80})(?: \(root-commit\))? [0-9a-f]{7,12}\])",
    r"\(\b[0-9a-f]{40}\b\)",
    # How much of an endless output was read before its command was killed
    r"\b\d{1,12} (?:characters elided|bytes left out)\b",
    # A long output is cut by length, so the lines at the cut move with the length of any time in it
    r"(?m:^[^\n]{0,200}\n(?=</output_head>))",
    r"(?<=<output_tail>\n)[^\n]{0,200}\n",
)

_DURATION = regex.compile(
    # in 0.12s, in 61.02s (0:01:01), Ran 3 tests in 0.001s, took 12 ms, real 0m0.003s
    r"(?<=\b(?i:in|took|after|elapsed:?|duration:?|taken:?|real|user|sys)[ \t])(?:\d{1,4}m)?\d{1,9}(?:\.\d{1,9})? ?"
    r"(ns|us|µs|ms|secs?|seconds?|s|minutes)\b(?: \(\d{1,3}:[0-5]\d:[0-5]\d\))?"
    # 0.25s call tests/test_x.py::test_y
    r"|(?m:^\d{1,6}\.\d\d(s)(?= (?:call|setup|teardown) ))"
)
"""What test runners and `time` say that something took; not any number with a unit, for files have such too."""
_LINE = 80

_VOLATILE = regex.compile("|".join(f"(?:{pattern})" for pattern in PATTERNS))
_MASK = "…"
_RULERS = "=-_"
_OBSERVATION = ("<returncode>", "<exception>")
"""What mini-swe-agent's observations begin with."""
_LISTED = regex.compile(
    rf"^([-dlcbps][rwxsStT-]{{9}}[.+@]?) +(\d{{1,9}}|{_MASK}) +(\S{{1,64}}) +(\S{{1,64}}) +"
    rf"([\d.]{{1,20}}[KMGT]?|{_MASK}) +",
    regex.MULTILINE,
)
"""A line of `ls -l`, up to its date."""
_TOTAL = regex.compile(r"^total [\d.]{1,20}[KMGT]?$", regex.MULTILINE)


def mask(text: str) -> str:
    """The text with times, durations, temporary paths, addresses and the like replaced by a constant.

    >>> mask("1 passed in 0.03s at 0x7f3a5c2d1e50 in /tmp/tmpab12cd_3")
    '1 passed in … at … in …'
    >>> mask("===== 1 passed in 9.99s =====") == mask("==== 1 passed in 10.00s ====")
    True
    >>> mask("sleep 5s; mask = 0xdeadbeef; cat /tmp/test_fix.py; date -d 2019-01-05")
    'sleep 5s; mask = 0xdeadbeef; cat /tmp/test_fix.py; date -d 2019-01-05'
    """
    masked = _VOLATILE.sub(_MASK, text)
    if _MASK in masked:
        masked = "\n".join(_without_width(line) if _MASK in line else line for line in masked.split("\n"))
    return _without_layers(masked) if masked.startswith(_OBSERVATION) else masked


def without_durations(output: str) -> str:
    """A command's output with what tests and commands took fixed, for an agent that is to see the same each time.

    >>> without_durations("== 1 passed in 0.87s ==") == without_durations("= 1 passed in 62.35s (0:01:02) =")
    True
    >>> without_durations("Ran 3 tests in 0.101s; sleep(2.5s)")
    'Ran 3 tests in 0.00s; sleep(2.5s)'
    """
    return "\n".join(map(_without_duration, output.split("\n"))) if _DURATION.search(output) else output


def _without_duration(line: str) -> str:
    fixed = _DURATION.sub(lambda found: f"0.00{found[1] or found[2]}", line)
    rule = line[:1]
    if fixed == line or not rule or rule not in _RULERS or line[-1] != rule:
        return fixed
    return f" {fixed.strip(rule).strip()} ".center(_LINE, rule)


def _without_layers(observation: str) -> str:
    """What a command printed, as it would be on any layers of files.

    Where a folder's files lie in several layers, they are found in another order (`find`, `grep -r`), and the folder
    has another count of links and another size. Which layers there are depends on where snapshots were taken. The
    order of lines says nothing that the commands do not, which are in the prefix as well.
    """
    observation = _TOTAL.sub(f"total {_MASK}", _LISTED.sub(_listed, observation))
    head, opened, rest = observation.partition("<output>\n")
    body, closed, tail = rest.rpartition("\n</output>")
    if not closed:
        return observation
    return "".join((head, opened, "\n".join(sorted(body.split("\n"))), closed, tail))


def _listed(line: regex.Match[str]) -> str:
    mode, links, user, group, size = line.groups()
    if mode.startswith("d"):
        links = size = _MASK
    return f"{mode} {links} {user} {group} {size} "


def _without_width(line: str) -> str:
    """A line that is filled up to the terminal's width, as pytest's last one is, with rulers of one character."""
    rule = line[:1]
    if rule and rule in _RULERS and line[-1] == rule:
        return f"{rule} {line.strip(rule).strip()} {rule}"
    return line
