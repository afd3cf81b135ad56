from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stepdown.builder.records import Instance, Prefix, Response, Ruling, ToolCall, Verdict
from stepdown.harnesses.bfcl import BFCL
from stepdown.harnesses.bfcl.data import MULTI_TURN
from stepdown.harnesses.bfcl.reference import CLOSING
from tests.bfcl.bfcl_play import call, finish, observations, one, played, reference, scripted

BASE = "multi_turn_base_50"
"""One turn of two calls."""


@pytest.mark.parametrize("category", MULTI_TURN)
def test_the_reference_passes_every_entry_and_is_never_doomed(bfcl: BFCL, category: str) -> None:
    for instance in bfcl.instances({"categories": {category: "all"}}):
        with bfcl.open(instance) as episode:
            player, step = reference(bfcl, instance), 0
            while episode.advance(player(step, episode.prefix())):
                step += 1
                assert episode.doomed() is None, instance.id
            assert episode.verdict() == Ruling(Verdict.PASS), instance.id


def test_every_call_gets_one_observation_with_its_id(bfcl: BFCL) -> None:
    instance = one(bfcl, "multi_turn_base_0")
    with bfcl.open(instance) as episode:
        episode.advance(Response(tool_calls=(ToolCall("pwd", "{}"), ToolCall("ls", "{}"))))
        episode.advance(call("pwd"))
        messages = [message for message in episode.prefix().messages if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in messages] == ["call_1", "call_2", "call_3"]
    assert messages[0]["content"] == '{"current_working_directory": "/workspace"}'


def test_a_turn_ends_with_a_response_without_a_call(bfcl: BFCL) -> None:
    instance = one(bfcl, "multi_turn_miss_param_0")
    for ending in (Response("Which file?"), Response(""), Response(tool_calls=(ToolCall("ls", "{broken"),))):
        with bfcl.open(instance) as episode:
            before = len(episode.prefix().messages)
            episode.advance(ending)
            added = episode.prefix().messages[before:]
        assert [message["role"] for message in added] == ["assistant", "user"]
        assert "tool_calls" not in added[0]


def test_a_wrong_state_dooms_the_episode_when_its_turn_ends(bfcl: BFCL) -> None:
    instance = one(bfcl, "multi_turn_base_0")
    with bfcl.open(instance) as episode:
        episode.advance(call("mkdir", dir_name="elsewhere"))
        assert episode.doomed() is None
        episode.advance(Response(CLOSING))
        doomed = episode.doomed()
    assert doomed is not None
    assert doomed.verdict is Verdict.FAIL
    assert "turn 1: multi_turn:instance_state_mismatch" in doomed.reason
    assert "Different: root" in doomed.reason


def test_a_turn_without_a_needed_call_dooms_the_episode(bfcl: BFCL) -> None:
    with bfcl.open(one(bfcl, BASE)) as episode:
        assert not episode.advance(Response("I would rather not."))
        assert episode.verdict() == Ruling(Verdict.FAIL, "turn 1: no call was made where one is needed")


def test_a_missing_result_is_named(bfcl: BFCL) -> None:
    """Looking something up changes no state; that it was not looked up shows in the results."""
    instance = one(bfcl, "multi_turn_base_11")
    looked_up = bfcl._truths.of(instance).turns[0].results
    with bfcl.open(instance) as episode:
        episode.advance(call("no_such_function"))
        episode.advance(Response(CLOSING))
        doomed = episode.doomed()
    assert doomed is not None
    assert "turn 1: multi_turn:execution_response_mismatch" in doomed.reason
    assert looked_up[0][:20] in doomed.reason


def test_what_can_only_grow_dooms_before_the_turn_ends(bfcl: BFCL) -> None:
    instance = one(bfcl, "multi_turn_base_147")
    player = reference(bfcl, instance)
    with bfcl.open(instance) as episode:
        while "post_tweet" not in str(episode.prefix().messages[-2:]):
            assert episode.advance(player(0, episode.prefix()))
        assert episode.doomed() is None
        episode.advance(call("post_tweet", content="one more"))
        doomed = episode.doomed()
        assert doomed is not None
        assert doomed.reason.startswith("turn 1: TwitterAPI.")
        finish(episode, player)
        assert episode.verdict() == doomed


def test_withheld_functions_are_offered_from_their_turn_on(bfcl: BFCL) -> None:
    for instance in bfcl.instances({"categories": {"multi_turn_miss_func": 20}}):
        missed = {int(turn): names for turn, names in instance.task["entry"]["missed_function"].items()}
        player = reference(bfcl, instance)
        offered: dict[int, list[str]] = {}
        with bfcl.open(instance) as episode:
            going = True
            while going:
                prefix = episode.prefix()
                turn = sum(message["role"] == "user" for message in prefix.messages) - 1
                offered.setdefault(turn, [tool["function"]["name"] for tool in prefix.tools])
                going = episode.advance(player(0, prefix))
        for at, names in missed.items():
            assert not set(names) & set(offered[at - 1])
            assert offered[at] == offered[at - 1] + names
            opening = [message for message in prefix.messages if message["role"] == "user"][at]
            assert opening["content"].startswith("I have updated some more functions")


def test_a_turn_with_too_many_steps_is_force_terminated() -> None:
    bfcl = BFCL(max_steps_per_turn=3)
    instance = one(bfcl, "multi_turn_base_0")
    with bfcl.open(instance) as episode:
        assert finish(episode, lambda step, prefix: call("ls")) == 4
        assert episode.verdict() == Ruling(Verdict.INCOMPLETE, "ran out of steps in turn 1")
        assert episode.doomed() == episode.verdict()


def test_force_termination_in_the_last_turn_is_graded_as_upstream_grades_it() -> None:
    bfcl = BFCL(max_steps_per_turn=3)
    instance = one(bfcl, BASE)
    player = reference(bfcl, instance)

    def never_closing(step: int, prefix: Prefix) -> Response:
        response = player(step, prefix)
        return response if response.tool_calls else call("no_such_function")

    assert played(bfcl, instance, never_closing) == (Verdict.PASS, "")
    wrong = played(bfcl, instance, lambda step, prefix: call("no_such_function"))
    assert wrong == (Verdict.INCOMPLETE, "ran out of steps in turn 1")


def test_the_conversation_is_incomplete_until_its_last_turn_ends(bfcl: BFCL) -> None:
    with bfcl.open(one(bfcl, "multi_turn_base_0")) as episode:
        assert episode.verdict() == Ruling(Verdict.INCOMPLETE, "the conversation is in turn 1")


def test_two_episodes_of_an_entry_share_no_state(bfcl: BFCL) -> None:
    for name in ("multi_turn_base_0", "multi_turn_long_context_0"):
        instance = one(bfcl, name)
        with bfcl.open(instance) as first, bfcl.open(instance) as second:
            first.advance(call("mkdir", dir_name="made"))
            first.advance(call("ls"))
            second.advance(call("ls"))
            assert "made" in observations(first.prefix())[-1]
            assert "made" not in observations(second.prefix())[-1]


def test_a_default_list_is_not_shared_between_episodes(bfcl: BFCL) -> None:
    """Upstream's `post_tweet` keeps its default argument in the tweet, and `mention` extends it, for ever after."""
    instance = using(bfcl, "multi_turn_base", "TwitterAPI")
    with bfcl.open(instance) as episode:
        episode.advance(call("authenticate_twitter", **credentials(instance.task["entry"])))
        episode.advance(call("post_tweet", content="hello"))
        number = json.loads(observations(episode.prefix())[-1])["id"]
        episode.advance(call("mention", tweet_id=number, mentioned_usernames=["@leak"]))
        episode.advance(call("post_tweet", content="again"))
        assert "@leak" not in observations(episode.prefix())[-1]


def using(harness: BFCL, category: str, api: str) -> Instance:
    """The category's first instance with this API."""
    every = harness.instances({"categories": {category: "all"}})
    return next(instance for instance in every if api in instance.task["entry"]["involved_classes"])


def credentials(entry: dict[str, object]) -> dict[str, str]:
    scenario = entry["initial_config"]["TwitterAPI"]  # type: ignore[index]
    return {"username": scenario["username"], "password": scenario["password"]}


def test_a_long_scenarios_own_records_are_not_shared_between_episodes(bfcl: BFCL) -> None:
    """Upstream puts its module's credit cards into every long scenario; charging one would charge all."""
    instance = using(bfcl, "multi_turn_long_context", "TravelAPI")
    with bfcl.open(instance) as first, bfcl.open(instance) as second:
        cards = [episode.checkpoint().simulation.apis["TravelAPI"].credit_card_list for episode in (first, second)]  # type: ignore[attr-defined]
        assert cards[0].keys() == cards[1].keys()
        assert not {id(card) for card in cards[0].values()} & {id(card) for card in cards[1].values()}


def test_threads_do_not_disturb_each_other(bfcl: BFCL) -> None:
    names = [f"multi_turn_{kind}_{n}" for kind in ("base", "long_context") for n in (0, 50, 100, 150)] * 4
    instances = {name: one(bfcl, name) for name in set(names)}

    def play(name: str) -> tuple[str, Verdict, str]:
        with bfcl.open(instances[name]) as episode:
            finish(episode, reference(bfcl, instances[name]))
            return name, episode.verdict().verdict, episode.prefix().exact

    with ThreadPoolExecutor(8) as pool:
        results = set(pool.map(play, names))
    assert len(results) == len(instances)
    assert {verdict for _, verdict, _ in results} == {Verdict.PASS}


def test_the_reference_goes_on_where_another_made_the_earlier_steps(bfcl: BFCL) -> None:
    """Another order, defaults spelled out, a superfluous look: none of it is repeated or missed."""
    instance = one(bfcl, BASE)
    player = reference(bfcl, instance)
    first = player(0, prefix_of(bfcl, BASE))
    responses = [call("no_such_function"), first]

    def mixed(step: int, prefix: Prefix) -> Response:
        return responses.pop(0) if responses else player(step, prefix)

    assert played(bfcl, instance, mixed)[0] is Verdict.PASS


def test_scripted_accepted_calls_in_one_response_pass(bfcl: BFCL) -> None:
    instance = one(bfcl, BASE)
    player = reference(bfcl, instance)
    calls: list[ToolCall] = []
    with bfcl.open(instance) as episode:
        while True:
            response = player(0, episode.prefix())
            calls += response.tool_calls
            if not episode.advance(response):
                break
    assert played(bfcl, instance, scripted([Response(tool_calls=tuple(calls))]))[0] is Verdict.PASS


def prefix_of(harness: BFCL, name: str) -> Prefix:
    with harness.open(one(harness, name)) as episode:
        return episode.prefix()


TRACE = """
import random, sys
sys.path.insert(0, sys.argv[1])
from tests.bfcl.bfcl_play import call, finish, one, reference
from stepdown.harnesses.bfcl import BFCL
from stepdown.builder.records import digest, Ruling
bfcl, seen = BFCL(), []
for instance in list(bfcl.instances({"categories": {"multi_turn_base": "all", "multi_turn_long_context": "all"}}))[::9]:
    with bfcl.open(instance) as episode:
        episode.advance(call("edit_ticket", ticket_id=1, updates={"a": 1, "b": 2, "c": 3, "d": 4}))
        episode.advance(call("create_ticket", title="x"))
        card = {"access_token": "abc123xyz", "card_id": "crd6789", "travel_date": "2026-01-01"}
        episode.advance(call("book_flight", **card, travel_from="SFO", travel_to="LAX", travel_class="x"))
        finish(episode, reference(bfcl, instance))
        ruling = episode.verdict()
        seen.append([episode.prefix().exact, ruling.verdict, ruling.reason])
print(digest(seen))
"""


def test_observations_are_the_same_in_every_process() -> None:
    """Upstream writes sets into some messages, in an order that depends on the process's hash seed."""
    here = Path(__file__).parent

    def run(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC-{seed}"}
        command = [sys.executable, "-c", TRACE, str(here)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, cwd=here.parents[1]
        ).stdout

    assert run("1") == run("2") != ""
