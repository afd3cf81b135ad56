"""A new version for a changed pool is what a fresh build makes, and pays only for what the old run had not asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result, Shop, stepdown
from tests.provider import FAULTS, Answer, Failing, Provider
from tests.test_bad_input import refused
from tests.workshop import ABILITIES, apprentice, config

Start = Callable[..., Provider]
Tiers = Mapping[str, Sequence[str]]

NEEDS = [[0, 1, 2, 0], [2, 0, 1], [1, 1], [0, 3]]
SKILLS = {
    **ABILITIES,
    "clerk": apprentice(1, manner=" by the book"),
    "fitter": apprentice(2, manner=" fits"),
    "chief": apprentice(9, manner=" as chief"),
}
OLD: Tiers = {"low": ["novice"], "mid": ["hand"], "high": ["master"]}


def version_in(shop: Shop, name: str) -> Shop:
    """Another run beside the first."""
    made = Shop(shop.folder)
    made.run = shop.folder / name
    return made


def relabel(old: Shop, new: Shop, settings: Mapping[str, Any]) -> Result:
    path = new.write(settings, f"{new.run.name}.yaml")
    return stepdown("relabel", str(old.run), "--config", str(path), "--run", str(new.run))


def asked(provider: Provider) -> set[tuple[str, str]]:
    return {(seen.model, seen.digest) for seen in provider.requests}


CHANGES: dict[str, Tiers] = {
    "one is added": {"low": ["novice", "clerk"], "mid": ["hand"], "high": ["master"]},
    "one is added and tried first": {"low": ["clerk", "novice"], "mid": ["hand"], "high": ["master"]},
    "one is removed": {"low": ["hand"], "high": ["master"]},
    "one is moved down": {"low": ["novice", "hand"], "mid": ["fitter"], "high": ["master"]},
    "one is moved up": {"low": ["clerk"], "mid": ["novice", "hand"], "high": ["master"]},
    "the strong one is replaced": {"low": ["novice"], "mid": ["hand"], "high": ["chief"]},
    "a strong one is put before": {"low": ["novice"], "mid": ["hand"], "high": ["chief", "master"]},
    "none": OLD,
}


@pytest.mark.parametrize("tiers", CHANGES.values(), ids=CHANGES.keys())
def test_the_new_version_is_a_fresh_builds_to_the_byte_and_asks_nothing_again(
    shop: Shop, provider: Start, tiers: Tiers
) -> None:
    before, after, afresh = provider(SKILLS), provider(SKILLS), provider(SKILLS)
    assert shop.build(config(before.url, NEEDS, models=OLD)).code == 0
    new, fresh = version_in(shop, "new"), version_in(shop, "fresh")
    result = relabel(shop, new, config(after.url, NEEDS, models=tiers))
    assert result.code == 0, result.err
    assert fresh.build(config(afresh.url, NEEDS, models=tiers)).code == 0
    assert new.files() == fresh.files()
    assert asked(before) & asked(after) == set()
    assert after.repeated() == []
    # What it asked and what it had from the old run are together what the fresh build asked.
    assert asked(after) == asked(afresh) - asked(before)
    spent = new.read_json("spend.json")
    assert (spent["calls"], spent["calls_paid_by_earlier_runs"]) == (after.count(), afresh.count() - after.count())
    assert f"paid for labels: {after.count()} calls" in result.out
    assert f"saved by the cache: {afresh.count() - after.count()} calls" in result.out


def test_a_strong_model_that_is_moved_down_is_asked_anew_where_only_its_seeds_had_asked(
    shop: Shop, provider: Start
) -> None:
    """An attempt at a seed is a draw of its own: it answers for no candidate."""
    tiers = {"low": ["novice"], "mid": ["master"], "high": ["chief"]}
    before, after, afresh = provider(SKILLS), provider(SKILLS), provider(SKILLS)
    shop.build(config(before.url, NEEDS, models=OLD))
    new, fresh = version_in(shop, "new"), version_in(shop, "fresh")
    assert relabel(shop, new, config(after.url, NEEDS, models=tiers)).code == 0
    assert fresh.build(config(afresh.url, NEEDS, models=tiers)).code == 0
    assert new.files() == fresh.files()
    assert {model for model, _ in asked(before) & asked(after)} == {"master"}
    assert asked(before) - asked(after) >= {pair for pair in asked(before) & asked(afresh) if pair[0] != "master"}


def test_hints_are_not_paid_for_again(shop: Shop, provider: Start) -> None:
    one = provider({**SKILLS, "adviser": lambda request: Answer('{"tier": "mid"}')})
    hints = {"hints": {"source": "model", "model": {"name": "adviser", "model": "openai/adviser"}}}
    shop.build(config(one.url, NEEDS, models=OLD, protocol=hints))
    hinted = one.count("adviser")
    assert hinted > 0
    new = version_in(shop, "new")
    tiers = {"low": ["novice", "clerk"], "mid": ["hand"], "high": ["master"]}
    assert relabel(shop, new, config(one.url, NEEDS, models=tiers, protocol=hints)).code == 0
    assert one.count("adviser") == hinted


def test_fresh_draws_of_the_old_run_serve_the_new_one_where_its_trajectory_is_the_same(
    shop: Shop, provider: Start
) -> None:
    rules = {"rules": {"confirm": 2, "control": 1}}
    one, afresh = provider(SKILLS), provider(SKILLS)
    shop.build(config(one.url, NEEDS, models=OLD, protocol=rules))
    before = one.count()
    new, fresh = version_in(shop, "new"), version_in(shop, "fresh")
    tiers = {**OLD, "high": ["master", "chief"]}
    assert relabel(shop, new, config(one.url, NEEDS, models=tiers, protocol=rules)).code == 0
    assert one.count() == before
    fresh.build(config(afresh.url, NEEDS, models=tiers, protocol=rules))
    assert new.files() == fresh.files()


def seeded(url: str, tiers: Tiers, file: str = "seeds.jsonl") -> dict[str, Any]:
    settings = config(url, [[0, 1], [1], [0], [0]], models=tiers)
    settings["protocol"]["workloads"][0]["seeds"] = {"source": "import", "file": file}
    return settings


def seed_line(job: int, model: str, steps: int) -> str:
    said = [{"content": f"made 1, says {model}"}] * steps
    return json.dumps({"instance_id": f"job-{job}", "model": model, "steps": said})


def test_imported_seeds_of_a_strong_model_that_left_are_passed_over_and_what_has_no_other_is_dropped(
    shop: Shop, provider: Start
) -> None:
    one = provider(SKILLS)
    lines = [seed_line(0, "master", 2), seed_line(1, "master", 1), seed_line(1, "chief", 1), seed_line(2, "chief", 1)]
    (shop.folder / "seeds.jsonl").write_text("\n".join(lines))
    assert shop.build(seeded(one.url, {"low": ["novice"], "mid": ["hand"], "high": ["master", "chief"]})).code == 0
    assert len(shop.labels()) == 3

    new = version_in(shop, "new")
    tiers: Tiers = {"low": ["novice"], "mid": ["hand"], "high": ["chief"]}
    result = relabel(shop, new, seeded(one.url, tiers))
    assert result.code == 0, result.err
    assert (
        "dropped: workshop/job-0: the seed file has no trajectory of it by a model that is still strong" in result.out
    )
    assert "job-3" not in result.out
    assert new.manifest()["dropped"]["workshop"] == {
        "the seed file has no trajectory of it by a model that is still strong": 1,
        "the seed file has no trajectory of it": 1,
    }
    # Labels, evidence and queue are those of a build whose file has the chief's lines alone.
    (shop.folder / "chiefs.jsonl").write_text("\n".join(line for line in lines if "chief" in line))
    fresh = version_in(shop, "fresh")
    assert fresh.build(seeded(one.url, tiers, "chiefs.jsonl")).code == 0
    names = ("question_bank.jsonl", "evidence.jsonl", "audit_queue.jsonl")
    assert [new.files()[name] for name in names] == [fresh.files()[name] for name in names]
    # A resume and a version of the version know who had left.
    assert new.resume().code == 0
    newer = version_in(shop, "newer")
    assert relabel(new, newer, seeded(one.url, {"low": ["novice"], "mid": ["fitter"], "high": ["chief"]})).code == 0
    # Anybody else's line is a mistake in the file.
    with (shop.folder / "seeds.jsonl").open("a") as file:
        file.write("\n" + seed_line(3, "stranger", 1))
    refused(
        relabel(shop, version_in(shop, "other"), seeded(one.url, tiers)), "seeds.jsonl:5", "stranger", "strong tier"
    )


def test_a_relabelling_goes_on_after_an_interruption_from_the_same_responses(shop: Shop, provider: Start) -> None:
    tiers: Tiers = {"low": ["novice", "clerk"], "mid": ["hand"], "high": ["master"]}
    before = provider(SKILLS)
    shop.build(config(before.url, NEEDS, models=OLD))
    rejecting = provider({**SKILLS, "clerk": Failing(1, FAULTS["unauthorized"], SKILLS["clerk"])})
    new, fresh = version_in(shop, "new"), version_in(shop, "fresh")
    settings = config(rejecting.url, NEEDS, models=tiers)
    assert relabel(shop, new, settings).code == 2
    # By itself, with a config that names no cache, or by the same command again.
    assert new.resume("--config", str(new.write(settings))).code == 0
    assert relabel(shop, new, settings).code == 0
    assert asked(before) & asked(rejecting) == set()
    assert not (new.run / "cache").exists()
    fresh.build(config(provider(SKILLS).url, NEEDS, models=tiers))
    assert new.files() == fresh.files()


def test_runs_that_are_moved_together_still_find_the_responses(shop: Shop, provider: Start) -> None:
    one = provider({**SKILLS, "clerk": Failing(1, FAULTS["unauthorized"], SKILLS["clerk"])})
    runs = shop.folder / "runs"
    shop.run = runs / "old"
    shop.build(config(one.url, NEEDS, models=OLD))
    new = version_in(shop, "runs/new")
    settings = config(one.url, NEEDS, models={"low": ["novice", "clerk"], "high": ["master"]})
    path = str(new.write(settings))
    assert stepdown("relabel", str(shop.run), "--config", path, "--run", str(new.run)).code == 2
    runs.rename(shop.folder / "elsewhere")
    shutil.copytree(shop.folder / "elsewhere", shop.folder / "without")
    shutil.rmtree(shop.folder / "without" / "old" / "cache")
    refused(version_in(shop, "without/new").resume(), "without/new", "cache", "is not at")
    moved = version_in(shop, "elsewhere/new")
    assert moved.resume().code == 0
    # Nothing was asked twice but the request that was rejected.
    assert [model for model, _ in one.repeated()] == ["clerk"]


def test_the_configs_cache_is_used_where_it_holds_the_old_responses_and_refused_where_not(
    shop: Shop, provider: Start
) -> None:
    one = provider(SKILLS)
    shop.build(config(one.url, NEEDS, models=OLD))
    tiers: Tiers = {"low": ["novice"], "mid": ["hand", "clerk"], "high": ["master"]}
    (shop.folder / "empty").mkdir()
    new = version_in(shop, "new")
    refused(
        relabel(shop, new, config(one.url, NEEDS, models=tiers, operation={"cache": "empty"})), "empty", "no response"
    )

    shutil.copytree(shop.run / "cache", shop.folder / "copy")
    shutil.rmtree(shop.run / "cache")
    refused(relabel(shop, new, config(one.url, NEEDS, models=tiers)), str(shop.run / "cache"), "no response cache")
    before = asked(one)
    settings = config(one.url, NEEDS, models=tiers)
    settings["operation"]["cache"] = "copy"
    assert relabel(shop, new, settings).code == 0
    assert one.repeated() == []
    assert before < asked(one)


def test_a_cache_that_lost_some_of_the_old_responses_is_refused(shop: Shop, provider: Start) -> None:
    one = provider(SKILLS)
    shared = {"cache": "shared", "workers": 1, "endpoints": {"default": {"api_base": one.url}}}
    shop.build(config(one.url, NEEDS, operation=shared))
    other = version_in(shop, "other")
    other.build(config(one.url, NEEDS[:2], operation=shared))
    assert stepdown("cache", "prune", str(other.run), "--yes").code == 0
    count = one.count()
    result = relabel(shop, version_in(shop, "new"), config(one.url, NEEDS, operation=shared))
    refused(result, "shared", "of the", "responses", "stepdown build")
    assert one.count() == count


def test_wrong_inputs_are_refused_in_one_line(shop: Shop, provider: Start, tmp_path: Path) -> None:
    url = provider(SKILLS).url
    settings = config(url, [[0]])
    path = str(shop.write(settings))
    refused(stepdown("relabel", str(tmp_path), "--config", path, "--run", str(tmp_path / "new")), "no run is here")
    shop.build(settings)
    refused(stepdown("relabel", str(shop.run), "--config", path, "--run", str(shop.run)), "folder of its own")
    refused(
        stepdown("relabel", str(shop.run), "--config", str(tmp_path / "no.yaml"), "--run", str(tmp_path / "new")),
        "no.yaml",
    )
    built = version_in(shop, "built")
    built.build(settings)
    refused(
        stepdown("relabel", str(shop.run), "--config", path, "--run", str(built.run)), "new version", "another folder"
    )
    refused(stepdown("diff", str(shop.run), str(tmp_path / "nothing")), "nothing", "no run is here")


def test_a_new_version_goes_on_from_the_run_it_was_begun_from_and_no_other(shop: Shop, provider: Start) -> None:
    one = provider(SKILLS)
    other, new = version_in(shop, "other"), version_in(shop, "new")
    assert shop.build(config(one.url, NEEDS, models=OLD)).code == 0
    assert other.build(config(one.url, NEEDS, models=OLD)).code == 0
    tiers: Tiers = {"low": ["novice", "clerk"], "high": ["master"]}
    limited = config(one.url, NEEDS, models=tiers, operation={"budget": {"calls": 2}})
    assert relabel(shop, new, limited).code == 3
    refused(relabel(other, new, limited), "not begun as a new version of that one")
