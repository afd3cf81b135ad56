"""What routers see of an item before any model is asked: its text, and metadata that are numbers or categories.

All of it becomes columns by what is known of training items alone: words and their weights, means and spreads,
categories. An item's group is no feature: a held-out one is never known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import bool_, float64
    from numpy.typing import NDArray


class Sight(StrEnum):
    """How much of an item a router is shown."""

    ALL = "all"
    TEXT = "text"
    METADATA = "metadata"


class Kind(StrEnum):
    """How a feature becomes columns."""

    TEXT = "text"
    NUMBER = "number"
    CATEGORY = "category"


@dataclass(frozen=True, slots=True)
class Feature:
    """One property of all items."""

    name: str
    values: tuple[float, ...] | tuple[str, ...]
    """Of each item. Numbers, NaN where one is missing; or words, empty where one is missing."""

    @property
    def kind(self) -> Kind:
        """Whether it is a number or a category."""
        return Kind.CATEGORY if isinstance(self.values[0], str) else Kind.NUMBER

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for all items, and so tells none from another."""
        return len(set(map(str, self.values))) < 2

    def columns(self, training: NDArray[bool_]) -> Any:
        """Its columns of all items, sparse, fitted on the training ones."""
        import numpy as np
        from scipy.sparse import csr_matrix

        if self.kind is Kind.NUMBER:
            return csr_matrix(standardised(np.array(self.values, dtype=np.float64), training))
        return _one_hot([str(value) for value in self.values], training)


@dataclass(frozen=True, slots=True)
class SeenFeature:
    """What is said of a feature that routers saw."""

    name: str
    kind: Kind
    values: int
    """How many different ones there are."""
    missing: int
    """How many items have none."""


def seen_features(texts: Sequence[str] | None, metadata: Sequence[Feature]) -> tuple[SeenFeature, ...]:
    """The text, where any item has one, and the metadata in their order."""
    found = [_seen("text", Kind.TEXT, texts)] if texts is not None and any(texts) else []
    return (*found, *(_seen(one.name, one.kind, one.values) for one in metadata))


def _seen(name: str, kind: Kind, values: Sequence[float] | Sequence[str]) -> SeenFeature:
    there = [value for value in values if value != "" and not (isinstance(value, float) and math.isnan(value))]
    return SeenFeature(name, kind, len(set(there)), len(values) - len(there))


def columns(texts: Sequence[str] | None, metadata: Sequence[Feature], training: NDArray[bool_]) -> Any:
    """The columns of all items, sparse, fitted on the training ones: TF-IDF of words and their pairs and the length of
    the text, then each of the metadata. None where there is nothing to learn from.
    """
    from scipy.sparse import hstack

    parts = [*_of_texts(texts, training), *(one.columns(training) for one in metadata)]
    return hstack(parts).tocsr() if parts else None


def _of_texts(texts: Sequence[str] | None, training: NDArray[bool_]) -> list[Any]:
    import numpy as np

    if texts is None or not any(texts):
        return []
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    try:
        words.fit([text for text, is_training in zip(texts, training, strict=True) if is_training])
    except ValueError:  # no word stands in two items
        return []
    lengths = np.log1p([len(text) for text in texts])
    return [words.transform(texts), csr_matrix(standardised(lengths, training))]


def standardised(values: NDArray[float64], training: NDArray[bool_]) -> NDArray[float64]:
    """Numbers less the mean of the training ones, over their spread. A missing one (NaN) takes that mean, and where
    any is missing a second column marks which.

    >>> import numpy as np
    >>> standardised(np.array([1.0, 3.0, np.nan, 6.0]), np.array([True, True, True, False])).tolist()
    [[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [4.0, 0.0]]
    """
    import numpy as np

    missing = np.isnan(values)
    known = values[training & ~missing]
    if not known.size:
        scaled = np.zeros(len(values))  # nothing is known of what a number would mean
    else:
        spread = known.std() if known.min() < known.max() else 1.0
        scaled = np.where(missing, 0.0, (values - known.mean()) / (spread or 1.0))
    return np.column_stack([scaled, missing]) if missing.any() else scaled[:, None]


def _one_hot(values: Sequence[str], training: NDArray[bool_]) -> Any:
    """A column for each category of the training items, a missing one among them; one that they lack has none."""
    import numpy as np
    from scipy.sparse import csr_matrix

    known = sorted({value for value, is_training in zip(values, training, strict=True) if is_training})
    place = {value: column for column, value in enumerate(known)}
    found = [(row, place[value]) for row, value in enumerate(values) if value in place]
    rows, at = zip(*found, strict=True) if found else ((), ())
    return csr_matrix((np.ones(len(found)), (rows, at)), shape=(len(values), len(known)))
