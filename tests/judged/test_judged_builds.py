"""mtRAG and QMSum labelled end to end: candidates answer, a judge at a loopback provider reports, code decides."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT, Shop
from tests.judged.judged_files import OWN, upstream, written
from tests.judged.scripted_judge import judge, shown_to
from tests.provider import Ability, Answer, Fault, Provider, Request, error

MTRAG: dict[str, Any] = {"harness": "mtrag", "source": {"file": str(OWN / "mtrag.jsonl")}}
QMSUM: dict[str, Any] = {"harness": "qmsum", "source": {"file": str(OWN / "qmsum.jsonl")}}


def quoter(request: Request) -> Answer:
    """A model that answers by the passage, or the turns, that have most of the question's words."""
    system, question = request["messages"][0]["content"], request["messages"][-1]["content"]
    transcript, _, query = question.rpartition("\n\nQuery: ")
    pieces = transcript.splitlines() if transcript else [one.split("\n", 1)[1] for one in system.split("\n\n")[1:]]
    wanted = set((query or question).lower().split())
    ranked = sorted(pieces, key=lambda piece: -len(wanted & set(piece.lower().split())))
    return Answer(" ".join(textwrap.shorten(piece, 300, placeholder="") for piece in ranked[: 4 if transcript else 1]))


def echo(request: Request) -> Answer:
    """A model that says how sure it is, and a figure that nobody has given."""
    return Answer("It is certainly so, as 99 of 100 people agree.")


ABILITIES: dict[str, Ability] = {"echo": echo, "quoter": quoter, "judge": judge}


def config(
    url: str, workloads: list[dict[str, Any]], low: Mapping[str, Any] | None = None, **protocol: Any
) -> dict[str, Any]:
    """Two cheap tiers below the accepted answers, and a judge."""
    models = [low or {"name": "echo", "model": "openai/echo"}, {"name": "quoter", "model": "openai/quoter"}]
    tiers = [*models, {"name": "reference", "model": "workload/reference"}]
    return {
        "protocol": {
            "pool": {
                "version": "judged-1",
                "tiers": [
                    {"name": name, "id": number, "models": [model]}
                    for number, (name, model) in enumerate(zip(("low", "mid", "high"), tiers, strict=True))
                ],
            },
            "workloads": [{**workload, "seeds": {"source": "reference"}} for workload in workloads],
            "judge": {"models": [{"name": "judge", "model": "openai/judge"}], "panel": "single", "probes": 0},
            **protocol,
        },
        "operation": {
            "workers": 2,
            "endpoints": {"default": {"api_base": url, "timeout": 20}},
            "retries": {"attempts": 2, "first_wait": 0, "longest_wait": 0},
        },
    }


def tiers_of(shop: Shop) -> dict[str, str]:
    return {row["instance_id"]: row["target_tier"] for row in shop.read("question_bank.jsonl")}


def test_labels_follow_what_the_judge_observes(shop: Shop, provider: Callable[..., Provider]) -> None:
    served = provider(ABILITIES)
    result = shop.build(config(served.url, [MTRAG, QMSUM]))
    assert result.code == 0
    labels = tiers_of(shop)
    assert labels["c1<::>1"] == labels["c3<::>1"] == "mid", "the passage answers the question"
    assert "low" not in labels.values(), "nobody has given the figure"
    assert {"mid", "high"} == set(labels.values())
    dropped = shop.manifest()["dropped"]
    assert dropped["mtrag"].pop("no seed passed: fail") == 1, "28 euros stand nowhere in the passages"
    assert dropped["mtrag"] == {
        "no passage that people found relevant": 1,
        "no passages": 1,
        "not answerable from its passages: conversational": 1,
        "not answerable from its passages: partial": 1,
        "not answerable from its passages: unanswerable": 1,
    }


def test_evidence_has_group_and_judgement_and_rows_have_neither(shop: Shop, provider: Callable[..., Provider]) -> None:
    shop.build(config(provider(ABILITIES).url, [MTRAG]))
    first = shop.read("evidence.jsonl")[0]
    assert first["group"] == "c1"
    assert all(trial["grading"] for trial in first["trials"])
    rows = (shop.run / "question_bank.jsonl").read_text()
    assert "judge" not in rows
    assert "quoter" not in rows


def test_the_judge_is_shown_the_answer_the_evidence_and_the_reference(
    shop: Shop, provider: Callable[..., Provider]
) -> None:
    served = provider(ABILITIES)
    shop.build(config(served.url, [{**QMSUM, "source": {**QMSUM["source"], "take": 2}}]))
    asked = [shown_to(seen.body) for seen in served.requests if seen.model == "judge"]
    assert len(asked) > 2
    for shown in asked:
        assert shown["query"].startswith("user: ")
        (whole,) = [text for name, text in shown.items() if name.endswith("(the whole transcript)")]
        assert whole.startswith("Chair: Good morning")
        assert any(name.startswith("reference answer 1") for name in shown)


def test_a_prefix_over_a_candidates_context_fails_that_candidate_alone(
    shop: Shop, provider: Callable[..., Provider]
) -> None:
    def narrow(request: Request) -> Answer | Fault:
        if len(str(request["messages"])) > 3_000:
            return error(400, "maximum context length is 600 tokens", "context_length_exceeded")
        return quoter(request)

    served = provider({**ABILITIES, "echo": narrow})
    shop.build(config(served.url, [QMSUM]))
    reasons = Counter(
        trial["reason"] for row in shop.read("evidence.jsonl") for trial in row["trials"] if trial["model"] == "echo"
    )
    assert reasons["the prefix does not fit the model's context"] >= 1
    asked = [shown_to(seen.body) for seen in served.requests if seen.model == "judge"]
    assert all(shown["candidate's answer"] for shown in asked), "what is no answer is not judged"


def test_without_a_judge_the_workload_is_refused_at_once(shop: Shop, provider: Callable[..., Provider]) -> None:
    served = provider(ABILITIES)
    settings = config(served.url, [QMSUM])
    del settings["protocol"]["judge"]
    result = shop.build(settings)
    assert result.code == 2
    assert "judge" in result.err
    assert served.count() == 0


def test_questions_of_ones_own_may_be_judged(shop: Shop, provider: Callable[..., Provider]) -> None:
    rows = [
        {
            "id": "opening",
            "question": "When does the library open on Saturday?",
            "context": "The library is closed on Sunday. On Saturday it opens at 9:30.",
            "answers": ["On Saturday it opens at 9:30."],
        }
    ]

    def reader(request: Request) -> Answer:
        return Answer("On Saturday it opens at 9:30.")

    served = provider({**ABILITIES, "quoter": reader})
    workload = {
        "harness": "qa",
        "source": {"file": written(shop.folder, rows)},
        "options": {"grading": {"by": "judge"}},
    }
    assert shop.build(config(served.url, [workload])).code == 0
    assert tiers_of(shop) == {"opening": "mid"}


# With a local model as candidate


def local(name: str, tokens: int = 32) -> dict[str, Any]:
    """A model of the quickstart's pool, with short answers."""
    pool = yaml.safe_load((ROOT / "configs/pools/quickstart.yaml").read_text())
    found: dict[str, Any] = next(model for tier in pool["tiers"] for model in tier["models"] if model["name"] == name)
    return {**found, "parameters": {"temperature": 0, "max_tokens": tokens}}


def interrupted(shop: Shop, settings: dict[str, Any]) -> None:
    """Build to the end, stopped after every few calls."""
    settings["operation"]["endpoints"]["default"]["timeout"] = 120
    codes: list[int] = []
    while 0 not in codes and len(codes) < 8:
        settings["operation"]["budget"] = {"calls": 5 * (len(codes) + 1)}
        codes.append(shop.build(settings).code)
    assert len(codes) > 1
    assert {*codes[:-1]} == {3}
    assert codes[-1] == 0
    settings["operation"]["budget"] = {}


@pytest.mark.local
def test_both_workloads_are_built_with_a_local_model_whatever_interrupts(
    shop: Shop, tmp_path_factory: pytest.TempPathFactory, provider: Callable[..., Provider]
) -> None:
    served, undisturbed = provider(ABILITIES), Shop(tmp_path_factory.mktemp("undisturbed"))
    workloads = [
        {**MTRAG, "source": {**MTRAG["source"], "take": ["c1<::>1", "c3<::>1"]}},
        {**QMSUM, "source": {**QMSUM["source"], "queries": ["specific"], "take": 1}},
    ]
    settings = config(served.url, workloads, low=local("smollm2-135m"))
    interrupted(shop, settings)
    assert len(tiers_of(shop)) == 3
    assert served.repeated() == []
    assert undisturbed.build(settings).code == 0
    assert undisturbed.files() == shop.files()


@pytest.mark.local
def test_both_workloads_are_built_from_upstreams_data_with_a_local_model(
    shop: Shop, provider: Callable[..., Provider]
) -> None:
    served = provider(ABILITIES)
    task, query = "4dcfcef942ea3e5c17c6e47c2aee6aba<::>5", "71ee9c6cc364.specific.8"
    workloads = [
        {"harness": "mtrag", "source": {"file": upstream("mtrag_un_40.jsonl"), "take": [task]}},
        {
            "harness": "qmsum",
            "source": {"file": upstream("qmsum_val_6.jsonl"), "take": [query]},
            "options": {"context": 1500, "long": "spans"},
        },
    ]
    interrupted(shop, config(served.url, workloads, low=local("smollm2-135m")))
    assert set(tiers_of(shop)) == {task, query}
    assert served.repeated() == []
