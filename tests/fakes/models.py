"""An embedder and a token counter without a model: words hashed into a unit vector."""

import hashlib
import math
import re
from collections.abc import Callable, Sequence

from core.domain.search import EmbedderInfo
from core.errors import InvalidInput, ModelsUnavailable

DIMENSION = 32
MAX_TOKENS = 64
_WORD = re.compile(r"\w+|[^\w\s]")


def hashed_vector(text: str, dimension: int = DIMENSION) -> list[float]:
    """Texts that share words get similar vectors; the same text always the same."""
    values = [0.0] * dimension
    for word in _WORD.findall(text.lower()) or ["?"]:
        digest = hashlib.sha256(word.encode()).digest()
        values[digest[0] % dimension] += 1.0 if digest[1] % 2 else -1.0
        values[digest[2] % dimension] += 0.5
    length = math.sqrt(sum(value * value for value in values)) or 1.0
    return [value / length for value in values] if any(values) else [1.0] + [0.0] * (dimension - 1)


class FakeEmbedder:
    """Implements `core.ports.models.Embedder`. `spoil` may replace the vectors of a call."""

    def __init__(self, fingerprint: str = "fake-embedder", max_tokens: int = MAX_TOKENS) -> None:
        self._info = EmbedderInfo("fake", fingerprint, DIMENSION, max_tokens)
        self.is_down = False
        self.num_passages = 0
        self.spoil: Callable[[list[list[float]]], list[list[float]]] = lambda vectors: vectors

    def info(self) -> EmbedderInfo:
        self._check()
        return self._info

    def embed_questions(self, texts: Sequence[str]) -> list[list[float]]:
        return self._embed(texts)

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = self._embed(texts)
        self.num_passages += len(texts)
        return self.spoil(vectors)

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        self._check()
        counter = FakeTokenCounter()
        for text in texts:
            if counter.count(text) + counter.num_special_tokens > self._info.max_tokens:
                raise InvalidInput("a text is longer than the embedder's limit")
        return [hashed_vector(text) for text in texts]

    def _check(self) -> None:
        if self.is_down:
            raise ModelsUnavailable("the model server does not answer")


class FakeTokenCounter:
    """Implements `core.ports.models.TokenCounter`: words and punctuation marks."""

    num_special_tokens = 2

    def count(self, text: str) -> int:
        return len(_WORD.findall(text))

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _WORD.finditer(text)]
