"""What holds for any mix of right, wrong and hostile responses."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepdown.builder.records import Instance, Prefix, Response, ToolCall, Verdict
from stepdown.harnesses.base import Episode
from stepdown.harnesses.bfcl import BFCL
from tests.bfcl.bfcl_play import one

BFCL_ = BFCL()
ENTRIES = [
    "multi_turn_base_11",
    "multi_turn_base_100",
    "multi_turn_base_45",
    "multi_turn_base_147",
    "multi_turn_miss_func_50",
    "multi_turn_miss_func_13",
    "multi_turn_miss_param_182",
    "multi_turn_long_context_177",
    "multi_turn_long_context_46",
    "parallel_3",
    "simple_java_22",
    "irrelevance_1",
]
RANDOM_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from([".", "..", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@cache
def entry(name: str) -> Instance:
    return one(BFCL_, name)


@st.composite
def plans(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """An entry, and what is done at each step: the reference's answer, the turn's end, or a call of any sort."""
    name = draw(st.sampled_from(ENTRIES))
    with BFCL_.open(entry(name)) as episode:
        tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in episode.prefix().tools}
    move = st.one_of(
        st.just("reference"),
        st.just("reference"),
        st.just("reference"),
        st.just("close"),
        st.lists(fuzzed_calls(tools), min_size=1, max_size=3).map(tuple),
    )
    return name, draw(st.lists(move, min_size=1, max_size=14))


@st.composite
def fuzzed_calls(draw: st.DrawFn, tools: dict[str, Any]) -> ToolCall:
    name = draw(st.sampled_from(sorted(tools)))
    keys = draw(st.lists(st.sampled_from(sorted(tools[name]["properties"]) or ["x"]), unique=True))
    arguments = json.dumps({key: draw(RANDOM_VALUES) for key in keys})
    return ToolCall(draw(st.just(name) | st.text(max_size=12)), draw(st.just(arguments) | st.text(max_size=12)))


def respond(name: str, move: Any, prefix: Prefix) -> Response:
    if move == "reference":
        return BFCL_.answer("reference", entry(name), prefix) or Response("No.")
    return Response("Done.") if move == "close" else Response(tool_calls=move)


def trace(episode: Episode, responses: list[Response]) -> list[Any]:
    """All that can be seen of an episode as the responses are made."""
    seen: list[Any] = [episode.prefix().exact, episode.prefix().canonical]
    for response in responses:
        going = episode.advance(response)
        seen.append((going, episode.prefix().exact, episode.doomed(), episode.verdict()))
        if not going:
            break
    return seen


def made(name: str, moves: list[Any]) -> list[Response]:
    """The responses that a plan comes to."""
    responses = []
    with BFCL_.open(entry(name)) as episode:
        for move in moves:
            responses.append(respond(name, move, episode.prefix()))
            if not episode.advance(responses[-1]):
                break
    return responses


quietly = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@quietly
@given(plans(), st.data())
def test_a_checkpoint_goes_on_as_a_full_replay_does_and_is_not_changed_by_use(
    plan: tuple[str, list[Any]], data: st.DataObject
) -> None:
    name, moves = plan
    responses = made(name, moves)
    cut = data.draw(st.integers(0, len(responses) - 1))
    with BFCL_.open(entry(name)) as episode:
        trace(episode, responses[:cut])
        checkpoint = episode.checkpoint()
        expected = trace(episode, responses[cut:])

    def resumed() -> list[Any]:
        with BFCL_.open(entry(name), checkpoint) as again:
            return trace(again, responses[cut:])

    with ThreadPoolExecutor(1) as other:
        assert [resumed(), other.submit(resumed).result(), resumed()] == [expected] * 3
    with BFCL_.open(entry(name)) as episode:
        assert trace(episode, responses)[-1] == expected[-1]


@quietly
@given(plans())
def test_whatever_is_doomed_never_passes(plan: tuple[str, list[Any]]) -> None:
    """Played on by the plan and then by the reference, which does all it can to pass."""
    name, moves = plan
    doomed, going, step = None, True, 0
    with BFCL_.open(entry(name)) as episode:
        while going:
            move = moves[step] if step < len(moves) else "reference"
            going = episode.advance(respond(name, move, episode.prefix()))
            step += 1
            if doomed is not None:
                assert episode.doomed() == doomed
            doomed = episode.doomed()
        verdict = episode.verdict()
    assert (doomed is None) is (verdict.verdict is Verdict.PASS)
    assert doomed is None or doomed == verdict


@quietly
@given(plans())
def test_early_doom_is_what_the_official_checks_find_at_the_end(plan: tuple[str, list[Any]]) -> None:
    """With early recognition switched off, an episode that it would have stopped is failed by the checks alone."""
    name, moves = plan
    moves = [*moves, *["reference"] * 30]
    verdicts = []
    for early in (True, False):
        going = True
        with BFCL_.open(entry(name)) as episode:
            for move in moves:
                if not going:
                    break
                going = episode.advance(respond(name, move, episode.prefix()))
                if not early and (found := episode.doomed()) and "no further call can undo" in found.reason:
                    forget(episode)
            if going:
                return
            verdicts.append(episode.verdict().verdict)
    assert (verdicts[0] is Verdict.PASS) is (verdicts[1] is Verdict.PASS)


def forget(episode: Any) -> None:
    from dataclasses import replace

    episode._at = replace(episode._at, ruling=None)
