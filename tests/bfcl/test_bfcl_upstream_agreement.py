"""Our multi-turn episodes against upstream's own executor and checker, on trusted calls: accepted ones, mutated."""

from __future__ import annotations

import json
import random
from itertools import count
from typing import Any

import pytest
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call

from stepdown.builder.records import Instance, Response, ToolCall, Verdict
from stepdown.harnesses.bfcl import BFCL
from stepdown.harnesses.bfcl.data import MULTI_TURN
from stepdown.harnesses.bfcl.decoding import DecodedCall
from stepdown.harnesses.bfcl.simulation import _sorted_sets
from tests.bfcl.bfcl_play import observations

Turns = list[list[DecodedCall]]
_names = count()


def accepted(harness: BFCL, instance: Instance) -> Turns:
    return [list(turn.calls) for turn in harness._truths.of(instance).turns]


def mutated(turns: Turns, rng: random.Random) -> Turns:
    """The turns with up to two of: a call dropped, repeated, moved, changed, or added where none belongs."""
    turns = [list(turn) for turn in turns]
    for _ in range(rng.randint(0, 2)):
        filled = [index for index, turn in enumerate(turns) if turn]
        if not filled:
            break
        at = rng.choice(filled)
        index = rng.randrange(len(turns[at]))
        kind = rng.choice(["drop", "repeat", "swap", "change", "later", "earlier", "wrong name", "wrong key"])
        call = turns[at][index]
        if kind == "drop":
            del turns[at][index]
        elif kind == "repeat":
            turns[at].insert(index, call)
        elif kind == "swap":
            rng.shuffle(turns[at])
        elif kind == "change" and call.arguments:
            key = rng.choice(list(call.arguments))
            turns[at][index] = DecodedCall(call.name, {**call.arguments, key: changed(call.arguments[key])})
        elif kind in ("later", "earlier"):
            other = min(max(at + (1 if kind == "later" else -1), 0), len(turns) - 1)
            turns[other].append(turns[at].pop(index))
        elif kind == "wrong name":
            turns[at].insert(index, DecodedCall("no_such_function", {}))
        elif kind == "wrong key":
            turns[at].insert(index, DecodedCall(call.name, {**call.arguments, "surplus": 1}))
    return turns


def changed(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value}x" if isinstance(value, str) else [*value, "x"] if isinstance(value, list) else {}


def ours(harness: BFCL, instance: Instance, turns: Turns) -> tuple[bool, list[str]]:
    with harness.open(instance) as episode:
        for turn in turns:
            for call in turn:
                episode.advance(Response(tool_calls=(ToolCall(call.name, json.dumps(call.arguments)),)))
            episode.advance(Response("Done."))
        return episode.verdict().verdict is Verdict.PASS, observations(episode.prefix())


def theirs(instance: Instance, turns: Turns) -> tuple[bool, list[str]]:
    entry, accepted = instance.task["entry"], instance.task["accepted"]
    written = [
        [[f"{call.name}({', '.join(f'{k}={v!r}' for k, v in call.arguments.items())})"] for call in turn]
        for turn in turns
    ]
    result = multi_turn_checker(written, accepted, entry, instance.task["category"], f"checked{next(_names)}")
    results, _ = execute_multi_turn_func_call(
        [text for turn in written for step in turn for text in step],
        entry["initial_config"],
        entry["involved_classes"],
        f"executed{next(_names)}",
        entry["id"],
        long_context="long_context" in entry["id"],
    )
    return bool(result["valid"]), results


@pytest.mark.parametrize("category", MULTI_TURN)
def test_verdicts_and_observations_are_upstreams(bfcl: BFCL, category: str) -> None:
    rng, verdicts = random.Random(category), []
    for instance in list(bfcl.instances({"categories": {category: "all"}}))[::5]:
        for _ in range(4):
            turns = mutated(accepted(bfcl, instance), rng)
            if max(map(len, turns)) > 20:
                continue
            mine, seen = ours(bfcl, instance, turns)
            official, shown = theirs(instance, turns)
            assert mine == official, (instance.id, turns)
            assert seen == [_sorted_sets(text) for text in shown], (instance.id, turns)
            verdicts.append(mine)
    assert {True, False} == set(verdicts)
