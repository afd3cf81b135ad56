"""Policies that were made from labels: multinomial logistic regression, and the nearest neighbours of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepdown.builder.errors import BadInput
from stepdown.routing.policies.contract import Choice, View
from stepdown.routing.policies.embeddings import Embedder, embedder
from stepdown.routing.policies.features import figures, latest_text
from stepdown.routing.policies.stored import ARRAYS, POLICY, Inputs, PolicyFile, read_policy

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

_BATCH = 256
"""Texts that are embedded together."""


def load_trained(folder: Path) -> Trained:
    """The policy of a folder. Raises BadInput where it holds none, or its arrays do not fit what it says it is."""
    made, arrays = read_policy(folder)
    try:
        return KINDS[made.kind](made, arrays)
    except KeyError as error:
        raise BadInput(f"has no array {error}", file=folder / ARRAYS) from None
    except (ValueError, TypeError, OverflowError) as error:
        raise BadInput(f"its arrays do not fit it: {error}", file=folder / POLICY) from None


class Reader:
    """Turns views into rows of numbers: the embedding of the latest text, then the figures, scaled as in training."""

    def __init__(self, inputs: Inputs, centre: NDArray[float64] | None = None, spread: NDArray[float64] | None = None):
        self._inputs, self._embedder = inputs, embedder(inputs.embedding)
        self._centre, self._spread = centre, spread

    @property
    def embedder(self) -> Embedder:
        return self._embedder

    @property
    def width(self) -> int:
        return self._embedder.size + len(self._inputs.figures)

    def read(self, views: Sequence[View]) -> NDArray[float64]:
        """Views by columns. Raises BadInput for figures that there are not."""
        import numpy as np

        parts = []
        for start in range(0, len(views), _BATCH):
            batch = views[start : start + _BATCH]
            words = self._embedder.embed([latest_text(view.messages) for view in batch]).astype(np.float64)
            counts = np.stack([figures(view, self._inputs.figures) for view in batch])
            parts.append(np.hstack([words, counts]))
        found = np.concatenate(parts) if parts else np.zeros((0, self.width))
        if self._centre is None or self._spread is None:
            return found
        return (found - self._centre) / self._spread


class Trained:
    """What every policy of a folder has in common: its tiers and its reading of a view."""

    def __init__(self, made: PolicyFile, arrays: Mapping[str, NDArray[Any]]) -> None:
        import numpy as np

        self.made, self.name, self.version = made, made.name, made.version
        centre, spread = (np.asarray(arrays[name], dtype=np.float64) for name in ("centre", "spread"))
        self._reader = Reader(made.inputs, centre, spread)
        for name, array in (("centre", centre), ("spread", spread)):
            _fits(name, array, (self._reader.width,))
        if not (spread > 0).all():
            raise ValueError("`spread` must be above 0")
        confidence = made.settings.get("confidence")
        if confidence is not None and not (type(confidence) in (int, float) and 0 < confidence <= 1):
            raise ValueError("`confidence` must be a probability")
        self._confidence = confidence

    def probabilities(self, views: Sequence[View]) -> NDArray[float64]:
        """Views by tiers: how likely each tier is the cheapest that is enough."""
        return self._probabilities(self._reader.read(views))

    def choose(self, view: View) -> Choice:
        return self.choose_all([view])[0]

    def choose_all(self, views: Sequence[View]) -> list[Choice]:
        """The choices for many views, embedded together. Raises BadInput where a view offers other tiers."""
        for view in views:
            if tuple(view.tiers) != self.made.tiers:
                known, asked = ", ".join(self.made.tiers), ", ".join(view.tiers)
                raise BadInput(f"policy {self.name!r} knows the tiers {known}; it is asked about {asked}")
        return [self._decide(row) for row in self.probabilities(views)]

    def _decide(self, row: NDArray[float64]) -> Choice:
        """The likeliest tier; or, with `confidence`, the cheapest that is enough with that probability."""
        tier = int(row.argmax())
        if self._confidence is not None:
            tier = next((index for index, sure in enumerate(row.cumsum()) if sure >= self._confidence), len(row) - 1)
        scores = {name: round(float(score), 6) for name, score in zip(self.made.tiers, row, strict=True)}
        chosen = self.made.tiers[tier]
        return Choice(chosen, scores=scores, reason=f"{self.made.kind}: {scores[chosen]:.2f}")

    def _probabilities(self, rows: NDArray[float64]) -> NDArray[float64]:
        raise NotImplementedError


class Logistic(Trained):
    """Multinomial logistic regression, its scores divided by a temperature that calibrates them (paper, 5.3)."""

    def __init__(self, made: PolicyFile, arrays: Mapping[str, NDArray[Any]]) -> None:
        import numpy as np

        super().__init__(made, arrays)
        self._weights = np.asarray(arrays["weights"], dtype=np.float64)
        self._bias = np.asarray(arrays["bias"], dtype=np.float64)
        self._temperature = float(arrays["temperature"])
        _fits("weights", self._weights, (len(made.tiers), self._reader.width))
        _fits("bias", self._bias, (len(made.tiers),))
        if not self._temperature > 0:
            raise ValueError("`temperature` must be above 0")

    def _probabilities(self, rows: NDArray[float64]) -> NDArray[float64]:
        return softmax((rows @ self._weights.T + self._bias) / self._temperature)


class Nearest(Trained):
    """The share of each label among the `k` most alike calls it was made from, by cosine."""

    def __init__(self, made: PolicyFile, arrays: Mapping[str, NDArray[Any]]) -> None:
        import numpy as np

        super().__init__(made, arrays)
        self._points = np.asarray(arrays["points"], dtype=np.float32)
        self._labels = np.asarray(arrays["labels"], dtype=np.int64)
        self._k = int(made.settings.get("k", 1))
        _fits("points", self._points, (len(self._labels), self._reader.width))
        known = (self._labels >= 0) & (self._labels < len(made.tiers))
        if self._k < 1 or not len(known) or not known.all():
            raise ValueError("`k` must be 1 or more, and `labels` numbers of tiers")

    def _probabilities(self, rows: NDArray[float64]) -> NDArray[float64]:
        import numpy as np

        out = np.zeros((len(rows), len(self.made.tiers)))
        near = of_length_one(rows).astype(np.float32) @ self._points.T
        k = min(self._k, len(self._labels))
        for place, row in enumerate(near):
            # Equal neighbours in the order of the labels' file, so that a choice does not hang on a sort's whim.
            nearest = np.argsort(-row, kind="stable")[:k]
            out[place] = np.bincount(self._labels[nearest], minlength=out.shape[1]) / k
        return out


KINDS: Mapping[str, type[Trained]] = {"logistic": Logistic, "nearest": Nearest}


def softmax(scores: NDArray[float64]) -> NDArray[float64]:
    """Each row as probabilities. A score of minus infinity is a probability of 0."""
    import numpy as np

    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def of_length_one(rows: NDArray[float64]) -> NDArray[float64]:
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1))


def _fits(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    import numpy as np

    if array.shape != shape:
        raise ValueError(f"`{name}` has the shape {array.shape}, not {shape}")
    if np.isnan(array).any() or np.isposinf(array).any():
        raise ValueError(f"`{name}` holds what is no number")
