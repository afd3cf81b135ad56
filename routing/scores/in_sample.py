"""The nearest neighbour in sample: an upper reference and no router, since it has seen the rows it is scored on.

Each row gets the label of the first row of the bank whose latest user text is the most alike (the paper's SR-KNN).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepdown.builder.artifacts.rows import read_rows
from stepdown.builder.digests import digest
from stepdown.builder.records import Message
from stepdown.routing.policies.contract import Choice, View
from stepdown.routing.policies.embeddings import HASHED, embedder
from stepdown.routing.policies.features import shortened, text_of
from stepdown.scoring.bank import Bank

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "nearest-in-sample"
_BATCH = 256


class NearestInSample:
    """Made of the very rows that are scored; marked as such wherever it is shown."""

    name = NAME

    def __init__(self, bank: Bank, embedding: str = HASHED) -> None:
        import numpy as np

        self._embedder = embedder(embedding)
        self._tiers: list[str] = []
        texts: list[str] = []
        points = []
        for _, row in read_rows(bank.rows):
            texts.append(latest_request(row.messages))
            self._tiers.append(row.target_tier)
            if len(texts) == _BATCH:
                points.append(self._embedder.embed(texts))
                texts = []
        points.append(self._embedder.embed(texts))
        self._points = np.concatenate(points)
        self.version = digest([self._embedder.name, self._tiers])[:16]

    def choose(self, view: View) -> Choice:
        near = self._points @ self._embedder.embed([latest_request(view.messages)])[0]
        return Choice(self._tiers[int(near.argmax())], reason="the most alike row of the scored bank")


def latest_request(messages: Sequence[Message]) -> str:
    """The latest user text, shortened."""
    return next((shortened(text_of(m)) for m in reversed(messages) if m.get("role") == "user"), "")
