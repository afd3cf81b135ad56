"""A cache can be counted, checked, and freed of what no named run needs; nothing that one used is ever lost."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.cache.inventory import Inventory
from stepdown.builder.cache.store import EARLIER_DATABASE
from stepdown.builder.cache.table import FILE_NAME
from stepdown.builder.run.folder import open_for_work
from stepdown.builder.run.ledger import Ledger
from tests.conftest import Shop, started, stepdown
from tests.earlier_caches import made_earlier
from tests.provider import FAULTS, Answer, Provider, Request, spawned
from tests.test_bad_input import refused
from tests.test_relabel import SKILLS, relabel, version_in
from tests.workshop import CLOCK, apprentice, config, worked

Start = Callable[..., Provider]
NEEDS = [[0, 1, 2], [1, 0]]


def shared(url: str, needs: list[list[int]] = NEEDS, **more: Any) -> dict[str, Any]:
    """A config whose runs share one cache."""
    settings = config(url, needs, **more)
    settings["operation"]["cache"] = "cache"
    return settings


def entries(folder: Path) -> int:
    with Inventory(folder) as inventory:
        return sum(1 for _ in inventory.read_entries())


def used(run: Path, cache: Path) -> tuple[int, int]:
    """How many of the responses that a run used are in the cache, and how many these are."""
    ledger = Ledger(run, read_only=True)
    with Inventory(cache) as inventory:
        found = inventory.count_held(ledger.call_keys())
    ledger.close()
    return found


def two_runs(shop: Shop, url: str) -> tuple[Shop, Shop]:
    """Two runs of one cache that share one instance; the second had it from the first."""
    other = version_in(shop, "other")
    assert shop.build(shared(url)).code == 0
    assert other.build(shared(url, [[0, 1, 2], [2, 2], [0, 0, 0]][::-1])).code == 0
    return shop, other


def test_stats_count_entries_by_the_run_that_paid(shop: Shop, provider: Start) -> None:
    one = provider(SKILLS)
    first, second = two_runs(shop, one.url)
    paid = [run.read_json("spend.json")["calls"] for run in (first, second)]
    for where in (shop.folder / "cache", first.run, second.run):
        lines = stepdown("cache", "stats", str(where)).out.splitlines()
        assert lines[0].startswith(f"entries: {one.count()}, ")
        counts = [line.split(": ")[1].split(",")[0] for line in lines if line.startswith("paid by run")]
        assert sorted(counts) == sorted(f"{count} entries" for count in paid)


def test_prune_shows_what_would_go_and_removes_it_only_with_yes(shop: Shop, provider: Start) -> None:
    one = provider(SKILLS)
    _, second = two_runs(shop, one.url)
    cache, total = shop.folder / "cache", one.count()
    needed = used(second.run, cache)[1]
    assert needed < total
    shown = stepdown("cache", "prune", str(second.run))
    assert shown.code == 0
    assert f"{needed} entries" in shown.out
    assert f"{total - needed} entries" in shown.out
    assert "--yes" in shown.out
    assert entries(cache) == total
    assert stepdown("cache", "prune", str(second.run), "--yes").code == 0
    assert entries(cache) == needed
    # Again there is nothing to do.
    assert "0 entries (0 bytes) go" in stepdown("cache", "prune", str(second.run)).out


def test_what_is_kept_answers_for_all_that_the_named_runs_used(shop: Shop, provider: Start) -> None:
    """Also what another run had paid for: seeds and hints included."""
    one = provider({**SKILLS, "adviser": lambda request: Answer('{"tier": "mid"}')})
    hints = {"hints": {"source": "model", "model": {"name": "adviser", "model": "openai/adviser"}}}
    other = version_in(shop, "other")
    shop.build(shared(one.url, [*NEEDS, [2, 1]], protocol=hints))
    other.build(shared(one.url, NEEDS, protocol=hints))
    assert other.read_json("spend.json")["calls"] == 0
    assert stepdown("cache", "prune", str(other.run), "--yes").code == 0
    before = one.count()
    assert relabel(other, version_in(shop, "new"), shared(one.url, NEEDS, protocol=hints)).code == 0
    assert one.count() == before


def test_all_named_runs_keep_theirs(shop: Shop, provider: Start) -> None:
    one = provider(SKILLS)
    first, second = two_runs(shop, one.url)
    assert stepdown("cache", "prune", str(first.run), str(second.run), "--yes").code == 0
    assert entries(shop.folder / "cache") == one.count()


def test_a_response_that_belongs_to_its_very_prefix_is_kept_with_it(shop: Shop, provider: Start) -> None:
    """Kept under the exact key, since another run's stands under the canonical one."""

    def watchful(request: Request) -> Answer:
        (clock,) = CLOCK.findall(request["messages"][-1]["content"])
        return Answer(f"{worked(0, request['messages'])} at {clock}")

    one = provider({**SKILLS, "novice": watchful})
    other = version_in(shop, "other")
    settings = shared(one.url, [[0, 0]], options={"volatile": True})
    shop.build(settings)
    other.build(settings)
    cache = shop.folder / "cache"
    # Both asked the novice, whose answers name the time.
    assert one.count("novice") == 4
    assert stepdown("cache", "prune", str(other.run), "--yes").code == 0
    found, needed = used(other.run, cache)
    assert found == needed == entries(cache)
    assert used(shop.run, cache)[0] < used(shop.run, cache)[1]


def test_an_unfinished_run_keeps_what_it_paid_for_and_has_not_recorded(shop: Shop, provider: Start) -> None:
    """The master's key is rejected in the middle of a trial: the novice's answer is paid, its trial is not."""
    answered = [apprentice(9)] * 2 + [lambda request: FAULTS["unauthorized"]]

    def master(request: Request) -> Any:
        return (answered.pop(0) if answered else apprentice(9))(request)

    one = provider({**SKILLS, "master": master})
    assert shop.build(shared(one.url, [[0, 0]])).code == 2
    assert one.count("novice") == 1
    assert stepdown("cache", "prune", str(shop.run), "--yes").code == 0
    assert shop.resume().code == 0
    assert [model for model, _ in one.repeated()] == ["master"]


def test_a_run_that_is_being_worked_on_is_refused(shop: Shop, provider: Start) -> None:
    one = provider(SKILLS)
    first, second = two_runs(shop, one.url)
    with open_for_work(first.run):
        refused(stepdown("cache", "prune", str(second.run), str(first.run), "--yes"), str(first.run), "another process")
    assert entries(shop.folder / "cache") == one.count()


def test_a_build_that_shares_the_cache_is_not_broken_by_pruning(shop: Shop, tmp_path: Path) -> None:
    with spawned("tests.workshop:ABILITIES", tmp_path / "log.jsonl", latency=0.01) as url:
        keeper, builder = version_in(shop, "keeper"), version_in(shop, "builder")
        assert keeper.build(shared(url, [[0]])).code == 0
        needs = [[0, 1, 2, 0], [2, 0, 1], [1, 1], [0, 0, 2]]
        process = started("build", str(builder.write(shared(url, needs), "b.yaml")), "--run", str(builder.run))
        while process.poll() is None:
            assert stepdown("cache", "prune", str(keeper.run), "--yes").code == 0
            time.sleep(0.2)
        _, err = process.communicate()
        assert process.returncode == 0, err
        undisturbed = version_in(shop, "undisturbed")
        assert undisturbed.build(config(url, needs)).code == 0
    assert builder.files() == undisturbed.files()
    assert entries(shop.folder / "cache") >= used(keeper.run, shop.folder / "cache")[0] > 0


def test_verify_finds_nothing_wrong_with_a_sound_cache(shop: Shop, provider: Start) -> None:
    one = provider(SKILLS)
    shop.build(shared(one.url))
    result = stepdown("cache", "verify", str(shop.run))
    assert (result.code, result.out) == (0, f"{one.count()} entries, 0 corrupt\n")


DAMAGES = [
    ("UPDATE responses SET value = x'00' WHERE id = 2", "entry 2"),
    ("UPDATE responses SET value = '{' WHERE id = 2", "entry 2"),
    ("UPDATE responses SET value = 7 WHERE id = 2", "no text"),
    ("UPDATE responses SET value = '{}' WHERE id = 2", "does not decode"),
    ("UPDATE responses SET key = x'00' WHERE id = 2", "no key"),
    ("UPDATE responses SET key = 'text' WHERE id = 2", "no key"),
]
EARLIER_DAMAGES = [
    ("UPDATE Cache SET value = x'00' WHERE rowid = 2", "entry 2"),
    ("UPDATE Cache SET key = x'00' WHERE rowid = 2", "no key"),
    ("UPDATE Cache SET key = 'text', raw = 0 WHERE rowid = 2", "no key"),
    ("UPDATE Cache SET value = x'789c8b8e0500011500b9' WHERE rowid = 2", "entry 2"),
    ("UPDATE Cache SET value = NULL, mode = 2, filename = 'gone.val' WHERE rowid = 2", "entry 2"),
    ("UPDATE Cache SET mode = 4 WHERE rowid = 2", "pickled"),
]


@pytest.mark.parametrize(
    ("damage", "words", "earlier"),
    [(*case, earlier) for earlier in (False, True) for case in (EARLIER_DAMAGES if earlier else DAMAGES)],
)
def test_verify_names_what_is_corrupt_and_exits_2(
    shop: Shop, provider: Start, damage: str, words: str, earlier: bool
) -> None:
    one = provider(SKILLS)
    shop.build(shared(one.url))
    cache = shop.folder / "cache"
    if earlier:
        made_earlier(cache)
    with sqlite3.connect(cache / (EARLIER_DATABASE if earlier else FILE_NAME)) as db:
        db.execute(damage)
    result = stepdown("cache", "verify", str(cache))
    assert result.code == 2
    corrupt, count = result.out.splitlines()
    assert words in corrupt
    assert count == f"{one.count()} entries, 1 corrupt"
    assert "unreadable: 1" in stepdown("cache", "stats", str(cache)).out
    # It is in nobody's way: the run, its files and a pruning do without it.
    assert stepdown("cache", "prune", str(shop.run), "--yes").code == 0
    assert shop.resume().code == 0


def test_looking_makes_no_cache_where_there_is_none(tmp_path: Path) -> None:
    for command in ("stats", "verify"):
        refused(stepdown("cache", command, str(tmp_path / "none")), str(tmp_path / "none"), "no response cache")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / FILE_NAME).write_bytes(b"not a database" * 1000)
    refused(stepdown("cache", "verify", str(tmp_path)), str(tmp_path), "can not be used")


def test_runs_of_different_caches_are_not_pruned_together(shop: Shop, provider: Start) -> None:
    one = provider(SKILLS)
    other = version_in(shop, "other")
    shop.build(config(one.url, [[0]]))
    other.build(config(one.url, [[0]]))
    refused(stepdown("cache", "prune", str(shop.run), str(other.run)), str(other.run), "another response cache")
    refused(stepdown("cache", "prune", str(shop.folder)), "no run is here")
    # One run named twice is one run.
    assert stepdown("cache", "prune", str(shop.run), f"{shop.run}/.").code == 0
