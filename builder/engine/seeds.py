"""Seeds: trajectories in which the strong model made every step. Imported ones are read and checked here."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from stepdown.builder.common.reading import read_lines
from stepdown.builder.common.text import LONGEST_ID, printable
from stepdown.builder.config.pool import WORKLOAD, Pool
from stepdown.builder.config.protocol import SeedsConfig
from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.engine.recorded import ASSISTANT_FIELDS, RecordedStep
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Response

REFERENCE = WORKLOAD + "reference"
SHOWN_IDS = 5
DEPARTED = "the seed file has no trajectory of it by a model that is still strong"


@dataclass(frozen=True, slots=True)
class Imported:
    """A trajectory from a seed file: the strong model's name in the pool, and its responses in order."""

    model: str
    responses: tuple[Response, ...]


@dataclass(frozen=True, slots=True)
class UnplacedSeeds:
    """Instances of a seed file that are not among those to label."""

    count: int
    of: int
    """Instances that the file has seeds for."""
    first: tuple[str, ...]

    def __str__(self) -> str:
        """A line.

        >>> str(UnplacedSeeds(1, 3, ("a",)))
        'the seed file has seeds for 3 instances; 1 of them is not in the source: a'
        """
        shown = ", ".join(printable(name, LONGEST_ID) for name in self.first) + ", ..." * (self.count > len(self.first))
        seeds = f"the seed file has seeds for {self.of} instances"
        return f"{seeds}; {self.count} of them {'is' if self.count == 1 else 'are'} not in the source: {shown}"


class _Line(Strict):
    """One line of a seed file: `steps`, or the whole chat as `messages`, of which the assistant's are the steps."""

    benchmark: str | None = None
    instance_id: str = Field(min_length=1)
    model: str = Field(min_length=1)
    steps: tuple[RecordedStep, ...] | None = None
    messages: tuple[dict[str, Any], ...] | None = None
    tools: Any = None
    """Stands beside `messages` in many exports. What tools a step has is the workload's to say."""

    @model_validator(mode="after")
    def _one_form(self) -> _Line:
        if (self.steps is None) == (self.messages is None):
            raise ValueError("one of `steps` and `messages` is needed")
        return self


class SeedFile:
    """A JSONL file of recorded trajectories. It is checked as a whole at the start, then read line by line as needed.

    A line: `{"instance_id": ..., "model": <a strong model's name in the pool>, "steps": [{"content", "tool_calls"}]}`,
    or `"messages"` with the whole chat, both in any form that chat APIs write. Several lines of an instance are tried
    in order. Raises BadInput, naming the line and the field.

    `departed` are models that were strong in the run that is relabelled and are not strong any more: their lines are
    skipped. Any other model that is not strong is a mistake in the file or in the pool.
    """

    def __init__(self, path: Path, pool: Pool, benchmark: str, departed: Sequence[str] = ()) -> None:
        self._path, self._pool = path, pool
        self._departed = frozenset(departed) - {model.name for model in pool.tiers[-1].models}
        self._places: dict[str, list[tuple[int, int]]] = {}  # instance id: (line number, offset)
        self._passed_over: set[str] = set()
        offset = 0
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if raw.removeprefix(BOM_UTF8).strip():
                    line, _ = self._parse(number, raw)
                    if line.benchmark not in (None, benchmark):
                        pass
                    elif line.model in self._departed:
                        self._passed_over.add(line.instance_id)
                    else:
                        self._places.setdefault(line.instance_id, []).append((number, offset))
                offset += len(raw)

    def without_instance(self, is_selected: Callable[[str], bool]) -> UnplacedSeeds | None:
        """The instances it has seeds for that no source selects; None where there are none.

        A slip in a name looks like this, and so does a file of more tasks than are wanted.
        """
        unplaced = [name for name in self._places if not is_selected(name)]
        return UnplacedSeeds(len(unplaced), len(self._places), tuple(unplaced[:SHOWN_IDS])) if unplaced else None

    def read(self, instance_id: str) -> Iterator[Imported]:
        """The recorded trajectories of an instance, in the file's order."""
        for number, offset in self._places.get(instance_id, ()):
            with self._path.open("rb") as file:
                file.seek(offset)
                yield self._parse(number, file.readline())[1]

    def why_none(self, instance_id: str) -> str:
        """Why there is no trajectory of an instance: the reason to drop it."""
        return DEPARTED if instance_id in self._passed_over else "the seed file has no trajectory of it"

    def _parse(self, number: int, raw: bytes) -> tuple[_Line, Imported]:
        place: dict[str, Any] = {"file": self._path.name, "line": number}
        line = _read(raw, place)
        if line.model not in {model.name for model in self._pool.tiers[-1].models} | self._departed:
            raise BadInput(f"{line.model!r} is no model of the pool's strong tier", field="model", **place)
        return line, Imported(line.model, tuple(_responses(line, place)))


def recorded_responses(path: Path) -> dict[str, tuple[Response, ...]]:
    """The first trajectory of each instance in a seed file, whichever model made it. Raises BadInput."""
    found: dict[str, tuple[Response, ...]] = {}
    for number, raw in read_lines(path):
        if raw.strip():
            place: dict[str, Any] = {"file": path, "line": number}
            line = _read(raw, place)
            found.setdefault(line.instance_id, tuple(_responses(line, place)))
    return found


def _read(raw: bytes, place: dict[str, Any]) -> _Line:
    try:
        data = json.loads(raw.removeprefix(BOM_UTF8) if place["line"] == 1 else raw)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {getattr(error, 'msg', error)}", **place) from None
    return validated(_Line, data, **place)


def _responses(line: _Line, place: dict[str, Any]) -> Iterator[Response]:
    steps: list[tuple[str, Any]] = [(f"steps.{index}", step) for index, step in enumerate(line.steps or ())]
    for index, message in enumerate(line.messages or ()):
        if message.get("role") == "assistant":
            fields = {key: message[key] for key in ASSISTANT_FIELDS if key in message}
            name = f"messages.{index}"
            steps.append((name, validated(RecordedStep, fields, field=name, **place)))
    for name, step in steps:
        try:
            yield step.response()
        except (ValueError, RecursionError) as error:
            raise BadInput(f"no sound call: {error}", field=f"{name}.tool_calls", **place) from None


def strong_models(seeds: SeedsConfig, pool: Pool) -> list[str]:
    """The strong tier's models that make a workload's seeds, in order. Raises BadInput where there is none."""
    reference = seeds.source == "reference"
    names = [model.name for model in pool.tiers[-1].models if (model.model == REFERENCE) == reference]
    if not names and seeds.source != "import":
        wanted = f"a model {REFERENCE!r}" if reference else f"a model other than {REFERENCE!r}"
        raise BadInput(f"`source: {seeds.source}` needs {wanted} in the pool's strong tier", field="seeds.source")
    return names
