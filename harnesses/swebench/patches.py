"""What a patch touches, read off its headers: the repository's own records, and what decides how tests are run."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_HEADER = re.compile(
    rb"^(?:diff --git |--- |\+\+\+ |\*\*\* |Index: |(?:rename|copy) (?:from|to) )(.*)$", re.MULTILINE | re.IGNORECASE
)
"""Every line that `git apply` or `patch` may take a file's name from. Lines of a hunk look like some of them; what is
read too much there is a path that nobody writes."""

_INFRASTRUCTURE = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "noxfile.py",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
    "runtests.py",
    "test_runner.py",
    "sympy/testing/*",
    "bin/test",
    # Modules that would be imported in place of the test runner's own.
    "pytest.py",
    "pytest/*",
    "_pytest/*",
    "pluggy/*",
    "unittest.py",
    "unittest/*",
    "package.json",
    "jest.config.*",
    "karma.conf.*",
    "vitest.config.*",
    ".mocharc*",
    "Makefile",
)
"""Files that decide how tests are run or what comes of them, as patterns of the end of a path."""


def touched(patch: bytes) -> tuple[str, ...]:
    """The paths in a patch's headers, sorted, without the `a/` and `b/` of git.

    >>> touched(b"diff --git a/x.py b/x.py\\n--- a/x.py\\n+++ b/x.py\\n")
    ('x.py',)
    >>> touched(b'--- /dev/null\\n+++ "b/\\\\056git/hooks/post-checkout"\\n')
    ('.git/hooks/post-checkout',)
    """
    found: set[str] = set()
    for line in _HEADER.findall(patch):
        found.update(_names(line.decode(errors="replace")))
    return tuple(sorted(found - {"/dev/null", ""}))


def records(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Those in a folder `.git`: hooks and configuration there are run by git itself.

    >>> records((".git/hooks/post-checkout", ".github/x", "sub/.GIT/config"))
    ('.git/hooks/post-checkout', 'sub/.GIT/config')
    """
    return tuple(path for path in paths if ".git" in path.casefold().split("/"))


def infrastructure(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Those of test infrastructure.

    >>> infrastructure(("conftest.py", "tests/conftest.py", "sympy/testing/runtests.py", "spans.py"))
    ('conftest.py', 'tests/conftest.py', 'sympy/testing/runtests.py')
    """
    return tuple(path for path in paths if any(PurePosixPath(path).match(pattern) for pattern in _INFRASTRUCTURE))


def _names(header: str) -> list[str]:
    """The paths of one header: a time may follow after a tab, and `diff --git` has two.

    Spaces part the two, and may be part of each: where names have spaces, the pieces are read as names as well.
    """
    text = header.rstrip("\r").split("\t")[0]
    quoted = re.findall(r'"((?:[^"\\]|\\.)*)"', text)
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', " ", text).split(" ")
    return [_without_side(name) for name in [*map(_unquoted, quoted), *plain]]


def _without_side(name: str) -> str:
    return name[2:] if name.startswith(("a/", "b/")) else name


def _unquoted(name: str) -> str:
    r"""A name as git quotes it, in C's manner.

    >>> _unquoted(r'\056git/a\"b')
    '.git/a"b'
    """

    def character(escape: re.Match[str]) -> str:
        octal = escape[1]
        return chr(int(octal, 8)) if octal else {"n": "\n", "t": "\t"}.get(escape[2], escape[2])

    return re.sub(r"\\(?:([0-7]{3})|(.))", character, name)
