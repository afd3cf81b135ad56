"""What a workload may add to its contract: files of its own, a second look at seeds, what verdicts rest on, groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepdown.builder.records import Instance, Ruling, Verdict
from tests import workshop
from tests.conftest import Shop
from tests.provider import Provider


class InspectedBench(workshop.Bench):
    """Every verdict is written into the workshop's book; a seed is looked at twice and the second look may differ."""

    _shop: Inspected

    def _inspected(self, look: str) -> Ruling:
        self._shop.book(f"{self._job} {look}")
        return replace(super().verdict(), grading={"pieces": self._made, "spoilt": self._spoilt, "\x00": "\ud800"})

    def verdict(self) -> Ruling:
        return self._inspected("once")

    def seed_verdict(self) -> Ruling:
        ruling = self._inspected("twice")
        wavers = self._job in self._shop.wavering
        return replace(ruling, verdict=Verdict.INCOMPLETE, reason="its grading wavers") if wavers else ruling


class Inspected(workshop.Workshop):
    """A workshop with an inspector; `wavering` jobs are judged differently at every look."""

    def __init__(self, wavering: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(**options)
        self.wavering = wavering
        self._folder: Path | None = None

    def keep_in(self, folder: Path) -> None:
        self._folder = folder

    def book(self, line: str) -> None:
        assert self._folder is not None, "work began before the folder was named"
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "book").open("a") as file:
            file.write(f"{line}\n")

    def instances(self, source: Mapping[str, Any]) -> Iterator[Instance]:
        for number, instance in enumerate(super().instances(source)):
            yield replace(instance, group="morning" if number < 2 else "")

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[InspectedBench]:
        yield InspectedBench(self, instance, at)


def config(url: str, **options: Any) -> dict[str, Any]:
    made = workshop.config(url, [[0, 9], [1, 0], [0, 0]], options=options)
    made["protocol"]["workloads"][0]["harness"] = "tests.test_optional_contract:Inspected"
    return made


def test_a_verdict_s_grounds_are_kept_and_shown_as_evidence(shop: Shop, provider: Callable[..., Provider]) -> None:
    assert shop.build(config(provider().url)).code == 0
    trials = [trial for row in shop.read("evidence.jsonl") for trial in row["trials"]]
    assert {trial["verdict"] for trial in trials} == {"pass", "fail"}
    for trial in trials:
        assert trial["grading"]["spoilt"] == (trial["verdict"] == "fail")


def test_evidence_names_the_group_that_an_honest_evaluation_holds_out(
    shop: Shop, provider: Callable[..., Provider]
) -> None:
    shop.build(config(provider().url))
    groups = {row["id"].split("/")[1]: row["group"] for row in shop.read("evidence.jsonl")}
    assert groups == {"job-0": "morning", "job-1": "morning", "job-2": "job-2"}


def test_a_seed_is_looked_at_its_own_way_and_dropped_where_its_grading_wavers(
    shop: Shop, provider: Callable[..., Provider]
) -> None:
    shop.build(config(provider().url, wavering=["job-1"]))
    assert shop.manifest()["dropped"] == {"workshop": {"no seed passed: its grading wavers": 1}}
    book = (shop.run / "cache" / "workloads" / "workshop" / "book").read_text().splitlines()
    assert [line for line in book if line.endswith("twice")] == ["job-0 twice", "job-1 twice", "job-2 twice"]


def test_a_harness_s_own_files_outlive_the_run_as_the_cache_does(shop: Shop, provider: Callable[..., Provider]) -> None:
    first = config(provider().url)
    first["operation"]["cache"] = "shared"
    shop.build(first)
    assert (shop.folder / "shared" / "workloads" / "workshop" / "book").is_file()
    assert not (shop.run / "cache").exists()
