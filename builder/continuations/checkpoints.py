"""Checkpoints, frozen before the first model is asked: the steps before each, and the texts that contexts replace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stepdown.builder.common.text import nearest, printable
from stepdown.builder.continuations.cells import same_place
from stepdown.builder.continuations.plan import CheckpointEntry, ContextEntry, LoadedPlan
from stepdown.builder.continuations.variants import TooSlow, found_texts, with_neutral_texts
from stepdown.builder.engine.volatile import InstanceMask
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Mask, Prefix, Response, Step, Trajectory
from stepdown.builder.run.ledger import InstanceRecord, Ledger
from stepdown.builder.run.reading import open_begun_ledger
from stepdown.harnesses.base import Harness

Replaced = tuple[tuple[str, str], ...]
"""Texts, each with the neutral one in its place."""


@dataclass(frozen=True, slots=True)
class FrozenCheckpoint:
    """A checkpoint with all that its executions go on from. JSON holds it: the run that it is from may go."""

    name: str
    benchmark: str
    instance: str
    step: int
    parent: str
    stage: str
    condition: str
    steps: Sequence[Mapping[str, Any]]
    """The trajectory up to the step, as `steps_json` writes it."""
    shapes: tuple[str, ...]
    """Of volatile text in the instance's seed, where its workload finds such."""
    replaced: Mapping[str, Replaced]
    """By context."""

    def trajectory(self, mask: Mask | None) -> Trajectory:
        """Its steps, the last of which is the one to be made anew."""
        return steps_of(self.steps, mask)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FrozenCheckpoint:
        """The inverse, of what this version of stepdown wrote."""
        replaced = {name: tuple((old, new) for old, new in pairs) for name, pairs in data["replaced"].items()}
        return cls(**{**data, "shapes": tuple(data["shapes"]), "replaced": replaced})


def steps_json(trajectory: Sequence[Step], before: Prefix | None = None) -> list[dict[str, Any]]:
    """Steps as JSON, each with the messages that its prefix adds to the one before; `before` is that of the first."""
    written = []
    for step in trajectory:
        prefix, grown = step.prefix, before is not None and step.prefix.grew_from(before)
        kept = len(before.messages) if before is not None and grown else 0
        one: dict[str, Any] = {"kept": kept, "added": list(prefix.messages[kept:])}
        if before is None or prefix.tools_digest != before.tools_digest:
            one["tools"] = list(prefix.tools)
        written.append({**one, "model": step.model, "response": step.response.to_json()})
        before = prefix
    return written


def steps_of(written: Iterable[Mapping[str, Any]], mask: Mask | None) -> Trajectory:
    """The inverse of `steps_json` of a whole trajectory."""
    steps: list[Step] = []
    for one in written:
        before = steps[-1].prefix if steps else Prefix.start((), (), mask)
        prefix = before.extend(one["added"]) if one["kept"] else Prefix.start(one["added"], before.tools, mask)
        if "tools" in one:
            prefix = prefix.with_tools(one["tools"])
        steps.append(Step(prefix, Response.from_json(one["response"]), one["model"]))
    return tuple(steps)


def frozen_checkpoints(loaded: LoadedPlan, harnesses: Mapping[str, Harness]) -> list[FrozenCheckpoint]:
    """The plan's checkpoints, in its order, read from their runs; `harnesses` are the config's, by benchmark.

    Raises BadInput, naming file, line and field: no such run, instance, trajectory or step; a text that a context
    replaces and that is not there; two checkpoints that could not be told apart.
    """
    frozen: list[FrozenCheckpoint] = []
    for place, entry in enumerate(loaded.plan.checkpoints):
        one = _Freezing(loaded, place, entry).freeze(harnesses)
        for other in frozen:
            if other.name == one.name:
                raise loaded.wrong(f"two checkpoints have the name {one.name!r}: give one a `name`", *_at(place))
            if _is_same_place(one, other):
                said = f"{other.name!r} is of the same parent, stage and condition"
                raise loaded.wrong(f"{said}: they could not be compared", *_at(place))
        frozen.append(one)
    return frozen


def _at(place: int, *field: str) -> tuple[str | int, ...]:
    return ("checkpoints", place, *field)


def _is_same_place(one: FrozenCheckpoint, other: FrozenCheckpoint) -> bool:
    place = same_place(one.parent, one.condition, one.stage)
    return place is not None and place == same_place(other.parent, other.condition, other.stage)


class _Freezing:
    """One entry of a plan on its way to a frozen checkpoint."""

    def __init__(self, loaded: LoadedPlan, place: int, entry: CheckpointEntry) -> None:
        self._loaded, self._place, self._entry = loaded, place, entry

    def _wrong(self, problem: str, *field: str) -> BadInput:
        return self._loaded.wrong(problem, *_at(self._place, *field))

    def freeze(self, harnesses: Mapping[str, Harness]) -> FrozenCheckpoint:
        entry = self._entry
        harness = harnesses.get(entry.benchmark)
        if harness is None:
            known = ", ".join(harnesses)
            raise self._wrong(f"the config has no workload {printable(entry.benchmark, 60)!r}: {known}", "benchmark")
        try:
            with open_begun_ledger(self._loaded.file.parent / entry.run) as ledger:
                record = self._record(ledger)
                mask = InstanceMask(harness, ledger, record.id).mask
                trajectory = ledger.trajectories.read(self._trial(record), mask)
                shapes = ledger.shapes(record.id)
        except BadInput as error:
            if error.field is not None:
                raise
            raise self._wrong(str(error), "run") from None
        if entry.step > len(trajectory):
            raise self._wrong(f"the {entry.trajectory} trajectory has {len(trajectory)} steps", "step")
        steps = trajectory[: entry.step]
        return FrozenCheckpoint(
            name=self._name(),
            benchmark=entry.benchmark,
            instance=entry.instance,
            step=entry.step,
            parent=entry.parent or f"{entry.benchmark}/{record.group}",
            stage=entry.stage or "",
            condition=entry.condition or "",
            steps=steps_json(steps),
            shapes=shapes,
            replaced={context.name: self._replaced(context, steps[-1].prefix) for context in self._contexts},
        )

    @property
    def _contexts(self) -> Sequence[ContextEntry]:
        return self._loaded.plan.contexts

    def _name(self) -> str:
        entry = self._entry
        own = f"{entry.benchmark}/{entry.instance}/{entry.step}"
        return entry.name or (own if entry.trajectory == "seed" else f"locked/{own}")

    def _record(self, ledger: Ledger) -> InstanceRecord:
        entry = self._entry
        try:
            return ledger.instance(entry.benchmark, entry.instance)
        except KeyError:
            there = [one.instance_id for one in ledger.instances() if one.benchmark == entry.benchmark]
            meant = nearest(entry.instance, there)
            hint = f": did you mean {meant!r}?" if meant else ""
            raise self._wrong(f"the run has no instance {printable(entry.instance, 60)!r}{hint}", "instance") from None

    def _trial(self, record: InstanceRecord) -> int:
        """The trial whose record holds the trajectory."""
        found = record.seed if self._entry.trajectory == "seed" else record.final
        if found is None:
            state = f"the instance is {record.state.value}"
            raise self._wrong(f"there is no {self._entry.trajectory} trajectory: {state}", "trajectory")
        return found

    def _replaced(self, context: ContextEntry, prefix: Prefix) -> Replaced:
        place = self._contexts.index(context)
        found: list[tuple[str, str | None]] = []
        for number, wanted in enumerate(context.replace):
            field = ("contexts", place, "replace", number)
            if wanted.text is None and wanted.pattern is None and self._entry.text is None:
                raise self._wrong(f"context {context.name!r} replaces the checkpoint's text, and it has none", "text")
            try:
                texts = found_texts(prefix, wanted, self._entry.text)
            except TooSlow:
                raise self._loaded.wrong("the pattern takes too long", *field, "pattern") from None
            if not texts:
                problem = f"what it replaces is not in the messages of checkpoint {self._name()!r}"
                raise self._loaded.wrong(problem, *field)
            found += [(text, wanted.by) for text in texts]
        return with_neutral_texts(found)


def as_published(frozen: FrozenCheckpoint, mask: Mask | None = None) -> dict[str, Any]:
    """A checkpoint as `checkpoints.jsonl` has it: the prefix that models go on from, its digest, what is replaced."""
    prefix = frozen.trajectory(mask)[-1].prefix
    about = {name: value for name, value in frozen.to_json().items() if name not in ("steps", "shapes")}
    return {**about, "digest": prefix.exact, "messages": list(prefix.messages), "tools": list(prefix.tools)}
