"""What holds a harness to its contract before any episode is opened, and the rule that spares it non-answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.config.protocol import SeedsConfig, WorkloadConfig
from stepdown.builder.engine.replay import no_answer
from stepdown.builder.engine.workloads import load_harness
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Instance, Prefix, Response, Ruling, Stop, ToolCall, Verdict
from stepdown.harnesses.base import Episode, Harness


class Once(Episode):
    """Halts at the first answer, which passes."""

    def prefix(self) -> Prefix:
        return Prefix.start([{"role": "user", "content": "?"}])

    def advance(self, response: Response) -> bool:
        return False

    def verdict(self) -> Ruling:
        return Ruling(Verdict.PASS)


class Least(Harness):
    """No more than must be there."""

    name, version = "least", "1"

    def instances(self, source: Any) -> Iterator[Instance]:
        yield Instance(self.name, "only", {})

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Episode]:
        yield Once()


class Unfinished(Least):
    """Its `__init__` means `needs_judge`."""

    def __init__(self) -> None:
        self.need_judge = True


class Nameless(Least):
    name = None  # type: ignore[assignment]


class Bare(Harness):
    name, version = "bare", "1"


class Old:
    name, version, multi_step, mask = "old", "1", False, None

    def instances(self, source: Any) -> Iterator[Instance]:
        yield Instance(self.name, "only", {})

    def open(self, instance: Instance, at: Any = None) -> Any:
        raise NotImplementedError


def load(name: str) -> Harness:
    return load_harness(WorkloadConfig(harness=name, source={}, seeds=SeedsConfig(source="collect")), "harness")


def test_what_a_workload_does_not_say_has_a_default() -> None:
    harness = Least()
    instance = next(iter(harness.instances({})))
    assert (harness.multi_step, harness.mask, harness.needs_judge, harness.early_verdicts) == (True, None, False, None)
    assert not list(harness.needs({}))
    with harness.open(instance) as episode:
        assert harness.answer("reference", instance, episode.prefix(), None) is None  # type: ignore[arg-type]
        assert (episode.doomed(), episode.checkpoint(), episode.case()) == (None, None, None)
        assert episode.seed_verdict() == Ruling(Verdict.PASS)


@pytest.mark.parametrize(
    ("contract", "name", "meant"),
    [
        (Episode, "verdicts", "verdict"),
        (Episode, "check_point", "checkpoint"),
        (Episode, "seed_verdit", "seed_verdict"),
        (Harness, "early_verdict", "early_verdicts"),
        (Harness, "needsjudge", "needs_judge"),
        (Harness, "keepin", "keep_in"),
        (Harness, "answers", "answer"),
    ],
)
def test_a_misspelt_override_is_refused_where_its_class_is_made(contract: type, name: str, meant: str) -> None:
    with pytest.raises(BadInput, match=f"^Mine: `{name}` is nearly `{meant}` of the contract") as error:
        type("Mine", (contract,), {name: lambda self: None})
    assert "\n" not in str(error.value)


def test_names_of_one_s_own_are_free() -> None:
    type("Mine", (Episode,), {"tools": (), "step": 1, "_verdicts": {}, "graded": None})
    type("Mine", (Harness,), {"corpus": None, "Options": object, "_answers": {}, "sandbox": None})


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("tests.test_contract:Old", "harness: 'tests.test_contract:Old' is no workload: it is no class made of"),
        ("tests.test_contract:load", "is no workload: it is no class made of `stepdown.Harness`"),
        ("tests.test_contract:Bare", "is no workload yet: it has no `instances`, `open`"),
        ("tests.test_contract:Unfinished", "harness: Unfinished: `need_judge` is nearly `needs_judge`"),
        ("tests.test_contract:Nameless", "Nameless has no `name`, a text"),
        ("misspelt_workload:Mine", "can not be loaded: Mine: `verdicts` is nearly `verdict` of the contract"),
    ],
)
def test_what_is_no_harness_is_refused_in_one_line_that_says_why(
    name: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "misspelt_workload.py").write_text(
        "from stepdown.harnesses.base import Episode\nclass Mine(Episode):\n    def verdicts(self): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput) as error:
        load(name)
    assert problem in str(error.value)
    assert str(error.value).startswith("harness: ")


@pytest.mark.parametrize(
    ("response", "ruling"),
    [
        (Response("I will not.", stop=Stop.REFUSED), Ruling(Verdict.REFUSED, "the model refused")),
        (Response(stop=Stop.OVERFLOW), Ruling(Verdict.FAIL, "the prefix does not fit the model's context")),
        (Response(" \n"), Ruling(Verdict.FAIL, "an empty answer")),
        (Response("It is Mars, whi", stop=Stop.LENGTH), None),
        (Response("", (ToolCall("f", "{}"),)), None),
        (Response("f({", malformed=True), None),
    ],
)
def test_what_is_no_answer_is_ruled_on_before_any_episode(response: Response, ruling: Ruling | None) -> None:
    assert no_answer(response) == ruling
