"""The cache: what was paid for is there, for just that question, whatever happens to the file."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepdown.builder.cache.inventory import Inventory
from stepdown.builder.cache.question import Question
from stepdown.builder.cache.responses import Cache
from stepdown.builder.cache.store import EARLIER_DATABASE, DiskStore
from stepdown.builder.cache.table import FILE_NAME
from stepdown.builder.config.pool import Model
from stepdown.builder.errors import BadInput, Technical
from stepdown.builder.records import Prefix, Response, Sample, ToolCall, digest

PARTS: dict[str, list[Any]] = {
    "workload": ["bfcl", "qmsum"],
    "harness_version": ["1", "2"],
    "instance": ["a", "b"],
    "step": [1, 2],
    "model": [
        Model(name="x", model="openai/x"),
        Model(name="x", model="openai/x", revision="2026-01-01"),
        Model(name="x", model="openai/x", actions="json_schema"),
        Model(name="x", model="openai/x", parameters={"temperature": 1}),
    ],
    "prefix": [Prefix.start([{"role": "user", "content": text}]) for text in ("hi", "ho")],
    "sample": [Sample(), Sample(number=1), Sample("seed")],
}


def question(**changed: Any) -> Question:
    return Question(**{**{name: values[0] for name, values in PARTS.items()}, **changed})


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(DiskStore(tmp_path / "cache"), run="run-1")


def response_of(cache: Cache, asked: Question) -> Response | None:
    entry = cache.get(asked)
    return entry.response if entry else None


@settings(max_examples=200)
@given(st.fixed_dictionaries({name: st.integers(0, len(values) - 1) for name, values in PARTS.items()}))
def test_every_part_of_a_question_is_part_of_its_key(chosen: dict[str, int]) -> None:
    other = question(**{name: PARTS[name][index] for name, index in chosen.items()})
    assert (other.key() == question().key()) == (not any(chosen.values()))


@given(name=st.text(st.characters(exclude_categories=["Cs"])), number=st.integers(0, 10**6), exact=st.booleans())
def test_a_key_is_the_digest_of_all_parts_so_caches_of_before_are_found(name: str, number: int, exact: bool) -> None:
    model = Model(name="x", model="openai/x", parameters={"temperature": 0.5, "stop": [name]})
    prefix = Prefix.start([{"role": "user", "content": name}], mask=lambda text: "masked")
    one = question(workload=name, instance=name, step=number, model=model, prefix=prefix, sample=Sample(name, number))
    digests = prefix.exact if exact else prefix.canonical
    parts = [name, "1", name, number, model.identity, model.parameters, digests, exact, name, number]
    assert one.key(exact) == digest(parts)


def test_the_key_is_not_moved_by_a_models_name_price() -> None:
    same = Model.model_validate({"name": "y", "model": "openai/x", "price": {"input": 3}})
    assert question(model=same).key() == question().key()


def test_a_response_outlives_the_process_and_says_which_run_paid(tmp_path: Path) -> None:
    first = Cache(DiskStore(tmp_path), run="run-1")
    said = Response("hi", (ToolCall("f", '{"a": 1}'),), extra={"id": "x"})
    first.put(question(), said)
    first.close()
    entry = Cache(DiskStore(tmp_path), run="run-2").get(question())
    assert entry is not None
    assert (entry.response, entry.run) == (said, "run-1")


def test_a_question_is_asked_once_and_its_answer_is_kept_before_it_is_given(cache: Cache) -> None:
    asked: list[Question] = []

    def ask(one: Question) -> Response:
        asked.append(one)
        return Response("hi")

    first = cache.get_or_ask(question(), ask)
    assert cache.get(question()) == first.entry
    again = cache.get_or_ask(question(), ask)
    assert (first.fresh, again.fresh) == (True, False)
    assert first.response == again.response == Response("hi")
    assert asked == [question()]


def test_a_question_that_could_not_be_asked_leaves_nothing_behind(cache: Cache) -> None:
    def fail(one: Question) -> Response:
        raise Technical("down")

    with pytest.raises(Technical):
        cache.get_or_ask(question(), fail)
    assert cache.get(question()) is None


def volatile(text: str) -> Prefix:
    return Prefix.start([{"role": "user", "content": text}], mask=lambda t: re.sub(r"/tmp/\w+", "/tmp/#", t))


def test_a_response_serves_every_prefix_that_differs_in_volatile_text_alone(cache: Cache) -> None:
    cache.put(question(prefix=volatile("in /tmp/a1")), Response("look there"))
    assert response_of(cache, question(prefix=volatile("in /tmp/b2"))) == Response("look there")
    assert response_of(cache, question(prefix=volatile("at /tmp/b2"))) is None


def test_a_response_that_repeats_volatile_text_serves_its_own_prefix_only(cache: Cache) -> None:
    one, other = question(prefix=volatile("in /tmp/a1")), question(prefix=volatile("in /tmp/b2"))
    cache.put(one, Response("", (ToolCall("cat", '{"path": "/tmp/a1"}'),)))
    assert response_of(cache, other) is None
    cache.put(other, Response("cat /tmp/b2"))
    # Both were paid for, and both are there.
    assert response_of(cache, one) is not None
    assert response_of(cache, other) == Response("cat /tmp/b2")


@pytest.mark.parametrize("value", ["", "broken", b"", b"\x00\x01", b"x\x9c broken", zlib.compress(b"{}" * 9)[:-3], 7])
def test_a_corrupt_entry_counts_as_absent_and_is_replaced(cache: Cache, tmp_path: Path, value: object) -> None:
    cache.put(question(), Response("hi"))
    with sqlite3.connect(tmp_path / "cache" / FILE_NAME) as db:
        db.execute("UPDATE responses SET value = ?", (value,))
    assert cache.get(question()) is None
    cache.put(question(), Response("again"))
    assert response_of(cache, question()) == Response("again")


def test_an_entry_that_is_far_too_deep_counts_as_absent(cache: Cache, tmp_path: Path) -> None:
    cache.put(question(), Response("hi"))
    with sqlite3.connect(tmp_path / "cache" / FILE_NAME) as db:
        db.execute("UPDATE responses SET value = ?", (zlib.compress(b"[" * 1_000_000),))
    assert cache.get(question()) is None


@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"])), times=st.sampled_from([1, 400]))
def test_any_text_comes_back_as_it_was_short_or_long(text: str, times: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        said = Response(text * times, (ToolCall("f", text),), extra={"reasoning": text})
        first = Cache(DiskStore(Path(folder)), run="run-1")
        first.put(question(), said)
        assert response_of(first, question()) == said
        first.close()


@pytest.mark.parametrize(
    "response",
    [
        {"content": 7},
        {"content": "\ud800"},
        {"content": "x", "extra": "x"},
        {"content": "x", "usage": [10**40, 0, 0, 0]},
        {"content": "x", "usage": [-1, 0, 0, 0]},
        {"content": "x", "tool_calls": [["f", {}]]},
        {"content": "x", "tool_calls": "f"},
        {"content": "x", "stop": "never"},
        {},
        [],
    ],
)
def test_a_foreign_entry_that_is_no_response_counts_as_absent(cache: Cache, tmp_path: Path, response: Any) -> None:
    value = {"prefix": "x", "run": "y", "response": response}
    DiskStore(tmp_path / "cache").put(question().key(), value)
    assert cache.get(question()) is None


@pytest.mark.parametrize("name", [FILE_NAME, EARLIER_DATABASE])
def test_a_folder_that_is_no_cache_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"not a database" * 1000)
    with pytest.raises(BadInput, match="response cache"):
        DiskStore(tmp_path)


def test_threads_share_it(cache: Cache) -> None:
    def work(number: int) -> None:
        for step in range(1, 40):
            cache.put(question(step=step, instance=str(number)), Response(f"{number}-{step}"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        for step in range(1, 40):
            assert response_of(cache, question(step=step, instance=str(number))) == Response(f"{number}-{step}")


KEEPER = """
import sys
from pathlib import Path
from stepdown.builder.cache.responses import Cache
from stepdown.builder.cache.store import DiskStore
from stepdown.builder.records import Response
from tests.test_cache import question

cache = Cache(DiskStore(Path(sys.argv[1])), run="killed")
for step in range(1, 1_000_000):
    cache.put(question(step=step), Response(f"answer {step}"))
    print(step, flush=True)
"""


@pytest.mark.parametrize("moment", [1, 40, 333])
def test_kill_9_loses_no_response_that_was_kept(tmp_path: Path, moment: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", KEEPER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= moment:
            process.kill()
            break
    last = max([moment, *map(int, process.stdout.read().split()[:-1])])  # the last line may be cut
    process.wait()
    cache = Cache(DiskStore(tmp_path), run="next")
    for step in range(1, last + 1):
        assert response_of(cache, question(step=step)) == Response(f"answer {step}")
    with Inventory(tmp_path) as inventory:
        assert all(not item.problem for item in inventory.read_entries())
