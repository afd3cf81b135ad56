"""Judges cases outside a run: for `stepdown judge`, which tries a judge and calibrates one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stepdown.builder.cache.question import Question
from stepdown.builder.cache.responses import Answer, Cache
from stepdown.builder.cache.store import DiskStore, Store
from stepdown.builder.config.loading import Config
from stepdown.builder.config.protocol import JudgeConfig
from stepdown.builder.errors import BadInput
from stepdown.builder.models import Client
from stepdown.builder.records import Response
from stepdown.judges.case import JudgeCase
from stepdown.judges.exam.asking import examined
from stepdown.judges.exam.probes import Probe
from stepdown.judges.exam.tally import Observation
from stepdown.judges.panel import PanelFinding, judge_case


class ConfiguredJudges:
    """Asks a config's judges, and keeps their responses in the config's cache where it names one."""

    def __init__(self, panel: JudgeConfig, client: Client, cache: Cache) -> None:
        self._panel, self._client, self._cache = panel, client, cache
        self.requests = 0
        """How many calls were made, not taken from the cache."""

    def judge(self, case: JudgeCase) -> PanelFinding:
        """Ask the panel about a case. Raises RunStopped or Interrupted."""
        return judge_case(case, self._panel, self, subject="")

    def examine(self, probe: Probe, judge: str) -> Observation | None:
        """What one judge of the panel makes of a probe; None where it does not answer. Raises as `judge`."""
        alone = self._panel.model_copy(
            update={"models": tuple(model for model in self._panel.models if model.name == judge)}
        )
        return next(iter(examined(probe, alone, self)), None)

    @property
    def panel(self) -> JudgeConfig:
        return self._panel

    def fetch(self, question: Question) -> Answer:
        """The answer to a question, the cache's where it has one. Raises Technical, RunStopped or Interrupted."""
        return self._cache.get_or_ask(question, self._request)

    def _request(self, question: Question) -> Response:
        completion = self._client.complete(question.model, question.prefix, question.sample)
        self.requests += 1
        return completion.response

    def note_failed(self, attempts: Sequence[str]) -> None:
        """Nothing: failed attempts are only recorded in a run."""


@contextmanager
def open_judges(config: Config) -> Iterator[ConfiguredJudges]:
    """Open the judges of a config. Raises BadInput where it has none, or a key is missing."""
    panel = config.protocol.judge
    if panel is None:
        raise BadInput("the config has no judge: name its models in `protocol.judge.models`", field="protocol.judge")
    config.check_keys([model.name for model in panel.models])
    folder = config.operation.cache
    store: Store = DiskStore(folder) if folder is not None else _MemoryStore()
    cache = Cache(store, run="judge")
    try:
        with Client(panel.models, config.operation, threading.Event()) as client:
            yield ConfiguredJudges(panel, client, cache)
    finally:
        cache.close()


class _MemoryStore:
    """A store that lasts as long as the process."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def get(self, key: str) -> Any | None:
        return self._values.get(key)

    def put(self, key: str, value: Any) -> None:
        self._values[key] = value

    def delete(self, key: str) -> None:
        self._values.pop(key, None)

    def close(self) -> None:
        pass
