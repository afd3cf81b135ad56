"""Responses that a hostile or broken model might make: each is a failure of its own, never code, a hang or a crash."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.records import Instance, Response, Ruling, ToolCall, Verdict
from stepdown.harnesses.bfcl import BFCL
from tests.bfcl.bfcl_play import call, observations, one, played, scripted

MATH = ("MathAPI", "multi_turn_base")
FILES = ("GorillaFileSystem", "multi_turn_base")
SOON = 2.0
"""Seconds within which any single response must have been dealt with."""


def using(harness: BFCL, api: str, category: str) -> Instance:
    every = harness.instances({"categories": {category: "all"}})
    return next(instance for instance in every if api in instance.task["entry"]["involved_classes"])


def result(harness: BFCL, where: tuple[str, str], *responses: Response) -> str:
    """The last observation of an episode in which the responses are made, each of them soon."""
    with harness.open(using(harness, *where)) as episode:
        for response in responses:
            start = time.perf_counter()
            episode.advance(response)
            episode.doomed()
            assert time.perf_counter() - start < SOON
        return (observations(episode.prefix()) or [""])[-1]


def bait(sentinel: Path) -> list[str]:
    command = f"__import__('os').system('touch {sentinel}')"
    return [
        command,
        f"ls(a={command})",
        f"ls); {command} #",
        f"(lambda: {command})()",
        f"exec({command!r})",
        f"self.__class__.__init__.__globals__['__builtins__']['eval']({command!r})",
        "__class__",
        "__init__",
        "__reduce_ex__",
        "_load_scenario",
        "_navigate_to_directory",
        "_parse_positions",
        "root",
        "os.system",
        "GorillaFileSystem.ls",
        "ls.__func__",
        "ls ",
        " ls",
        "ls\n",
        "",
        "\0",
        "\ud800",
        "l" * 1_000_000,
        "kill",
        "exit",
    ]


def test_a_name_that_is_no_documented_function_is_only_a_name(bfcl: BFCL, tmp_path: Path) -> None:
    sentinel = tmp_path / "made"
    for name in bait(sentinel):
        seen = result(bfcl, FILES, Response(tool_calls=(ToolCall(name, "{}"),)))
        assert seen.startswith("Error during execution: name ")
        assert len(seen) < 200
    assert not sentinel.exists()


def test_an_argument_is_only_a_value(bfcl: BFCL, tmp_path: Path) -> None:
    sentinel = tmp_path / "made"
    for text in bait(sentinel)[:6]:
        result(bfcl, FILES, call("echo", content=text, file_name="x"), call("cd", folder=text), call("ls", a=text))
        result(bfcl, FILES, call("find", path=text, name=text), call("ls", **{text: 1}), call("touch", file_name=text))
        result(bfcl, MATH, call("power", base=text, exponent=2), call("logarithm", value=text, base=2, precision=5))
        played(bfcl, one(bfcl, "simple_python_0"), scripted([call("calculate_triangle_area", base=text, height=text)]))
        played(
            bfcl, one(bfcl, "simple_java_1"), scripted([call("sqlCompletionAnalyzer.makeProposalsFromObject", x=text)])
        )
    assert not sentinel.exists()


def test_the_simulated_files_are_not_the_hosts(bfcl: BFCL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result(
        bfcl, FILES, call("touch", file_name="x"), call("echo", content="y", file_name="x"), call("mkdir", dir_name="z")
    )
    assert os.listdir(tmp_path) == []
    assert "hosts" not in result(
        bfcl, FILES, call("cd", folder="/etc"), call("cat", file_name="/etc/hosts"), call("ls")
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("power", {"base": 10, "exponent": 10**9}),
        ("power", {"base": 10**4000, "exponent": 10**4000}),
        ("power", {"base": 9.5, "exponent": 10**400}),
        ("power", {"base": 2, "exponent": 30_000}),
        ("round_number", {"number": 5, "decimal_places": -(10**9)}),
        ("round_number", {"number": 1.5, "decimal_places": 10**30}),
        ("logarithm", {"value": 3, "base": 2, "precision": 10**9}),
        ("logarithm", {"value": 3, "base": 2, "precision": "1000000000"}),
        ("logarithm", {"value": 3, "base": 2, "precision": 1e300}),
        ("logarithm", {"value": "1e1000000000", "base": 2, "precision": 5}),
        ("logarithm", {"value": "1e-1000000000", "base": 2, "precision": 5}),
        ("logarithm", {"value": "1/3e999999999", "base": 2, "precision": 5}),
        ("logarithm", {"value": [1], "base": {}, "precision": None}),
        ("square_root", {"number": 2, "precision": 10**15}),
        ("square_root", {"number": 2, "precision": -1}),
        ("square_root", {"number": "1e999999999", "precision": 5}),
        ("sum_values", {"numbers": [10**4000] * 3 + ["x"]}),
        ("mean", {"numbers": {"a": 1}}),
        ("standard_deviation", {"numbers": [1e308, -1e308]}),
        ("multiply", {"a": 10**4000, "b": 10**4000}),
        ("add", {"a": float("nan"), "b": float("inf")}),
        ("add", {"a": "x" * 100_000, "b": 1}),
        ("add", {"self": 1, "a": 1, "b": 1}),
        ("add", {"a": 1}),
        ("divide", {"a": 1, "b": 0}),
        ("absolute_value", {"number": [[[]]]}),
    ],
)
def test_arithmetic_that_would_not_end_is_an_error(bfcl: BFCL, name: str, arguments: dict[str, Any]) -> None:
    assert "rror" in result(bfcl, MATH, call(name, **arguments))


def test_honest_arithmetic_is_not_touched(bfcl: BFCL) -> None:
    assert result(bfcl, MATH, call("power", base=2, exponent=1000)) == json.dumps({"result": 2**1000})
    assert result(bfcl, MATH, call("power", base=2, exponent=-1)) == '{"result": 0.5}'
    assert result(bfcl, MATH, call("logarithm", value="8", base=2, precision=10)).startswith("{'result': mpf('3.0")
    assert result(bfcl, MATH, call("round_number", number=2.567, decimal_places=1)) == '{"result": 2.6}'


def test_a_precision_does_not_outlive_its_call(bfcl: BFCL) -> None:
    import decimal

    import mpmath

    before = mpmath.mp.dps, decimal.getcontext().prec
    result(bfcl, MATH, call("logarithm", value=3, base=2, precision=77), call("square_root", number=2, precision=66))
    assert (mpmath.mp.dps, decimal.getcontext().prec) == before


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a": ' + deep(100) + "}",
        '{"a": ' + deep(100_000) + "}",
        '{"a": ' + "9" * 5_000 + "}",
        '{"a": 1e999}',
        '{"a": NaN}',
        '{"a": "\\u0000\\ud800"}',
        '{"a": "\ud800"}',
        '{"\\ud800": 1}',
        '{"": 1}',
        '{"from": 1, "None": 2, "a b": 3}',
        "[]",
        "null",
        '"ls()"',
        "",
        "{",
        "{'a': True}",
        '{"a": true}}',
    ],
    ids=range(17),
)
def test_odd_arguments_are_dealt_with(bfcl: BFCL, arguments: str) -> None:
    odd = Response(tool_calls=(ToolCall("ls", arguments),))
    with bfcl.open(using(bfcl, *FILES)) as episode:
        episode.advance(odd)
        prefix = episode.prefix()
        prefix.exact.encode()
        json.dumps(list(prefix.messages), ensure_ascii=False).encode()
        assert episode.checkpoint() is not None
    assert played(bfcl, one(bfcl, "simple_python_0"), scripted([odd]))[0] is Verdict.FAIL
    assert played(bfcl, one(bfcl, "simple_java_0"), scripted([odd]))[0] is Verdict.FAIL


def test_a_directory_inside_itself_ends_the_episode(bfcl: BFCL) -> None:
    for trap in ("cp", "mv"):
        with bfcl.open(using(bfcl, *FILES)) as episode:
            episode.advance(call("mkdir", dir_name="a"))
            going = episode.advance(call(trap, source="a", destination="a"))
            episode.advance(call("du"))
            assert (episode.verdict().verdict is Verdict.FAIL) is (trap == "cp") is not going


def test_directories_that_share_their_contents_cannot_multiply_without_end(bfcl: BFCL) -> None:
    with bfcl.open(using(bfcl, *FILES)) as episode:
        start, going = time.perf_counter(), episode.advance(call("mkdir", dir_name="d0"))
        for level in range(60):
            if not going:
                break
            steps = [
                ToolCall("cp", json.dumps({"source": f"d{level}", "destination": f"e{level}"})),
                ToolCall("mkdir", json.dumps({"dir_name": f"d{level + 1}"})),
                ToolCall("mv", json.dumps({"source": f"d{level}", "destination": f"d{level + 1}"})),
                ToolCall("mv", json.dumps({"source": f"e{level}", "destination": f"d{level + 1}"})),
                ToolCall("find", "{}"),
                ToolCall("du", "{}"),
            ]
            going = episode.advance(Response(tool_calls=tuple(steps)))
        assert time.perf_counter() - start < 2 * SOON
        assert episode.verdict() == Ruling(Verdict.FAIL, "the simulated file system is too large")


def test_directories_cannot_nest_without_end(bfcl: BFCL) -> None:
    with bfcl.open(using(bfcl, *FILES)) as episode:
        descend = [ToolCall("mkdir", '{"dir_name": "d"}'), ToolCall("cd", '{"folder": "d"}')] * 60
        assert not episode.advance(Response(tool_calls=tuple(descend)))
        assert episode.verdict() == Ruling(Verdict.FAIL, "the simulated directories nest too deep")
        assert episode.checkpoint() is not None


def test_a_response_with_very_many_calls_is_cut(bfcl: BFCL) -> None:
    many = Response(tool_calls=(ToolCall("ls", "{}"),) * 5_000)
    with bfcl.open(using(bfcl, *FILES)) as episode:
        start = time.perf_counter()
        episode.advance(many)
        assert time.perf_counter() - start < SOON
        seen = observations(episode.prefix())
    assert len(seen) == 5_000
    assert seen[-1] == "Error during execution: too many calls in one response"


@pytest.mark.parametrize(
    ("entry", "name", "parameter", "text"),
    [
        ("simple_javascript_2", "processLogs", "x", "[" * 5_000),
        ("simple_javascript_3", None, None, "[" + "[a]," * 12 + "x"),
        ("simple_javascript_3", None, None, "[" + "[a]," * 40 + "x"),
        ("simple_javascript_5", None, None, "{" + "a:b," * 240),
        ("simple_javascript_5", None, None, "{" + ":" * 900),
        ("simple_java_1", None, None, "new HashMap<" * 60 + ">() {" + " " * 99),
        ("simple_java_1", None, None, ("new HashMap<x>() {{" + "\t" * 9) * 11),
        ("simple_java_22", None, None, "new ArrayList<>() {{" + " " * 2_000),
        ("simple_java_22", None, None, "new ArrayList<>() {{" + "add(1);" * 120),
        ("simple_java_24", None, None, "new ArrayList<x>(Arrays.asList(" * 30),
    ],
)
def test_source_text_cannot_send_the_checkers_expressions_round_for_ever(
    bfcl: BFCL, entry: str, name: str | None, parameter: str | None, text: str
) -> None:
    instance = one(bfcl, entry)
    with bfcl.open(instance) as episode:
        answer = bfcl.answer("reference", instance, episode.prefix())
    assert answer is not None
    (right,) = answer.tool_calls
    for key in [parameter] if parameter else json.loads(right.arguments):
        wrong = json.dumps({**json.loads(right.arguments), key: text})
        start = time.perf_counter()
        response = Response(tool_calls=(ToolCall(name or right.name, wrong),))
        verdict, reason = played(bfcl, instance, scripted([response]))
        assert time.perf_counter() - start < SOON
        assert len(reason) <= 400
        assert verdict is Verdict.FAIL or text in reason or verdict is Verdict.PASS


def test_a_reason_is_one_bounded_line(bfcl: BFCL) -> None:
    for text in ("x" * 100_000, "a\nb\0c", "\ud800"):
        wrong = call("calculate_triangle_area", base=text, height=5)
        _, reason = played(bfcl, one(bfcl, "simple_python_0"), scripted([wrong]))
        assert len(reason) <= 400
        assert reason.isprintable()
