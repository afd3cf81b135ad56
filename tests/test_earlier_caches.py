"""A cache that an earlier stepdown made by diskcache is used where it lies: nothing in it is asked again, or copied."""

from __future__ import annotations

import pickle
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.cache.earlier import EarlierStore
from stepdown.builder.cache.inventory import Inventory
from stepdown.builder.cache.responses import Cache, Entry
from stepdown.builder.cache.store import EARLIER_DATABASE, DiskStore
from stepdown.builder.cache.table import FILE_NAME
from stepdown.builder.records import Response
from tests.conftest import Shop, stepdown
from tests.earlier_caches import made_earlier
from tests.provider import Provider
from tests.test_cache import question, response_of
from tests.test_cache_commands import entries, shared, used
from tests.test_relabel import SKILLS, relabel, version_in

Start = Callable[..., Provider]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of an earlier stepdown that answers the first question."""
    keep_earlier(tmp_path, Response("hi"))
    return tmp_path


def keep_earlier(folder: Path, response: Response) -> None:
    asked = question()
    store = EarlierStore(folder)
    store.put(asked.key(), Entry(asked.key(), asked.prefix.exact, response, "run-1", 1).to_json())
    store.close()


@pytest.fixture
def cache(folder: Path) -> Cache:
    return Cache(DiskStore(folder), run="run-2")


def test_its_entries_are_found_and_new_ones_stand_beside_them(cache: Cache, folder: Path) -> None:
    before = (folder / EARLIER_DATABASE).read_bytes()
    entry = cache.get(question())
    assert entry is not None
    assert (entry.response, entry.run) == (Response("hi"), "run-1")
    cache.put(question(step=2), Response("ho"))
    assert response_of(cache, question(step=2)) == Response("ho")
    assert (folder / EARLIER_DATABASE).read_bytes() == before
    with sqlite3.connect(folder / FILE_NAME) as db:
        assert db.execute("SELECT count(*) FROM responses").fetchone() == (1,)


def test_an_entry_that_cannot_be_read_is_replaced_by_a_new_answer(cache: Cache, folder: Path) -> None:
    with sqlite3.connect(folder / EARLIER_DATABASE) as db:
        db.execute("UPDATE Cache SET value = x'00'")
    assert cache.get(question()) is None
    cache.put(question(), Response("again"))
    assert response_of(cache, question()) == Response("again")
    with Inventory(folder) as inventory:
        assert [item.problem for item in inventory.read_entries()] == [""]


def test_a_pickled_entry_of_another_hand_is_not_loaded(cache: Cache, folder: Path) -> None:
    """diskcache's own JSONDisk would run it."""
    sentinel = folder / "pwned"

    class Bait:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (sentinel,)

    with sqlite3.connect(folder / EARLIER_DATABASE) as db:
        db.execute("UPDATE Cache SET mode = 4, value = ?", (pickle.dumps(Bait()),))
    assert cache.get(question()) is None
    assert not sentinel.exists()


def test_a_large_response_whose_file_is_gone_counts_as_absent(tmp_path: Path) -> None:
    noise = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=200_000))
    keep_earlier(tmp_path, Response(noise))
    cache = Cache(DiskStore(tmp_path), run="run-2")
    assert response_of(cache, question()) == Response(noise)
    for path in tmp_path.rglob("*.val"):
        path.unlink()
    assert cache.get(question()) is None


def test_a_run_resumes_and_is_relabelled_from_it_without_a_call(shop: Shop, provider: Start) -> None:
    one = provider(SKILLS)
    assert shop.build(shared(one.url)).code == 0
    whole, before = shop.files(), one.count()
    made_earlier(shop.folder / "cache")
    assert shop.resume().code == 0
    assert relabel(shop, version_in(shop, "new"), shared(one.url)).code == 0
    again = version_in(shop, "again")
    assert again.build(shared(one.url)).code == 0
    assert one.count() == before
    assert again.files()["question_bank.jsonl"] == shop.files()["question_bank.jsonl"] == whole["question_bank.jsonl"]


def test_the_commands_see_both_kinds_of_entries_as_one_cache(shop: Shop, provider: Start) -> None:
    one = provider(SKILLS)
    assert shop.build(shared(one.url)).code == 0
    cache, of_first = shop.folder / "cache", one.count()
    made_earlier(cache)
    second = version_in(shop, "second")
    assert second.build(shared(one.url, [[0, 1, 2], [2, 2], [0, 0, 0]][::-1])).code == 0
    total = one.count()
    assert total > of_first
    assert stepdown("cache", "verify", str(cache)).out == f"{total} entries, 0 corrupt\n"
    assert stepdown("cache", "stats", str(second.run)).out.startswith(f"entries: {total}, ")
    needed = used(second.run, cache)
    assert needed[0] == needed[1] < total
    assert stepdown("cache", "prune", str(second.run), "--yes").code == 0
    assert entries(cache) == needed[1]
    assert used(second.run, cache) == needed
