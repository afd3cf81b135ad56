"""The contract suite: every harness that comes with stepdown keeps to it, and it finds what one does wrong."""

from __future__ import annotations

import copy
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from stepdown.builder.errors import BadInput, Technical
from stepdown.builder.records import Instance, Prefix, Response, Ruling, Sample, ToolCall, Verdict
from stepdown.harnesses.bfcl import BFCL
from stepdown.harnesses.mtrag import MTRAG
from stepdown.harnesses.planted import Planted
from stepdown.harnesses.qa import QA
from stepdown.harnesses.qmsum import QMSum
from stepdown.testing import ContractBroken, check_harness
from tests.conftest import ROOT
from tests.judges.infodesk import InfoDesk
from tests.workshop import Bench, Workshop

JUDGED = ROOT / "tests" / "judged" / "data"
QUESTIONS = {"file": str(ROOT / "data" / "questions.jsonl")}


# Those that come with stepdown


@pytest.mark.parametrize(
    "category", ["simple_python", "simple_java", "parallel", "multi_turn_base", "multi_turn_miss_func"]
)
def test_bfcl_keeps_to_the_contract(category: str) -> None:
    check_harness(BFCL, source={"categories": {category: 2}})


def test_bfcl_keeps_to_it_where_no_call_is_apt() -> None:
    check_harness(BFCL, source={"categories": {"irrelevance": 2}}, answers=lambda _: ["I have no tool for that."])


@pytest.mark.parametrize("volatile", [False, True])
@pytest.mark.parametrize("checkpoints", [False, True])
def test_planted_keeps_to_the_contract(volatile: bool, checkpoints: bool) -> None:
    def strong(instance: Instance) -> list[str]:
        return [f"3-0 makes 1 {number}" for number in range(1, len(instance.task["tiers"]) + 1)]

    options = {"volatile": volatile, "checkpoints": checkpoints, "early_verdicts": checkpoints}
    check_harness(Planted, source={"tiers": [[0, 3, 1], [2]]}, options=options, answers=strong)


def test_qa_keeps_to_the_contract() -> None:
    check_harness(QA, source=QUESTIONS, options={"grading": {"by": "contains"}}, most=6)
    check_harness(QA, source=QUESTIONS, options={"grading": {"by": "judge"}})


def test_the_judged_benchmarks_keep_to_the_contract() -> None:
    check_harness(MTRAG, source={"file": str(JUDGED / "mtrag.jsonl")})
    check_harness(QMSum, source={"file": str(JUDGED / "qmsum.jsonl")})
    check_harness(InfoDesk, source={"scenes": ["lighthouse", "compost"]}, answers=lambda _: ["In 1871."])


@pytest.mark.parametrize("options", [{}, {"early": True}, {"volatile": True}, {"checkpoints": False}])
def test_the_tests_own_workshop_keeps_to_it(options: Mapping[str, Any]) -> None:
    check_harness(Workshop, source={"needs": [[0, 9, 1], [2]]}, options=options)


# What it finds

CLOCK = itertools.count(1)


class ShiftyBench(Bench):
    """Wrong in the way that its workshop names."""

    _shop: Shifty

    def __init__(self, shop: Shifty, job: Instance, state: Any = None) -> None:
        fault = shop.fault
        if fault == "forgets its checkpoint" and state is not None:
            state = None
        self._said: list[str] = []
        self._task: dict[str, Any] = job.task  # type: ignore[assignment]
        if fault == "shares a checkpoint's list" and state is not None:
            state, self._said = state
        super().__init__(shop, job, state)
        if fault == "shares its needs":
            self._needs = shop.shared(job)

    def _order(self, piece: int) -> dict[str, Any]:
        order = super()._order(piece)
        match self._shop.fault:
            case "shows a number that runs":
                order["content"] += f" number {next(CLOCK)}"
            case "shows its process":
                order["content"] += f" for {os.getpid()}"
            case "answers a call that was not made" if piece:
                order |= {"role": "tool", "tool_call_id": "abc"}
        return order

    def prefix(self) -> Prefix:
        if self._shop.fault == "shows another prefix each time":
            return super().prefix().extend([{"role": "user", "content": str(next(CLOCK))}])
        return super().prefix()

    def advance(self, response: Response) -> bool:
        match self._shop.fault:
            case "breaks on what it can not read" if not response.content.startswith("made"):
                raise ValueError("no piece")
            case "forgets to go on" if not response.content.startswith("made"):
                return None  # type: ignore[return-value]
            case "blames the apparatus" if not response.content.startswith("made"):
                raise Technical("no piece")
            case "writes into its task":
                self._task["seen"] = True
            case "shares its needs" if not response.content.startswith("made"):
                self._needs.append(0)
        self._said.append(response.content)
        return super().advance(response)

    def doomed(self) -> Ruling | None:
        match self._shop.fault:
            case "is certain of a pass":
                return Ruling(Verdict.PASS)
            case "is certain and errs" if self._spoilt:
                self._spoilt = False
                return Ruling(Verdict.FAIL, "a piece is spoilt")
        return super().doomed()

    def verdict(self) -> Ruling:
        match self._shop.fault:
            case "gives a pair":
                return (Verdict.PASS, "")  # type: ignore[return-value]
            case "spoils every piece":
                return Ruling(Verdict.FAIL, "a piece is spoilt")
            case "gives no reason":
                return Ruling(Verdict.FAIL)
            case "rules technical":
                return Ruling(Verdict.TECHNICAL, "the bench is broken")
            case "grades beyond JSON":
                return Ruling(Verdict.PASS, grading={"pieces": {1, 2}})
            case "shares a checkpoint's list" if len(self._said) > 3:
                return Ruling(Verdict.FAIL, "too many words")
        return super().verdict()

    def checkpoint(self) -> Any:
        taken = super().checkpoint()
        return (taken, list(self._said)) if self._shop.fault == "shares a checkpoint's list" else taken


class Shifty(Workshop):
    """A workshop with one fault."""

    def __init__(self, fault: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.fault = fault
        self._shared: dict[str, list[int]] = {}
        if fault == "has another version each time":
            self.version = str(next(CLOCK))
        if fault == "has a slash in its name":
            self.name = "work/shop"
        if fault == "has no version":
            self.version = ""

    def shared(self, job: Instance) -> list[int]:
        return self._shared.setdefault(job.id, list(job.task["needs"]))

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        for instance in super().instances(source):
            match self.fault:
                case "selects others each time":
                    yield Instance(self.name, f"job-{next(CLOCK)}", instance.task)
                case "has tasks beyond JSON":
                    yield Instance(self.name, instance.id, {**instance.task, "tools": {1}})
                case "names another benchmark":
                    yield Instance("shop", instance.id, instance.task)
                case "numbers its instances":
                    yield Instance(self.name, 0, instance.task)  # type: ignore[arg-type]
                case "selects one twice":
                    yield from (instance, instance)
                case _:
                    yield instance

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Bench]:
        yield ShiftyBench(self, instance, at)


def said(fault: str, **options: Any) -> str:
    """What is said of a workshop with this fault."""
    with pytest.raises(ContractBroken) as error:
        check_harness(Shifty, source={"needs": [[0, 9, 1]]}, options={"fault": fault, **options})
    assert str(error.value).startswith("Shifty breaks the contract of a harness:\n- ")
    return str(error.value)


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("has no version", "`version` is no text"),
        ("has another version each time", "`version` is another each time the harness is made"),
        ("selects others each time", "`instances` selects others, or in another order, when it is asked again"),
        ("selects one twice", "two instances have the id 'job-0'"),
        ("names another benchmark", "instance job-0 is of the benchmark 'shop', not 'workshop'"),
        ("has tasks beyond JSON", "the task of instance 'job-0' is not JSON: Object of type set"),
        ("shows another prefix each time", "job-0: `prefix` is another when it is asked twice"),
        ("shows a number that runs", "job-0: played twice, step 1 shows other text, and the harness has no mask: …"),
        ("shows its process", "job-0: in a fresh interpreter a prefix is another"),
        ("gives a pair", "job-0: `verdict` must return a Ruling, not a tuple"),
        ("gives no reason", "job-0: the ruling is fail without a reason"),
        ("rules technical", "job-0: the ruling is technical: raise Technical instead, where the apparatus failed"),
        (
            "grades beyond JSON",
            "job-0: the grading of `verdict`'s Ruling is not JSON: Object of type set is not JSON serializable",
        ),
        ("is certain of a pass", "`doomed` must not rule pass: only what can no longer pass is certain early"),
        ("is certain and errs", "it passes in the end, though an early ruling said that it could not"),
        ("forgets its checkpoint", "job-0: from the checkpoint after step 1 it does not go on as it did before"),
        ("shares a checkpoint's list", "the checkpoint before step 1 is changed by use: the ruling is another"),
        ("numbers its instances", "an instance's id must be text, not 0"),
        ("answers a call that was not made", "`prefix`: messages.3.tool_call_id: answers no call"),
        ("has a slash in its name", "`name` must not hold a slash: 'work/shop'"),
        ("spoils every piece", "job-0: its own reference does not pass: fail (a piece is spoilt)"),
        (
            "forgets to go on",
            "job-0: plain words at step 1: `advance` must return True or False, not None (and ",
        ),
        ("shares its needs", "beside another episode that is given something else it goes otherwise"),
        ("writes into its task", "job-0: an episode changed the instance's task"),
        ("breaks on what it can not read", "job-0: plain words at step 1: raises ValueError: no piece, where a ruling"),
        (
            "blames the apparatus",
            "raises Technical (no piece), and what a model answers is no failure of the app",
        ),
    ],
)
def test_what_is_wrong_is_said_in_plain_words(fault: str, problem: str) -> None:
    assert problem in said(fault)


class Desk(Bench):
    """A desk with a tool: what it was given is kept in a list, and a call that lacks a part breaks it."""

    def __init__(self, shop: Desks, job: Instance, state: dict[str, Any] | None) -> None:
        self._desks = shop
        start = Prefix.start([{"role": "user", "content": "Stamp `a`, then say done."}], tools=[STAMP])
        self._state = state or {"prefix": start, "stamped": [], "said": ""}

    def prefix(self) -> Prefix:
        found: Prefix = self._state["prefix"]
        return found

    def advance(self, response: Response) -> bool:
        self._state["prefix"] = self._state["prefix"].respond(response)
        for number, call in enumerate(response.tool_calls, self._state["prefix"].calls - len(response.tool_calls) + 1):
            arguments = json.loads(call.arguments)
            self._state["stamped"].append(arguments["form"] if self._desks.trusts else arguments.get("form"))
            told = {"role": "tool", "tool_call_id": f"call_{number}", "content": "stamped"}
            self._state["prefix"] = self._state["prefix"].extend([told])
        return bool(response.tool_calls) and len(self._state["stamped"]) < 5

    def doomed(self) -> Ruling | None:
        return None

    def verdict(self) -> Ruling:
        right = all(form == "a" for form in self._state["stamped"])
        return Ruling(Verdict.PASS) if right else Ruling(Verdict.FAIL, "another form")

    def checkpoint(self) -> Any:
        return dict(self._state) if self._desks.shares else copy.deepcopy(self._state)


STAMP = {
    "type": "function",
    "function": {"name": "stamp", "parameters": {"type": "object", "properties": {"form": {}}}},
}


class Desks(Workshop):
    name, version = "desks", "1"

    def __init__(self, shares: bool = False, trusts: bool = False) -> None:
        super().__init__()
        self.shares, self.trusts, self.version = shares, trusts, "1"

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Bench]:
        yield Desk(self, instance, at and (dict(at) if self.shares else copy.deepcopy(at)))

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        form = "a" if name == "reference" else "b"
        return Response("done") if prefix.calls else Response(tool_calls=(ToolCall("stamp", f'{{"form": "{form}"}}'),))


def test_a_checkpoint_must_not_be_changed_by_use() -> None:
    source = {"needs": [[0], [0]]}
    check_harness(Desks, source=source, models=["hasty"])
    with pytest.raises(ContractBroken) as error:
        check_harness(Desks, source=source, options={"shares": True})
    words = "the checkpoint before step 1 is changed by use: the ruling is another (also job-1)"
    assert str(error.value).splitlines()[1:] == [f"- job-0: {words}"]


def test_a_script_s_own_calls_are_tried_with_a_part_left_out_and_one_cause_is_said_once() -> None:
    with pytest.raises(ContractBroken) as error:
        check_harness(Desks, source={"needs": [[0]]}, options={"trusts": True})
    (line,) = str(error.value).splitlines()[1:]
    assert "raises KeyError: 'form', where a ruling is due (and " in line


def test_a_class_of_another_kind_is_told_so() -> None:
    with pytest.raises(ContractBroken, match="it is no class made of"):
        check_harness(dict, source={})  # type: ignore[arg-type]


def test_a_mask_that_covers_less_than_what_differs_is_shown_what_it_left() -> None:
    assert "its mask does not cover it: …" in said("shows a number that runs", volatile=True)


def test_answers_must_come_to_the_end_of_the_episode() -> None:
    for answers, problem in {
        ("made 1",): "it has not halted after the last of 1 answers",
        ("made 3", "made 3"): "it halts at step 1, and 2 answers were to be played",
        (): "there are no answers to play: pass `answers`, or give it a pseudo-model `reference`",
    }.items():
        with pytest.raises(ContractBroken, match=problem):
            check_harness(Workshop, source={"needs": [[0, 9, 1]]}, answers=lambda _, given=answers: given)  # type: ignore[misc]


def test_a_source_without_any_instance_says_so() -> None:
    with pytest.raises(ContractBroken, match="its source selects no instance that could be played"):
        check_harness(Workshop, source={"needs": []})


def test_a_wrong_option_is_the_caller_s() -> None:
    with pytest.raises(BadInput, match="unknown key"):
        check_harness(QA, source=QUESTIONS, options={"gradng": {}})
