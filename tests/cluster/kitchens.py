"""A workload whose instances need something of a node: a resource that it states, and images that can be fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stepdown.harnesses.base import Need, NodeNeeds
from tests.workshop import Workshop


class Kitchen(Workshop):
    """Its images are files in a folder that stands for a node's own."""

    def __init__(self, pantry: str = "", room: bool = True, broken: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._pantry, self._room, self._broken = Path(pantry), room, broken

    def node_needs(self, source: Mapping[str, Any]) -> NodeNeeds:
        return NodeNeeds({"docker": 1}, ("bread", "salt"))

    def prepare_node(self, needs: NodeNeeds, archives: Path | None = None) -> Iterator[Need]:
        if self._broken:
            raise RuntimeError("the oven is cold")
        yield Need("pantry", self._room, str(self._pantry) if self._room else "it is full")
        if not self._room:
            return
        absent = [name for name in needs.images if not (self._pantry / name).exists()]
        for name in absent:
            (self._pantry / name).touch()
        yield Need("images", True, f"{len(absent)} fetched now")
        yield Need("spice", False, "a pinch would be nice", needed=False)
