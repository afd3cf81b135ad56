"""An episode that never halts: its seed has a limit, and a run that is told to stop stops between its steps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stepdown.builder.artifacts.labelling import label_run
from stepdown.builder.cache.inventory import Inventory
from stepdown.builder.config.loading import config_of
from stepdown.builder.engine.replay import replayer
from stepdown.builder.errors import Interrupted
from stepdown.builder.records import Instance, Prefix, Response, Sample
from tests.conftest import Shop
from tests.workshop import Bench, Workshop, config

STOP = threading.Event()


class Treadmill(Bench):
    def advance(self, response: Response) -> bool:
        self._prefix = self._prefix.respond(response).extend([self._order(0)])
        return True


class Endless(Workshop):
    """`trips` is how often its pseudo-model is asked before it tells the run to stop; None: it never does."""

    def __init__(self, trips: int | None = None) -> None:
        super().__init__()
        self.left = trips

    @contextmanager
    def open(self, instance: Instance, at: Any = None) -> Iterator[Bench]:
        yield Treadmill(self, instance, at)

    def answer(self, name: str, instance: Instance, prefix: Prefix, sample: Sample) -> Response | None:
        if self.left is not None:
            self.left -= 1
            if not self.left:
                STOP.set()
        return super().answer(name, instance, prefix, sample)


def settings(trips: int | None) -> dict[str, Any]:
    made = config("http://127.0.0.1:9", [[0]])
    for tier, name in zip(made["protocol"]["pool"]["tiers"], ("skill-0", "skill-1", "reference"), strict=True):
        tier["models"] = [{"name": name, "model": f"workload/{name}"}]
    entry = {"harness": "tests.test_endless_episodes:Endless", "seeds": {"source": "reference"}}
    made["protocol"]["workloads"][0] |= entry | {"options": {"trips": trips}}
    return made


def test_the_seed_of_an_episode_that_never_halts_ends_at_a_limit(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayer, "MOST_SEED_CALLS", 20)
    assert shop.build(settings(None)).code == 0
    assert "no seed passed: stopped at the limit of 20 calls" in str(shop.manifest())
    assert shop.read_json("spend.json")["calls"] == 20


def test_a_run_that_is_told_to_stop_ends_between_the_steps_of_a_trial(shop: Shop) -> None:
    STOP.clear()
    looked_for_names, asked = 2, 5
    with pytest.raises(Interrupted):
        label_run(shop.run, config_of(settings(looked_for_names + asked), shop.folder), stop=STOP)
    with Inventory(shop.run / "cache") as kept:
        assert len(list(kept.read_entries())) == asked
    assert shop.resume().code == 0
    assert shop.read_json("spend.json")["calls"] == replayer.MOST_SEED_CALLS
