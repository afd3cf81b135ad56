"""What a step does, told from its response alone, by rules that are fixed before any tier is looked at.

A compound step takes the first role that any of its calls has, in the order of `Role`: edits, verification,
exploration, reading, tool operations; a response without a call is prose. Shell commands are taken apart into their
parts and told by the programs they run; other tools by the words in their names. Commands are model output: they are
read as text, never run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from stepdown.builder.actions.text import block_tag
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Message
from stepdown.harnesses.base import Harness


class Role(StrEnum):
    """In order of precedence."""

    CODE_PATCH = "code_patch"
    TEST_VERIFY_DEBUG = "test_verify_debug"
    EXPLORE_SEARCH = "explore_search"
    READ_RETRIEVE = "read_retrieve"
    TOOL_API = "tool_api"
    SUMMARIZE_ANSWER = "summarize_answer"


LONGEST_COMMAND = 20_000
"""Characters of a command that are looked at; what a step does shows at its beginning."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHELLS = frozenset({"bash", "shell", "sh", "terminal", "execute_bash", "run_command", "exec_command", "run_shell"})
_COMMAND_FIELDS = ("command", "cmd", "script", "input")
_FENCED = re.compile(rf"```(?:bash|sh|shell|{block_tag('bash')})[ \t]*\n(.*?)\n?```", re.DOTALL)

_EDITS = _words("patch apply_patch tee touch mkdir rmdir rm mv cp ln chmod truncate install dd ed ex vi vim nano")
_CHECKS = _words(
    "pytest py.test unittest tox nox nosetests make ctest node npm npx yarn pnpm jest mocha go cargo mvn "
    "gradle rspec ruby perl java javac gcc g++ cc clang ruff mypy flake8 pylint black isort gdb pdb "
    "python python2 python3 ipython test"
)
_EXPLORES = _words("grep egrep fgrep rg ag ack find fd ls tree locate which whereis pwd stat file du df wc cd")
_READS = _words("cat head tail less more nl sed awk cut sort uniq diff cmp od xxd hexdump strings jq column")
_GIT_EDITS = _words("apply am checkout restore reset revert stash commit add rm mv merge rebase cherry-pick clean")
_WRAPPERS = _words("sudo env time timeout nice nohup xargs command exec stdbuf")

_EDIT_WORDS = _words("edit write patch replace insert create modify overwrite append apply undo")
_CHECK_WORDS = _words("test tests pytest verify debug lint")
_EXPLORE_WORDS = _words("search find grep glob ls list explore browse tree")
_READ_WORDS = _words("read open view cat head tail show fetch retrieve get lookup load")
_FILE_WORDS = _words("file files code source patch diff editor directory folder repo path notebook text")
_TEXT_WORDS = _FILE_WORDS | _words(
    "web page pages url docs document documents passage passages wiki symbol symbols repository"
)
"""What can be explored or read; a search among flights or friends is a tool operation of its domain."""


def role_of(response: Message, workload: type[Harness] = Harness) -> Role:
    """The role of a step from the assistant's message; its workload may know better than the rules here.

    Raises BadInput where the workload names no role.

    >>> role_of({"role": "assistant", "content": "It is 42."})
    <Role.SUMMARIZE_ANSWER: 'summarize_answer'>
    >>> role_of({"role": "assistant", "content": "```bash\\ncd src && sed -i s/a/b/ x.py && pytest -q\\n```"})
    <Role.CODE_PATCH: 'code_patch'>
    """
    if (own := workload.step_role(response)) is not None:
        if own not in set(Role):
            raise BadInput(f"{workload.__qualname__}.step_role says {own!r}, which is none of {', '.join(Role)}")
        return Role(own)
    found = set(_roles(response))
    return next((role for role in Role if role in found), Role.SUMMARIZE_ANSWER)


def _roles(response: Message) -> Iterator[Role]:
    calls = response.get("tool_calls")
    called = False
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            called = True
            yield from _of_call(str(function.get("name", "")), function.get("arguments"))
    content = response.get("content")
    if not called and isinstance(content, str):
        for block in _FENCED.findall(content[: 4 * LONGEST_COMMAND]):
            yield from _of_command(block)


def _of_call(name: str, arguments: Any) -> Iterator[Role]:
    words = set(re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()))
    command = _command(arguments) if name.lower() in _SHELLS else None
    if command is not None:
        yield from _of_command(command)
    elif name == "str_replace_editor" or name == "str_replace_based_edit_tool":
        yield Role.READ_RETRIEVE if _command(arguments) == "view" else Role.CODE_PATCH
    elif (words & _EDIT_WORDS and words & _FILE_WORDS) or name in ("edit", "write", "apply_patch", "str_replace"):
        yield Role.CODE_PATCH
    elif words & {"test", "tests", "pytest", "verify", "debug", "lint"} or name in (
        "python",
        "execute_code",
        "run_code",
    ):
        yield Role.TEST_VERIFY_DEBUG
    elif name in _EXPLORES or (words & _EXPLORE_WORDS and words & _TEXT_WORDS) or words == {"search"}:
        yield Role.EXPLORE_SEARCH
    elif name in _READS or (words & _READ_WORDS and words & _TEXT_WORDS):
        yield Role.READ_RETRIEVE
    else:
        yield Role.TOOL_API


def _command(arguments: Any) -> str | None:
    """The command among a call's arguments, which are JSON text."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    if not isinstance(arguments, Mapping):
        return None
    for field in _COMMAND_FIELDS:
        if isinstance(arguments.get(field), str):
            return str(arguments[field])
    return None


def _of_command(command: str) -> Iterator[Role]:
    command = command[:LONGEST_COMMAND]
    text, documents = _without_documents(command)
    found = [role for part in re.split(r"&&|\|\||[;|\n]", text) if (role := _of_part(part)) is not None]
    if documents and not re.search(r"\b(python[23]?|node|bash|sh)\b[^\n]*<<", text) and ">" in text:
        found.append(Role.CODE_PATCH)
    yield from found or [Role.TOOL_API]  # `cd` alone is a tool operation still


_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1[^\n]*\n")


def _without_documents(command: str) -> tuple[str, bool]:
    """The command without the bodies of its here-documents, which are data; whether it had any."""
    out, place, found = [], 0, False
    while (start := _DOCUMENT.search(command, place)) is not None:
        found = True
        out.append(command[place : start.end()])
        end = re.compile(rf"^\s*{re.escape(start[2])}\s*$", re.MULTILINE).search(command, start.end())
        place = end.end() if end else len(command)
    return "".join(out) + command[place:], found


_BEFORE_A_PROGRAM = re.compile(r"[A-Za-z_]\w*=|[-0-9]")
"""An assignment, or an option or argument of a wrapper."""
_REDIRECTS = re.compile(r"(?<![0-9&<>=-])>>?\s*(?!&|/dev/)[^\s>|&;]")


def _of_part(part: str) -> Role | None:
    """The role of one simple command; None where there is none."""
    words = part.replace("(", " ").replace(")", " ").split()
    while words and (
        re.fullmatch(r"[A-Za-z_]\w*=\S*", words[0]) or words[0] in _WRAPPERS or words[0][:1] in "-0123456789"
    ):
        words = words[1:]
    if not words or words[0].startswith("#"):
        return None
    program, rest = words[0].rpartition("/")[2], words[1:]
    in_place = program in ("sed", "perl") and any(re.match(r"-[a-zA-Z]*i", word) for word in rest)
    if program in _EDITS or in_place or _REDIRECTS.search(_unquoted(part)):
        return Role.CODE_PATCH
    if program == "git":
        return Role.CODE_PATCH if _first(rest) in _GIT_EDITS else Role.EXPLORE_SEARCH
    if program in _CHECKS or words[0].startswith("./") or program.endswith((".sh", ".py")):
        return Role.TEST_VERIFY_DEBUG
    if program in _EXPLORES:
        return None if program == "cd" else Role.EXPLORE_SEARCH
    if program in _READS:
        return Role.READ_RETRIEVE
    return Role.TOOL_API


def _unquoted(part: str) -> str:
    """The part without what is quoted in it: an arrow in a string redirects nothing."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", "''", part)


def _first(words: list[str]) -> str:
    return next((word for word in words if not word.startswith("-")), "")
