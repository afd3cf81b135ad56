"""A workload's pseudo-models: that one has no answer says nothing about its tier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from stepdown.builder.records import Instance, Prefix, Response, Sample
from tests.conftest import Shop, stepdown
from tests.provider import Provider
from tests.workshop import Workshop, config

Start = Callable[..., Provider]


class Choosy(Workshop):
    """`hand` answers for the second job only, `clerk` once in a job; `reference` never for the third."""

    name = "choosy"

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        known = {
            "hand": instance.id == "job-1",
            "clerk": len(prefix.messages) == 2,
            "reference": instance.id != "job-2",
            "novice": True,
        }
        skill = "reference" if name == "reference" else "skill-0"
        return super().answer(skill, instance, prefix, sample) if known.get(name) else None


class Speechless(Workshop):
    name = "speechless"
    answer = Workshop.__base__.answer  # type: ignore[union-attr]


def settings(low: str, harness: str = "Choosy", seeds: str = "reference", strong: str = "reference") -> dict[str, Any]:
    made = config("http://127.0.0.1:9", [[0, 1], [0, 0], [0, 1]])
    for tier, name in zip(made["protocol"]["pool"]["tiers"], (low, "novice", strong), strict=True):
        tier["models"] = [{"name": name, "model": f"workload/{name}"}]
    made["protocol"]["workloads"][0] |= {"harness": f"tests.test_pseudo_models:{harness}", "seeds": {"source": seeds}}
    return made


def test_a_name_that_answers_for_no_instance_is_refused_before_anything_is_done(shop: Shop) -> None:
    problem = "protocol.pool.tiers.0.models.0.model: the workload 'choosy' has no pseudo-model 'workload/hnad'"
    built = shop.build(settings("hnad"))
    assert (built.code, built.err.splitlines()[-1]) == (2, f"stepdown: {problem} for any instance")
    looked = stepdown("doctor", str(shop.write(settings("hnad"))))
    assert looked.code == 2
    assert f"none workload tests.test_pseudo_models:Choosy: {problem} for any instance\n" in looked.out
    assert shop.build(settings("novice-", strong="reference")).code == 2
    assert shop.build(settings("hand")).code == 3, "the folder is free for the mended config"


def test_a_strong_pseudo_model_must_be_one_too(shop: Shop) -> None:
    refused = shop.build(settings("hand", seeds="collect", strong="mater"))
    assert (refused.code, "tiers.2.models.0.model" in refused.err) == (2, True)


def test_a_workload_without_pseudo_models_is_told_so_and_opens_no_episode(shop: Shop) -> None:
    refused = shop.build(settings("hand", "Speechless"))
    assert refused.code == 2
    assert "'workload/hand' for any instance: it has no `answer`" in refused.err


@pytest.mark.parametrize("low", ["hand", "clerk"])
def test_no_answer_blocks_the_instance_and_raises_no_label(shop: Shop, low: str) -> None:
    result = shop.build(settings(low))
    assert result.code == 3
    assert f"the workload has no {low} answer for this instance" in result.err + result.out
    labels = {row["instance_id"] for row in shop.read("question_bank.jsonl")}
    assert labels == {"job-1"} if low == "hand" else not labels


def test_an_instance_without_a_reference_answer_is_dropped(shop: Shop) -> None:
    shop.build(settings("hand"))
    reason = "no seed passed: the workload has no reference answer for this instance"
    assert shop.manifest()["dropped"] == {reason: 1} or reason in str(shop.manifest())


class Odd(Workshop):
    """What no release could hold, in the way that its option names."""

    def __init__(self, odd: str) -> None:
        super().__init__()
        self.odd = odd
        if odd == "name":
            self.name = "work/shop"

    def instances(self, source: Mapping[str, Any]) -> Iterator[Any]:
        for one in super().instances(source):
            yield {
                "name": one,
                "dict": {"id": one.id},
                "id": Instance(self.name, 7, one.task),  # type: ignore[arg-type]
                "task": Instance(self.name, one.id, {**one.task, "tools": {1}}),
                "group": Instance(self.name, one.id, one.task, group=None),  # type: ignore[arg-type]
            }[self.odd]


@pytest.mark.parametrize(
    ("odd", "problem"),
    [
        ("name", "protocol.workloads.0.harness: the workload's name must not hold a slash: 'work/shop'"),
        ("dict", "protocol.workloads.0.source: `instances` must yield Instances, not a dict"),
        ("id", "protocol.workloads.0.source: an instance's id must be text, not 7"),
        (
            "task",
            "protocol.workloads.0.source: the task of instance 'job-0' is not JSON: Object of type set is not JSON",
        ),
        ("group", "protocol.workloads.0.source: the group of instance 'job-0' must be text, not None"),
    ],
)
def test_what_no_release_could_hold_is_refused_before_anything_is_paid(
    shop: Shop, provider: Start, odd: str, problem: str
) -> None:
    one = provider()
    made = config(one.url, [[0]], options={"odd": odd})
    made["protocol"]["workloads"][0]["harness"] = "tests.test_pseudo_models:Odd"
    refused = shop.build(made)
    assert (refused.code, one.count()) == (2, 0)
    assert refused.err.splitlines()[-1].startswith(f"stepdown: {problem}")
