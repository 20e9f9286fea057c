"""The product's embedder with a cache on disk, so that an evaluation embeds each text once.

The cache is one SQLite file per embedder fingerprint, in a directory of the caller's choice; delete
it freely.
"""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from core.adapters.embed_local import LocalEmbedder
    from core.domain.search import EmbedderInfo
    from core.ports.models import Embedder

_BATCH = 256


class CachedEmbedder:
    """An Embedder that asks another one only for texts it has not seen. For one thread."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self._inner = inner
        folder.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(folder / f"{inner.info().fingerprint[:16]}.sqlite3")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS vectors (text_hash TEXT PRIMARY KEY, vector BLOB NOT NULL)"
        )
        self._known: dict[str, list[float]] = {}

    def info(self) -> EmbedderInfo:
        return self._inner.info()

    def embed_questions(self, texts: Sequence[str]) -> list[list[float]]:
        return self._embed("question", texts)

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        return self._embed("passage", texts)

    def _embed(self, role: str, texts: Sequence[str]) -> list[list[float]]:
        keys = [hashlib.sha256(f"{role}\n{text}".encode()).hexdigest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if not self._load(key)}
        names = list(missing)
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            embed = (
                self._inner.embed_questions if role == "question" else self._inner.embed_passages
            )
            for key, vector in zip(batch, embed([missing[key] for key in batch]), strict=True):
                self._keep(key, vector)
            self._database.commit()
        return [self._known[key] for key in keys]

    def _load(self, key: str) -> bool:
        if key in self._known:
            return True
        row = self._database.execute(
            "SELECT vector FROM vectors WHERE text_hash = ?", (key,)
        ).fetchone()
        if row is not None:
            self._known[key] = np.frombuffer(row[0], np.float32).tolist()
        return row is not None

    def _keep(self, key: str, vector: Sequence[float]) -> None:
        self._known[key] = np.asarray(vector, np.float32).tolist()
        self._database.execute(
            "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
            (key, np.asarray(vector, np.float32).tobytes()),
        )


class CroppingEmbedder:
    """A local embedder that reads only the beginning of texts over its limit, as published figures
    do; the product splits them instead."""

    def __init__(self, inner: LocalEmbedder) -> None:
        self._inner = inner

    def info(self) -> EmbedderInfo:
        return self._inner.info()

    def embed_questions(self, texts: Sequence[str]) -> list[list[float]]:
        return self._inner.embed_questions(self._cropped(texts))

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        return self._inner.embed_passages(self._cropped(texts))

    def _cropped(self, texts: Sequence[str]) -> list[str]:
        limit = self._inner.info().max_tokens
        counts = self._inner.count_tokens(texts)
        return [
            text if count <= limit else self._crop(text, limit)
            for text, count in zip(texts, counts, strict=True)
        ]

    def _crop(self, text: str, limit: int) -> str:
        low, high = 1, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._inner.count_tokens([text[:middle]])[0] <= limit
            low, high = (middle, high) if fits else (low, middle - 1)
        return text[:low]


def open_embedder(directory: Path) -> CroppingEmbedder:
    """The embedder of a model's directory, in this process.

    Raises NotFound or InvalidInput for a directory without a usable model.
    """
    from core.adapters.embed_local import LocalEmbedder

    return CroppingEmbedder(LocalEmbedder(directory, max_batch=32))
