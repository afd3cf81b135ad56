"""Snapshots of sandboxes: tagged images of ours that go when nobody holds them any more, within a budget of disk."""

from __future__ import annotations

import logging
import threading
import uuid
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

from stepdown.builder.errors import Lost
from stepdown.harnesses.containers.engine import Engine, reaching
from stepdown.harnesses.swebench import disk
from stepdown.harnesses.swebench.limits import MIB
from stepdown.harnesses.swebench.sandbox import Sandbox

REPOSITORY = "stepdown-snapshot"

_log = logging.getLogger(__name__)

DEEPEST = 100
"""Layers of an image. A snapshot of a container of a snapshot, and so on, can not be started from layer 125 on."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Snapshot:
    """An image that holds a sandbox's files. It is removed when the last reference to this object goes."""

    image: str
    layers: int
    files: disk.ContainerFiles = field(default_factory=disk.ContainerFiles)
    """The files that the last container added: when they were written."""


class Snapshots:
    """Takes snapshots and keeps account of their size. Shared by threads."""

    def __init__(
        self,
        engine: Engine,
        budget_mib: int,
        deepest: int = DEEPEST,
        on_release: Callable[[str], None] = lambda image: None,
    ) -> None:
        """`budget_mib` bounds what all snapshots that are held come to, beyond their instances' own images.

        A container of a snapshot with `deepest` layers is to be no other's origin. `on_release` is told of an image
        just before it is removed.
        """
        self._engine, self._budget, self.deepest = engine, budget_mib * MIB, deepest
        self._held, self._on_release = 0, on_release
        self._doubtful: set[str] = set()
        # A snapshot that goes is noticed wherever memory is tidied up, also by a thread that holds this already.
        self._guard = threading.RLock()

    @property
    def held(self) -> int:
        """Bytes of the snapshots that are held."""
        return self._held

    def take(self, sandbox: Sandbox) -> Snapshot | None:
        """A snapshot of a sandbox in which nothing runs; None where it does not fit the budget, or can not be taken.

        What is not taken is played again. So a request to Docker that fails or takes too long fails no trial.
        """
        self._remove_doubtful()
        if self._held + sandbox.length > self._budget:
            return None
        tag = uuid.uuid4().hex[:16]
        image = f"{REPOSITORY}:{tag}"
        try:
            sandbox.commit(REPOSITORY, tag)
            size, layers = self._measured(image, sandbox.base)
        except Lost as error:
            _log.debug("no snapshot: %s", error)
            # Docker may be at work on it still, and come to an end some time.
            with self._guard:
                self._doubtful.add(image)
            return None
        with self._guard:
            fits = self._held + size <= self._budget
            if fits:
                self._held += size
        if not fits:
            self._remove(image)
            return None
        snapshot = Snapshot(image, layers, sandbox.files or disk.ContainerFiles())
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

    def _remove_doubtful(self) -> None:
        """Remove the images that came to be after nobody waited for them any more."""
        from docker.errors import NotFound

        with self._guard:
            doubtful = list(self._doubtful)
        for image in doubtful:
            try:
                with reaching():
                    self._engine.client.api.remove_image(image, force=True)
            except Lost as error:
                if not isinstance(error.__cause__, NotFound):
                    _log.debug("not removed yet: %s", error)
            else:
                with self._guard:
                    self._doubtful.discard(image)

    def _release(self, image: str, size: int) -> None:
        with self._guard:
            self._held -= size
        self._engine.aside(lambda: self._drop(image))

    def _drop(self, image: str) -> None:
        self._on_release(image)
        self._remove(image)

    def _remove(self, image: str) -> None:
        # By its tag: the layers go when no later snapshot stands on them.
        self._engine.remove(lambda client: client.api.remove_image(image, force=True))
