"""An embedding by a small language model on this machine: the mean of its vectors, from the embedded runtime."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from stepdown.builder.common.bundled import CONFIGS
from stepdown.builder.config.pool import LOCAL, Model, Pool
from stepdown.builder.config.validation import read_yaml, validated
from stepdown.builder.errors import BadInput, Technical
from stepdown.builder.models.local import LocalAddress, Runtime
from stepdown.routing.policies.embeddings import Embedder, encodable, of_length_one
from stepdown.routing.policies.features import shortened

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

POOL = CONFIGS / "pools" / "quickstart.yaml"
"""Its local models are those that there are."""
_DIGITS = 12
"""Of the digest of the weights, in an embedding's name."""
_SECONDS = 600.0
_SHORTEST = 16
"""Characters; a text that does not fit even so is given up."""


@cache
def local_embedding(named: str) -> Embedder:
    """The embedding of a local model of the quickstart's pool: `NAME`, or `NAME@DIGEST` as a policy has it.

    Raises BadInput: no such model, not installed, or of other weights than the policy was made with.
    """
    name, _, digest = named.partition("@")
    models = {model.name: model for _, model in validated(Pool, read_yaml(POOL), file=POOL).models()}
    model = models.get(name)
    if model is None or not model.model.startswith(LOCAL) or model.weights is None:
        known = ", ".join(name for name, one in models.items() if one.model.startswith(LOCAL))
        raise BadInput(f"no local model {name!r}: {known}", field="embedding")
    own = model.weights.sha256[:_DIGITS]
    if digest not in ("", own):
        raise BadInput(f"{name} has the weights {own} here, and not {digest}", field="embedding")
    return _LocalEmbedding(model, f"local:{name}@{own}")


class _LocalEmbedding:
    """Starts its server at once: the size of its vectors is asked of it. It is stopped when the process ends."""

    def __init__(self, model: Model, name: str) -> None:
        runtime = Runtime()
        weakref.finalize(self, runtime.close)
        self._address = runtime.start(model, embeds=True)
        self.name = name
        self.size = len(self._vector("a"))

    def embed(self, texts: Sequence[str]) -> NDArray[float32]:
        import numpy as np

        out = np.zeros((len(texts), self.size), dtype=np.float32)
        for row, text in enumerate(texts):
            if plain := encodable(text).strip():
                out[row] = self._vector(plain)
        return of_length_one(out)

    def _vector(self, text: str) -> list[float]:
        """Of the text, or of as much of its head and tail as fits into the model's context."""
        for tried in _ever_shorter(text):
            if (found := _asked(self._address, tried)) is not None:
                return found
        raise BadInput("the local model embeds no text", field="embedding")


def _ever_shorter(text: str) -> Iterator[str]:
    yield text
    longest = len(text) // 2
    while longest >= _SHORTEST:
        yield shortened(text, longest)
        longest //= 2


def _asked(address: LocalAddress, text: str) -> list[float] | None:
    """The vector of a text; None where the text is too long. Raises Technical where the server fails otherwise."""
    import httpx

    try:
        answer = httpx.post(
            f"{address.url}/v1/embeddings",
            json={"input": text},
            headers={"authorization": f"Bearer {address.key}"},
            timeout=_SECONDS,
            trust_env=False,
        )
    except httpx.HTTPError as error:
        raise Technical(f"the local model did not embed a text: {error}") from None
    if answer.status_code == 200:
        vector: list[float] = answer.json()["data"][0]["embedding"]
        return vector
    if "too large" in answer.text or "context" in answer.text:
        return None
    raise Technical(f"the local model did not embed a text: HTTP {answer.status_code}: {answer.text[:200]}")
