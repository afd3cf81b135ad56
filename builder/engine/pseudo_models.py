"""Finds a workload's pseudo-models that answer for none of its instances: a misspelt name, above all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stepdown.builder.config.pool import WORKLOAD, Model
from stepdown.builder.config.protocol import ProtocolConfig, WorkloadConfig
from stepdown.builder.engine.seeds import REFERENCE, strong_models
from stepdown.builder.engine.workloads import LoadedWorkload, select_instances
from stepdown.builder.errors import BadInput
from stepdown.builder.records import FIRST, Instance
from stepdown.harnesses.base import Harness
from stepdown.harnesses.checked import answered, opened


def refuse_unknown_pseudo_models(workload: LoadedWorkload, protocol: ProtocolConfig, index: int) -> None:
    """Raises BadInput for a pseudo-model of the pool that this workload has for none of its instances.

    Instances are opened until each name has given an answer. What can not be known so, since the harness breaks, is
    left for its trials to say.
    """
    asked = set(_asked(protocol, workload.config))
    if not asked:
        return
    unknown = sorted(_unanswered(workload.harness, select_instances(index, workload), asked))
    if unknown:
        name = unknown[0]
        problem = f"the workload {workload.harness.name!r} has no pseudo-model {WORKLOAD + name!r} for any instance"
        if type(workload.harness).answer is Harness.answer:
            problem += ": it has no `answer`"
        raise BadInput(problem, field=_field(protocol, name))


def _asked(protocol: ProtocolConfig, workload: WorkloadConfig) -> Iterator[str]:
    """The names that an answer is due of. That `reference` has none is a reason to drop an instance."""
    tiers = protocol.pool.tiers
    makers = strong_models(workload.seeds, protocol.pool)
    for model in [model for tier in tiers[:-1] for model in tier.models[: protocol.rules.cascade]]:
        if model.model.startswith(WORKLOAD):
            yield model.model.removeprefix(WORKLOAD)
    for model in tiers[-1].models:
        if model.name in makers and model.model.startswith(WORKLOAD) and model.model != REFERENCE:
            yield model.model.removeprefix(WORKLOAD)


def _unanswered(harness: Harness, instances: Iterable[Instance], names: set[str]) -> set[str]:
    """Which of the names answer for none of the instances."""
    if type(harness).answer is Harness.answer:
        return names
    left, seen = set(names), False
    for instance in instances:
        if instance.dropped is not None:
            continue
        try:
            with opened(harness, instance) as episode:
                prefix = episode.prefix()
                left = {name for name in left if answered(harness, name, instance, prefix, FIRST) is None}
        except (Exception, SystemExit):  # a harness is anybody's code, and its trials tell what is wrong with it
            return set()
        seen = True
        if not left:
            break
    return left if seen else set()


def _field(protocol: ProtocolConfig, name: str) -> str:
    """Where the config names this pseudo-model."""
    places: Iterator[tuple[int, int, Model]] = (
        (tier, place, model)
        for tier, members in enumerate(protocol.pool.tiers)
        for place, model in enumerate(members.models)
    )
    tier, place = next((t, p) for t, p, model in places if model.model == WORKLOAD + name)
    return f"protocol.pool.tiers.{tier}.models.{place}.model"
