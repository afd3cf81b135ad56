"""A workload of one's own that breaks: one line with its file and line, and the traceback of a trial that broke."""

from __future__ import annotations

import itertools
import os
import re
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.common.faults import said, whole_traceback
from stepdown.builder.engine.divergence import first_difference
from stepdown.builder.errors import BadInput, Technical
from stepdown.builder.records import Instance, Prefix, Ruling, Verdict
from stepdown.harnesses.base import Need
from tests.conftest import Shop, stepdown
from tests.provider import Provider
from tests.workshop import Workshop, config

Start = Callable[..., Provider]
_names = itertools.count()

BASE = "from tests.workshop import Workshop\n"


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("class Mine(Workshop):\n    def (self): ...\n", 3, "can not be loaded: SyntaxError: invalid syntax"),
        ("TABLE = {}\nTABLE['x']\nclass Mine(Workshop): ...\n", 3, "can not be loaded: KeyError: 'x'"),
        ("import nothing_of_this_name\n", 2, "can not be loaded: No module named 'nothing_of_this_name'"),
        ("raise SystemExit('bye')\n", 2, "can not be loaded: SystemExit: bye"),
        ("x = None.y\n", 2, "can not be loaded: AttributeError: 'NoneType' object has no attribute 'y'"),
        ("from stepdown import Harness\nclass Mine(Harness):\n    name = 'm'\n", 3, "it has no `instances`, `open`"),
        ("class Mine(Workshop):\n    name = None\n", 2, "Mine has no `name`, a text"),
        (
            "class Mine(Workshop):\n    def __init__(self):\n        super().__init__()\n        1 / 0\n",
            5,
            "Mine can not be made: ZeroDivisionError: division by zero",
        ),
        (
            "class Mine(Workshop):\n    def __init__(self):\n        len(7)\n",
            4,
            "Mine can not be made: TypeError: object of type 'int' has no len()",
        ),
        (
            "class Odd(Exception):\n    def __str__(self): 1 / 0\n"
            "class Mine(Workshop):\n    def __init__(self):\n        raise Odd\n",
            6,
            "Mine can not be made: Odd",
        ),
    ],
)
def test_what_breaks_before_the_first_episode_is_one_line_that_names_its_place(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, code: str, line: int, words: str
) -> None:
    name = f"broken_workload_{next(_names)}"
    (shop.folder / f"{name}.py").write_text(BASE + code)
    monkeypatch.syspath_prepend(shop.folder)
    settings = config("http://127.0.0.1:9", [[0]])
    settings["protocol"]["workloads"][0]["harness"] = f"{name}:Mine"
    result = shop.build(settings)
    assert result.code == 2
    (problem,) = [one for one in result.err.splitlines() if not one.startswith("loading workload")]
    assert "protocol.workloads.0.harness: " in problem
    assert f"{name}.py:{line}: " in problem
    assert words in problem


def test_an_option_that_the_harness_does_not_have_is_an_option_s_mistake(shop: Shop) -> None:
    result = shop.build(config("http://127.0.0.1:9", [[0]], options={"erly": True}))
    assert result.code == 2
    assert "protocol.workloads.0.harness: options: " in result.err
    assert "'erly'" in result.err


class Leaving(Workshop):
    """A workshop whose code would end the process."""

    def __init__(self, where: str, how: str = "exit") -> None:
        super().__init__()
        self.where, self.how = where, how
        self._leave("made")

    def _leave(self, where: str) -> None:
        if where == self.where:
            raise {"exit": SystemExit("bye"), "cancelled": CancelledError(), "closed": GeneratorExit()}[self.how]

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        self._leave("source")
        yield from super().instances(source)

    def needs(self, source: Mapping[str, Any]) -> Iterator[Need]:
        self._leave("needs")
        return iter(())

    def keep_in(self, folder: Path) -> None:
        self._leave("folder")

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Any]:
        self._leave("open")
        with super().open(instance, at) as episode:
            yield episode
        self._leave("closed")


@pytest.mark.parametrize(
    ("where", "how", "code", "words"),
    [
        ("made", "exit", 2, "can not be made: SystemExit: bye"),
        ("folder", "exit", 2, "workload 'tests.test_broken_harness:Leaving': test_broken_harness.py:"),
        ("source", "exit", 2, "the workload can not read it: test_broken_harness.py:"),
        ("source", "cancelled", 2, "CancelledError"),
        ("open", "exit", 3, "SystemExit: bye"),
        ("open", "cancelled", 3, "CancelledError"),
        ("open", "closed", 3, "GeneratorExit"),
        ("closed", "exit", 3, "SystemExit: bye"),
    ],
)
def test_code_that_would_end_the_process_breaks_its_own_instances_only(
    shop: Shop, provider: Start, where: str, how: str, code: int, words: str
) -> None:
    settings = config(provider().url, [[0]], options={"where": where, "how": how})
    settings["protocol"]["workloads"][0]["harness"] = "tests.test_broken_harness:Leaving"
    result = shop.build(settings)
    assert result.code == code
    assert words in result.out + result.err


def test_the_doctor_tells_of_a_workload_that_can_not_say_what_it_needs(shop: Shop) -> None:
    settings = config("http://127.0.0.1:9", [[0]], options={"where": "needs", "how": "exit"})
    settings["protocol"]["workloads"][0]["harness"] = "tests.test_broken_harness:Leaving"
    result = stepdown("doctor", str(shop.write(settings)))
    assert result.code != 0
    assert "it can not say what it needs: test_broken_harness.py:" in result.out


class Picky(Workshop):
    """A workshop with an option of its own, which hands the others on."""

    def __init__(self, sharpness: int = 1, **others: Any) -> None:
        super().__init__(**others)


class Plain(Workshop):
    """A workshop with one option."""

    def __init__(self, sharpness: int = 1) -> None:
        super().__init__()


@pytest.mark.parametrize(
    ("name", "option", "hint"),
    [
        ("workshop:Workshop", "erly", "'erly': did you mean `early`?"),
        ("test_broken_harness:Plain", "sharpnes", "'sharpnes': did you mean `sharpness`?"),
        ("test_broken_harness:Picky", "checkpoint", "'checkpoint': did you mean `checkpoints`?"),
        ("test_broken_harness:Plain", "colour", "'colour' (options are "),
    ],
)
def test_an_option_that_is_nearly_named_is_suggested(shop: Shop, name: str, option: str, hint: str) -> None:
    settings = config("http://127.0.0.1:9", [[0]], options={option: True})
    settings["protocol"]["workloads"][0]["harness"] = f"tests.{name}"
    result = shop.build(settings)
    assert result.code == 2
    assert f"unexpected keyword argument {hint}" in result.err


def test_a_class_that_is_nearly_named_is_suggested(shop: Shop) -> None:
    settings = config("http://127.0.0.1:9", [[0]])
    settings["protocol"]["workloads"][0]["harness"] = "tests.workshop:Workshp"
    assert "has no class 'Workshp': did you mean 'Workshop'?" in shop.build(settings).err


def test_a_source_that_breaks_the_harness_is_told_with_the_line(shop: Shop) -> None:
    settings = config("http://127.0.0.1:9", [[0]])
    settings["protocol"]["workloads"][0]["source"] = {"needs": 7}
    result = shop.build(settings)
    assert result.code == 2
    assert re.search(r"source: the workload can not read it: workshop\.py:\d+: TypeError: 'int'", result.err)


def test_what_breaks_inside_an_episode_names_its_line_and_keeps_the_traceback(shop: Shop, provider: Start) -> None:
    line = next(n for n, text in enumerate(_workshop_lines(), 1) if 'RuntimeError("the workbench' in text)
    assert shop.build(config(provider().url, [[0], [1]], options={"breaks_on": "spoilt with skill 0"})).code == 3
    words = f"the harness broke: workshop.py:{line}: RuntimeError: the workbench collapsed"
    assert shop.manifest()["blocked"] == {"workshop": {words: 1}}
    out = stepdown("explain", str(shop.run), "workshop/job-1/1").out
    assert f"reason={words}" in out
    assert "its harness broke:\n    Traceback (most recent call last):" in out
    assert f'workshop.py", line {line}, in advance' in out
    assert '    raise RuntimeError("the workbench collapsed")' in out
    assert "Traceback" not in "".join(file.decode() for file in shop.files().values())
    assert "errors before retries: 0" in stepdown("status", str(shop.run)).out


def _workshop_lines() -> list[str]:
    return (Path(__file__).parent / "workshop.py").read_text().splitlines()


class Clocked(Workshop):
    """A workshop that forgets to mask its clock."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.mask = None


def test_a_replay_that_diverged_shows_both_texts_where_they_differ(shop: Shop, provider: Start) -> None:
    settings = config(provider().url, [[0, 0]], options={"volatile": True, "checkpoints": False})
    settings["protocol"]["workloads"][0]["harness"] = "tests.test_broken_harness:Clocked"
    assert shop.build(settings).code == 3
    (reason,) = shop.manifest()["blocked"]["workshop"]
    texts = re.search(r"replay diverged: .*: recorded '(.*)', now '(.*)'$", reason)
    assert texts
    recorded, now = texts.groups()
    assert recorded != now
    assert all(re.fullmatch(r"….*0 clock \d+", text) for text in (recorded, now))
    assert reason in stepdown("status", str(shop.run)).out


def test_many_replays_that_diverged_are_one_line_at_the_end_and_in_the_status(shop: Shop, provider: Start) -> None:
    settings = config(provider().url, [[0, 0]] * 4, options={"volatile": True, "checkpoints": False})
    settings["protocol"]["workloads"][0]["harness"] = "tests.test_broken_harness:Clocked"
    for out in (shop.build(settings).out, stepdown("status", str(shop.run)).out):
        (line,) = [line for line in out.splitlines() if "replay diverged" in line]
        assert line.startswith("blocked: 4 of workshop")


def test_where_two_prefixes_differ_is_shown_short_and_printable() -> None:
    start = [{"role": "user", "content": "x" * 500 + "\x1b[31mold" + "y" * 500}]
    other = [{"role": "user", "content": "x" * 500 + "\x1b[31mnew" + "y" * 500}]
    shown = first_difference(Prefix.start(start), Prefix.start(other))
    assert "[31mold" in shown
    assert "[31mnew" in shown
    assert len(shown) < 200
    assert shown.isprintable()
    longer = Prefix.start([*start, {"role": "user", "content": "more"}])
    assert first_difference(Prefix.start(start), longer) == "recorded no message, now 'more'"
    tool = {"type": "function", "function": {"name": "look"}}
    assert "look" in first_difference(Prefix.start(start), Prefix.start(start, [tool]))


def test_an_error_without_words_and_one_that_is_endless_are_told() -> None:
    assert said(RuntimeError("a\nb")) == "RuntimeError: a b"
    text = whole_traceback(RuntimeError("x" * 100_000))
    assert text.startswith("Traceback (most recent call last):")
    assert len(text) < 10_000


SECRET = "sk-hush-0123456789abcdef"


class Talkative(Workshop):
    """A workshop that says its key wherever it can."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where
        self._say("made")

    def _say(self, where: str) -> None:
        if where == self.where:
            raise {"bad": BadInput, "technical": Technical}.get(where, RuntimeError)(
                f"refused with {_key()} for {where}"
            )

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        self._say("source")
        self._say("bad")
        yield from super().instances(source)

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Any]:
        self._say("technical")
        self._say("open")
        with super().open(instance, at) as episode:
            if self.where == "verdict":
                reason, grading = f"graded with {_key()}", {"log": [f"with {_key()}"]}
                vars(episode)["verdict"] = lambda: Ruling(Verdict.FAIL, reason, grading)
            yield episode


def _key() -> str:
    return os.environ["WORKSHOP_PASS"]


@pytest.mark.parametrize("where", ["made", "source", "bad", "technical", "open", "verdict"])
@pytest.mark.parametrize("command", ["build", "doctor"])
def test_a_key_in_what_a_harness_says_is_neither_shown_nor_kept(
    shop: Shop, provider: Start, monkeypatch: pytest.MonkeyPatch, where: str, command: str
) -> None:
    """The variable's name tells nothing; the config names it as one that holds a key."""
    monkeypatch.setenv("WORKSHOP_PASS", SECRET)
    settings = config(provider().url, [[0]])
    settings["protocol"]["workloads"][0] |= {
        "harness": "tests.test_broken_harness:Talkative",
        "options": {"where": where},
    }
    settings["operation"]["endpoints"]["master"] = {
        **settings["operation"]["endpoints"]["default"],
        "api_key": "WORKSHOP_PASS",
    }
    file = shop.write(settings)
    result = stepdown(command, str(file), *(["--run", str(shop.run)] if command == "build" else []))
    shown = result.out + result.err
    if shop.run.exists():
        shown += stepdown("status", str(shop.run)).out + stepdown("explain", str(shop.run), "workshop/job-0").out
    assert SECRET not in shown
    if command == "build":
        assert "[WORKSHOP_PASS]" in shown
    if shop.run.exists():
        kept = b"".join(path.read_bytes() for path in shop.run.rglob("*") if path.is_file())
        assert SECRET.encode() not in kept
