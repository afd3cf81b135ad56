"""A whole search on a repository with a bug: labels follow from what the models can do, whatever happens on the way."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.engine.replay import UNREPEATABLE
from stepdown.harnesses.containers.labels import OWNER, owner
from tests.conftest import Shop
from tests.provider import Answer, Provider, Request
from tests.swebench import abilities, repository
from tests.swebench.conftest import written

pytestmark = pytest.mark.docker


class Executed:
    """The commands that were run in containers of this process while the context was open."""

    def __init__(self, docker: Any) -> None:
        self._docker = docker
        self.commands: list[str] = []

    @contextmanager
    def watching(self) -> Iterator[Executed]:
        events = self._docker.events(decode=True, filters={"event": "exec_create", "label": f"{OWNER}={owner()}"})
        thread = threading.Thread(target=self._note, args=(events,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            time.sleep(0.2)
            events.close()
            thread.join(5)

    def _note(self, events: Any) -> None:
        for event in events:
            self.commands.append(event["Action"])


def test_the_labels_are_those_that_the_abilities_imply(shop: Shop, tmp_path: Path, docker: Any, image: str) -> None:
    file = written(tmp_path / "instances.jsonl", repository.instance(image))
    executed = Executed(docker)
    with Provider(abilities.ABILITIES) as provider, executed.watching():
        result = shop.build(abilities.config(provider.url, str(file)))
        assert result.code == 0, result.err
        assert provider.repeated() == []
    assert shop.labels() == [abilities.LABELS]
    rows = shop.read("question_bank.jsonl")

    # Later prefixes hold what the cheaper models really did, and what really came of it.
    last = rows[-1]["messages"]
    said = [message["content"].split()[0] for message in last if message["role"] == "assistant"]
    assert said == ["looker", "looker", "editor", "editor", "master", "master", "looker"]
    assert all(set(message) <= {"role", "content", "tool_calls", "tool_call_id", "name"} for message in last)
    assert "+++ b/spans.py" in last[-1]["content"]
    assert [tool["function"]["name"] for tool in rows[0]["tools"]] == ["bash"]

    # A candidate that broke the work tree cost its own step only.
    trials = {
        (int(row["id"].rpartition("/")[2]), each["model"]): each
        for row in shop.read("evidence.jsonl")
        for each in row["trials"]
    }
    broke = [step for (step, model), each in trials.items() if model == "looker" and each["verdict"] != "pass"]
    assert broke == [3, 4, 5, 6, 8]
    assert trials[7, "looker"]["verdict"] == "pass"
    assert trials[7, "looker"]["grading"]["resolved"] is True

    # What is locked is executed again once, when its step is done with, and not in every later trial.
    runs = Counter(command for command in executed.commands if "# looker" in command or "# editor" in command)
    assert len(runs) == 5
    assert max(runs.values()) == 2


def test_a_look_at_random_bytes_is_no_lock(shop: Shop, tmp_path: Path, image: str) -> None:
    """It would be other bytes at each replay. The next tier's look is locked, and the search goes on."""

    def answers(request: Request) -> Answer:
        looked: Answer = abilities.worker("looker", {"read"}, "true", text=True, tasks=abilities.SHORT)(request)
        return replace(looked, text=str(looked.text).replace("cat spans.py", "cat spans.py; od -N 8 /dev/urandom"))

    file = written(tmp_path / "instances.jsonl", repository.instance(image))
    with Provider(abilities.SHORT_ABILITIES | {"looker": answers}) as provider:
        result = shop.build(abilities.config(provider.url, str(file)))
        assert result.code == 0, result.err
        assert provider.repeated() == []
    assert shop.labels() == [["mid", *abilities.SHORT_LABELS[1:]]]
    first = shop.read("evidence.jsonl")[0]["trials"]
    assert [(each["model"], each["verdict"]) for each in first] == [("looker", "fail"), ("editor", "pass")]
    assert first[0]["reason"] == UNREPEATABLE


def test_without_checkpoints_the_labels_are_the_same(shop: Shop, tmp_path: Path, image: str) -> None:
    file = written(tmp_path / "instances.jsonl", repository.instance(image))
    with Provider(abilities.SHORT_ABILITIES) as provider:
        assert shop.build(abilities.config(provider.url, str(file), {"checkpoints": False})).code == 0
    assert shop.labels() == [abilities.SHORT_LABELS]
