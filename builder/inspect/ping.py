"""Whether the models of a config answer: each is asked once, as a build would ask it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from stepdown.builder.config.loading import Config
from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import WORKLOAD, Model
from stepdown.builder.errors import StepdownError
from stepdown.builder.inspect.doctor import Check
from stepdown.builder.models import Client
from stepdown.builder.records import Prefix

_QUESTION = Prefix.start([{"role": "user", "content": "Reply with the word ok."}])


def asked_models(config: Config) -> list[Model]:
    """The models that `ping` asks: those of the pool, the judges and the one for hints, pseudo-models aside."""
    return [model for model in config.protocol.models.values() if not model.model.startswith(WORKLOAD)]


def ping(config: Config) -> Iterator[Check]:
    """Ask every model of a config once, without retries and without tools, with its own parameters.

    Each call is paid for, and kept nowhere. Raises BadInput where a proxy variable can not be used.
    """
    models = asked_models(config)
    with Client(models, _without_retries(config.operation)) as client:
        for model in models:
            yield _asked(client, model, config.operation.endpoint(model.name).api_base)


def _without_retries(operation: OperationConfig) -> OperationConfig:
    return operation.model_copy(update={"retries": operation.retries.model_copy(update={"attempts": 1})})


def _asked(client: Client, model: Model, address: str | None) -> Check:
    part, begun = f"model {model.name}", time.monotonic()
    try:
        usage = client.complete(model, _QUESTION).response.usage
    except StepdownError as error:
        return Check(part, False, str(error))
    place = f" at {address}" if address else ""
    tokens = f"{usage.prompt + usage.completion} tokens, {time.monotonic() - begun:.1f} s"
    return Check(part, True, f"{model.model} answers{place} ({tokens})")
