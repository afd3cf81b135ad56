"""Files in the formats of the judged workloads: the project's own, and upstream's where they lie beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.records import Instance, Response, Verdict
from stepdown.harnesses.base import Harness
from tests.conftest import ROOT

OWN = Path(__file__).parent / "data"
UPSTREAM = ROOT.parent / "shared" / "data"


def own(name: str) -> list[dict[str, Any]]:
    """The records of a file of the project's own."""
    return [json.loads(line) for line in (OWN / name).read_text(encoding="utf-8").splitlines()]


def upstream(name: str) -> str:
    """The path of a file as upstream publishes it; the test is skipped where it is not there."""
    path = UPSTREAM / name
    if not path.exists():
        pytest.skip(f"upstream's {name} is not beside the checkout")
    return str(path)


def written(folder: Path, records: Iterable[Mapping[str, Any] | str], name: str = "tasks.jsonl") -> str:
    """The path of a JSONL file of these records; text stands as it is."""
    path = folder / name
    lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def named(harness: Harness, source: Mapping[str, Any], name: str) -> Instance:
    """The instance of this id."""
    return next(instance for instance in harness.instances(source) if instance.id == name)


def verdict(harness: Harness, instance: Instance, response: Response | str) -> tuple[Verdict, str]:
    """The verdict, with its reason, on an episode in which this is the answer."""
    with harness.open(instance) as episode:
        assert not episode.advance(Response(response) if isinstance(response, str) else response)
        ruling = episode.verdict()
        return ruling.verdict, ruling.reason


def changed(record: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with the value at a dotted path replaced; `...` removes it."""
    copy: dict[str, Any] = json.loads(json.dumps(record))
    *way, last = path.split(".")
    place: Any = copy
    for key in way:
        place = place[int(key)] if isinstance(place, list) else place[key]
    if value is ...:
        del place[last]
    elif isinstance(place, list):
        place[int(last)] = value
    else:
        place[last] = value
    return copy
