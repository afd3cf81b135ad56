"""Volatile text that is found: what of an instance's seed differed between plays of it, and the mask made of that."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from stepdown.builder.records import Mask
from stepdown.builder.run.ledger import LabellingLedger
from stepdown.harnesses.base import Harness


class InstanceMask:
    """The mask of one instance: the harness's, or where that finds what is volatile, one of the shapes in its seed.

    The shapes are kept in the ledger with the seed: answers are found again by digests under this mask.
    """

    def __init__(
        self, harness: Harness, ledger: LabellingLedger | None = None, instance: int = 0, known: tuple[str, ...] = ()
    ) -> None:
        """`instance` is its id in the ledger. Without a ledger the shapes are those `known`, and none is kept."""
        self._harness, self._ledger, self._instance, self._known = harness, ledger, instance, known

    @cached_property
    def mask(self) -> Mask | None:
        """None where nothing is volatile."""
        if not self._harness.finds_volatile:
            return self._harness.mask
        return self._harness.mask_of(self._ledger.shapes(self._instance) if self._ledger is not None else self._known)

    def keep(self, shapes: Collection[str]) -> None:
        """Mask these shapes from now on."""
        if self._ledger is not None and shapes:
            self._ledger.keep_shapes(self._instance, sorted(shapes))
            self.__dict__.pop("mask", None)
