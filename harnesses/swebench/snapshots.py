"""Snapshots of sandboxes: tagged images of ours that go when nobody holds them any more, within a budget of disk."""

from __future__ import annotations

import threading
import uuid
import weakref
from dataclasses import dataclass

from stepdown.harnesses.swebench.engine import Engine, reaching
from stepdown.harnesses.swebench.limits import MIB
from stepdown.harnesses.swebench.sandbox import Sandbox

REPOSITORY = "stepdown-snapshot"

DEEPEST = 100
"""Layers of an image. A snapshot of a container of a snapshot, and so on, can not be started from layer 125 on."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Snapshot:
    """An image that holds a sandbox's files. It is removed when the last reference to this object goes."""

    image: str
    layers: int


class Snapshots:
    """Takes snapshots and keeps account of their size. Shared by threads."""

    def __init__(self, engine: Engine, budget_mib: int, deepest: int = DEEPEST) -> None:
        """`budget_mib` bounds what all snapshots that are held come to, beyond their instances' own images.

        A container of a snapshot with `deepest` layers is to be no other's origin.
        """
        self._engine, self._budget, self.deepest = engine, budget_mib * MIB, deepest
        self._held = 0
        # A snapshot that goes is noticed wherever memory is tidied up, also by a thread that holds this already.
        self._guard = threading.RLock()

    @property
    def held(self) -> int:
        """Bytes of the snapshots that are held."""
        return self._held

    def take(self, sandbox: Sandbox) -> Snapshot | None:
        """A snapshot of a sandbox in which nothing runs; None where it does not fit the budget. Raises Lost."""
        if self._held + sandbox.length > self._budget:
            return None
        tag = uuid.uuid4().hex[:16]
        sandbox.commit(REPOSITORY, tag)
        image = f"{REPOSITORY}:{tag}"
        try:
            size, layers = self._measured(image, sandbox.base)
        except BaseException:
            self._remove(image)
            raise
        with self._guard:
            fits = self._held + size <= self._budget
            if fits:
                self._held += size
        if not fits:
            self._remove(image)
            return None
        snapshot = Snapshot(image, layers)
        weakref.finalize(snapshot, self._release, image, size)
        return snapshot

    def is_there(self, snapshot: Snapshot) -> bool:
        """Whether the image is still there: anybody may have pruned it. Raises Lost."""
        from docker.errors import ImageNotFound

        with reaching():
            try:
                self._engine.client.api.inspect_image(snapshot.image)
            except ImageNotFound:
                return False
        return True

    def _measured(self, image: str, base: str) -> tuple[int, int]:
        """Bytes beyond the instance's own image, and layers."""
        with reaching():
            api = self._engine.client.api
            made, own = api.inspect_image(image), api.inspect_image(base)
        return max(0, made["Size"] - own["Size"]), len(made["RootFS"]["Layers"])

    def _release(self, image: str, size: int) -> None:
        with self._guard:
            self._held -= size
        self._remove(image)

    def _remove(self, image: str) -> None:
        # By its tag: the layers go when no later snapshot stands on them.
        self._engine.remove(lambda client: client.api.remove_image(image, force=True))
