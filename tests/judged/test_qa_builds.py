"""Questions of one's own labelled end to end, by models that can add numbers up to some size."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Shop, stepdown
from tests.judged.judged_files import written
from tests.provider import Answer, Provider, Request

SUMS = [(2, 3), (20, 30), (200, 300), (4, 4)]
ROWS = [
    {"id": f"sum-{a}-{b}", "question": f"What is {a} plus {b}?", "answers": [a + b], "group": f"by {a // b}"}
    for a, b in SUMS
]


def adder(largest: int) -> Callable[[Request], Answer]:
    """A model that adds numbers up to a size, and guesses beyond it."""

    def ability(request: Request) -> Answer:
        terms = [int(term) for term in re.findall(r"\d+", request["messages"][-1]["content"])]
        return Answer(f"That makes {sum(terms) if max(terms) <= largest else 7}.")

    return ability


ABILITIES = {"child": adder(9), "pupil": adder(99), "teacher": adder(9999)}


def config(url: str, file: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    tiers = [("low", "child"), ("mid", "pupil"), ("high", "teacher")]
    return {
        "protocol": {
            "pool": {
                "version": "school-1",
                "tiers": [
                    {"name": tier, "id": number, "models": [{"name": model, "model": f"openai/{model}"}]}
                    for number, (tier, model) in enumerate(tiers)
                ],
            },
            "workloads": [
                {
                    "harness": "qa",
                    "source": {"file": file},
                    "options": dict(options or {"grading": {"by": "numeric"}}),
                    "seeds": {"source": "collect"},
                }
            ],
        },
        "operation": {
            "workers": 2,
            "endpoints": {"default": {"api_base": url, "timeout": 5}},
            "retries": {"attempts": 2, "first_wait": 0, "longest_wait": 0},
        },
    }


@pytest.fixture
def school(provider: Callable[..., Provider]) -> Provider:
    return provider(ABILITIES)


def test_the_label_is_the_cheapest_model_that_can_add_so_far(shop: Shop, school: Provider) -> None:
    result = shop.build(config(school.url, written(shop.folder, ROWS)))
    assert result.code == 0
    assert shop.labels() == [["low"], ["mid"], ["high"], ["low"]]
    assert [row["group"] for row in shop.read("evidence.jsonl")] == ["by 0", "by 0", "by 0", "by 1"]
    trial = shop.read("evidence.jsonl")[1]["trials"][0]
    assert (trial["verdict"], trial["grading"]) == ("fail", {"by": "numeric", "numbers": ["7"]})
    assert school.count() == 4 + 4 + 2


def test_a_run_keeps_its_tasks_and_needs_no_path(shop: Shop, school: Provider) -> None:
    file = Path(written(shop.folder, ROWS))
    settings = config(school.url, "tasks.jsonl")
    settings["operation"]["budget"] = {"calls": 3}
    assert shop.build(settings).code == 3
    file.unlink()
    settings["operation"]["budget"] = {}
    assert shop.resume().code == 3, "the budget still holds"
    file.write_text("{}\n")
    refused = stepdown("build", str(shop.write(settings)), "--run", str(shop.run))
    assert refused.code == 2
    assert "source_sha256" in refused.err
    written(shop.folder, ROWS)
    assert shop.resume("--config", str(shop.write(settings))).code == 0
    assert shop.labels() == [["low"], ["mid"], ["high"], ["low"]]
    assert school.repeated() == []
    workload = shop.manifest()["protocol"]["workloads"][0]
    assert workload["source"] == {"file": "tasks.jsonl"}, "where it lay is nobody's business"


def test_the_bytes_do_not_depend_on_where_the_file_lay(shop: Shop, school: Provider, tmp_path: Path) -> None:
    assert shop.build(config(school.url, written(shop.folder, ROWS))).code == 0
    elsewhere = Shop(tmp_path / "elsewhere")
    (elsewhere.folder / "deep").mkdir(parents=True)
    written(elsewhere.folder / "deep", ROWS)
    assert elsewhere.build(config(school.url, "deep/tasks.jsonl")).code == 0
    assert elsewhere.files() == shop.files()


def test_a_pattern_that_takes_for_ever_blocks_its_instance_and_labels_nothing(shop: Shop, school: Provider) -> None:
    def rambler(request: Request) -> Answer:
        return Answer("a" * 5_000 + "b")

    school._abilities["child"] = rambler
    rows = [{"id": "x", "question": "What is 2 plus 3?", "answers": [r"^(a|aa)+$", r"\b5\b"]}]
    result = shop.build(config(school.url, written(shop.folder, rows), {"grading": {"by": "regex"}}))
    assert result.code == 3
    assert shop.read("question_bank.jsonl") == []
    assert "a pattern takes more than 2 s on an answer" in result.out + result.err
    assert "x (line 1)" in result.out + result.err


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"file": "missing.jsonl"}, "protocol.workloads.0.source.file: 'missing.jsonl': No such file or directory"),
        ({"take": 9}, "protocol.workloads.0.source: source.take: there are only 4"),
        ({"takes": 9}, "protocol.workloads.0.source: source.takes: unknown key"),
        ({"file": 3}, "protocol.workloads.0.source: source.file: "),
    ],
)
def test_a_wrong_source_is_refused_with_one_line(
    shop: Shop, school: Provider, change: dict[str, Any], problem: str
) -> None:
    settings = config(school.url, written(shop.folder, ROWS))
    settings["protocol"]["workloads"][0]["source"].update(change)
    result = shop.build(settings)
    assert result.code == 2
    assert problem in result.err
    assert len(result.err.strip().splitlines()) == 1


def test_a_wrong_row_is_refused_with_its_file_and_line(shop: Shop, school: Provider) -> None:
    file = written(shop.folder, [*ROWS, {**ROWS[0], "id": "b", "answers": ["five"]}])
    result = shop.build(config(school.url, file))
    assert result.code == 2
    assert f"{file}:5: answers: 'five' is not a number" in result.err
    assert school.count() == 0


def test_a_digest_without_a_file_is_refused(shop: Shop, school: Provider) -> None:
    settings = config(school.url, written(shop.folder, ROWS))
    settings["protocol"]["workloads"][0]["source_sha256"] = "0" * 64
    assert "tasks.jsonl is not the file with this digest" in shop.build(settings).err
    settings["protocol"]["workloads"][0]["source"] = {}
    assert "`source_sha256` goes with `source.file`" in shop.build(settings).err


def test_the_estimate_knows_that_seeds_have_one_step(shop: Shop, school: Provider) -> None:
    path = shop.write(config(school.url, written(shop.folder, ROWS)))
    result = stepdown("estimate", str(path))
    assert result.code == 0
    assert school.count() == 0


def test_the_doctor_refuses_judged_tasks_without_a_judge(shop: Shop, school: Provider) -> None:
    settings = config(school.url, written(shop.folder, ROWS))
    settings["protocol"]["workloads"][0]["options"] = {"grading": {"by": "judge"}}
    path = str(shop.write(settings))
    problem = "protocol.workloads.0: an LLM judges the answers of 'qa': name its models in `protocol.judge.models`"
    built, looked_at = stepdown("build", path, "--run", str(shop.run)), stepdown("doctor", path)
    assert (built.code, problem in built.err) == (2, True)
    assert (looked_at.code, f"none workload qa: {problem}" in looked_at.out) == (2, True)


def test_the_doctor_finds_the_built_in_workloads(shop: Shop, school: Provider) -> None:
    settings = config(school.url, written(shop.folder, ROWS))
    settings["protocol"]["workloads"] = [
        {**settings["protocol"]["workloads"][0], "harness": name, "options": {}, "source": {}}
        for name in ("qa", "mtrag", "qmsum")
    ]
    result = stepdown("doctor", str(shop.write(settings)))
    for name in ("qa", "mtrag", "qmsum"):
        assert f"workload {name}" in result.out
