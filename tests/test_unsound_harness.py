"""A harness that returns what its contract does not allow: told plainly, never a label from it, and others go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stepdown.builder.records import Instance, Prefix, Response, Ruling, Sample, ToolCall, Verdict
from stepdown.testing import ContractBroken, check_harness
from tests.conftest import Shop
from tests.provider import Provider
from tests.workshop import ABILITIES, CLOCK, Bench, Workshop, config

FAULTS: dict[str, tuple[str, Any, str]] = {
    "none": ("advance", None, "`advance` must return True or False, not None"),
    "text": ("advance", "no", "`advance` must return True or False, not 'no'"),
    "pass early": (
        "doomed",
        Ruling(Verdict.PASS),
        "`doomed` must not rule pass: only what can no longer pass is certain early",
    ),
    "false early": ("doomed", False, "`doomed` must return a Ruling or None, not False"),
    "bool": ("verdict", True, "`verdict` must return a Ruling, not True"),
    "enum": ("verdict", Verdict.PASS, "`verdict` must return a Ruling, not Verdict.PASS"),
    "tuple": ("verdict", (Verdict.PASS, ""), "`verdict` must return a Ruling, not a tuple"),
    "class": ("verdict", Ruling, "`verdict` must return a Ruling, not the class Ruling"),
    "text verdict": (
        "verdict",
        Ruling("pass"),  # type: ignore[arg-type]
        "the verdict of `verdict`'s Ruling must be a Verdict, not 'pass'",
    ),
    "no reason": (
        "verdict",
        Ruling(Verdict.FAIL, None),  # type: ignore[arg-type]
        "the reason of `verdict`'s Ruling must be text, not None",
    ),
    "set": (
        "verdict",
        Ruling(Verdict.PASS, grading={"a": {1}}),
        "the grading of `verdict`'s Ruling is not JSON: Object of type set is not JSON serializable",
    ),
    "nan": (
        "verdict",
        Ruling(Verdict.PASS, grading={"a": float("nan")}),
        "the grading of `verdict`'s Ruling is not JSON: Out of range float values are not JSON compliant",
    ),
    "list prefix": ("prefix", [], "`prefix` must return a Prefix, not a list"),
    "case": ("case", "judge it", "`case` must return a JudgeCase or None, not 'judge it'"),
    "generator": (
        "open",
        None,
        "`open` must give its episode by `yield`, with `@contextmanager` above it, not a generator",
    ),
    "episode": (
        "open",
        "plain",
        "`open` must give its episode by `yield`, with `@contextmanager` above it, not a Bench",
    ),
    "nothing": ("open", "nothing", "`open` must give an Episode, not None, which has no `prefix`"),
    "text answer": ("answer", "made 1", "`answer` must return a Response or None, not 'made 1'"),
    "dict arguments": (
        "answer",
        Response(tool_calls=(ToolCall("f", {}),)),  # type: ignore[arg-type]
        "the arguments of `answer`'s ToolCall must be the text of one JSON object, not a dict",
    ),
}


class Faulty(Workshop):
    """Wrong in one way, in the first job only."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.method, self.given, _ = FAULTS[fault]

    def open(self, instance: Instance, at: Any = None) -> Any:
        if self.method == "open" and instance.id == "job-0":
            bench = Bench(self, instance, at)
            given = {None: iter, "plain": lambda one: one[0], "nothing": _given_none}[self.given]
            return given([bench]) if self.given else (one for one in [bench])
        return self._opened(instance, at)

    @contextmanager
    def _opened(self, instance: Instance, at: Any) -> Iterator[Bench]:
        bench = Bench(self, instance, at)
        if instance.id == "job-0" and self.method not in ("open", "answer"):
            setattr(bench, self.method, lambda *_: self.given)
        yield bench

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Any:
        if self.method == "answer" and instance.id == "job-0":
            return self.given
        return super().answer(name, instance, prefix, sample)


@contextmanager
def _given_none(_: list[Bench]) -> Iterator[None]:
    yield None


def settings(fault: str) -> dict[str, Any]:
    made = config("http://127.0.0.1:9", [[0, 1], [0, 1]])
    for tier, name in zip(made["protocol"]["pool"]["tiers"], ("skill-0", "skill-1", "reference"), strict=True):
        tier["models"] = [{"name": name, "model": f"workload/{name}"}]
    entry = {"harness": "tests.test_unsound_harness:Faulty", "options": {"fault": fault}}
    made["protocol"]["workloads"][0] |= entry | {"seeds": {"source": "reference"}}
    return made


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_says_which_method_and_goes_on_with_other_instances(shop: Shop, fault: str) -> None:
    built = shop.build(settings(fault))
    assert built.code == 3
    assert FAULTS[fault][2] in built.out + built.err
    assert [row["id"] for row in shop.read("question_bank.jsonl")] == ["workshop/job-1/1", "workshop/job-1/2"]
    assert shop.resume().code == 3
    assert shop.resume("--drop-blocked").code == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_the_suite_says_the_same(fault: str) -> None:
    with pytest.raises(ContractBroken) as error:
        check_harness(Faulty, source={"needs": [[0, 1], [0, 1]]}, options={"fault": fault})
    assert str(error.value).splitlines()[1:] == [f"- job-0: {FAULTS[fault][2]}"]


class Misshapen(Workshop):
    """What its prefixes show is wrong in one way from a step on; its model's calls are counted by `provider`."""

    def __init__(self, wrong: str, step: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.wrong, self.step = wrong, step

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Bench]:
        with super().open(instance, at) as bench:
            plain = bench.prefix
            bench.prefix = lambda: self.misshapen(plain())  # type: ignore[method-assign]
            yield bench

    def misshapen(self, prefix: Prefix) -> Prefix:
        if sum(message["role"] == "assistant" for message in prefix.messages) < self.step - 1:
            return prefix
        messages, tools = MISSHAPEN[self.wrong][:2]
        return Prefix.start([*prefix.messages, *messages], tools)


MISSHAPEN: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], str]] = {
    "a tool that is no function": ([], [{"type": "search"}], "`prefix`: tools.0: must be a function with a name"),
    "a tool without a name": (
        [],
        [{"type": "function", "function": {}}],
        "`prefix`: tools.0: must be a function with a",
    ),
    "an answer to no call": (
        [{"role": "tool", "tool_call_id": "call_7", "content": "x"}],
        [],
        ".tool_call_id: answers no call that was made before",
    ),
    "an answer without an id": (
        [{"role": "tool", "content": "x"}],
        [],
        ".tool_call_id: answers no call that was made before",
    ),
    "an unknown role": ([{"role": "critic", "content": "x"}], [], ".role: must be one of assistant, developer, system"),
    "content of no kind": ([{"role": "user", "content": 7}], [], ".content: must be text or a list of parts"),
}


@pytest.mark.parametrize("wrong", MISSHAPEN)
def test_what_no_release_could_hold_is_blocked_before_anything_is_paid_for(shop: Shop, wrong: str) -> None:
    with Provider(ABILITIES) as provider:
        made = config(provider.url, [[0, 1]])
        entry = {"harness": "tests.test_unsound_harness:Misshapen", "options": {"wrong": wrong}}
        made["protocol"]["workloads"][0] |= entry
        built = shop.build(made)
        assert (built.code, provider.count()) == (3, 0), built.err
        assert MISSHAPEN[wrong][2] in built.out + built.err
    with pytest.raises(ContractBroken) as error:
        check_harness(Misshapen, source={"needs": [[0, 1]]}, options={"wrong": wrong})
    assert MISSHAPEN[wrong][2] in str(error.value)


def test_what_is_misshapen_later_is_blocked_at_that_step(shop: Shop) -> None:
    with Provider(ABILITIES) as provider:
        made = config(provider.url, [[0, 1, 0]])
        entry = {"harness": "tests.test_unsound_harness:Misshapen"}
        made["protocol"]["workloads"][0] |= entry | {"options": {"wrong": "an unknown role", "step": 2}}
        built = shop.build(made)
        assert (built.code, provider.count()) == (3, 1), built.err


def without_clock(text: str) -> str:
    return CLOCK.sub("clock", text)


class Unmasked(Bench):
    def _start(self) -> Prefix:
        return Prefix.start([{"role": "system", "content": "Make every piece."}, self._order(0)])


class Plain(Workshop):
    """Its mask is a plain function in the class, and no prefix is made with it."""

    mask: Any = without_clock

    def __init__(self) -> None:
        super().__init__(volatile=True)
        del self.mask  # that of the class counts

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Bench]:
        yield Unmasked(self, instance, at)


def test_a_mask_is_needed_once_and_may_be_a_plain_function(shop: Shop) -> None:
    made = settings("none")
    made["protocol"]["workloads"][0] |= {"harness": "tests.test_unsound_harness:Plain", "options": {}}
    mask: Any = Plain().mask
    assert mask("clock 5") == "clock"
    assert shop.build(made).code == 0
    assert shop.labels() == [["low", "mid"], ["low", "mid"]]
    check_harness(Plain, source={"needs": [[0, 1]]})
