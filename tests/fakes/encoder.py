"""A text encoder without a model, for the model server's own tests."""

import threading
from collections.abc import Sequence

from core.domain.search import EmbedderInfo
from tests.fakes.models import DIMENSION, FakeTokenCounter, hashed_vector

MAX_TOKENS = 64


class FakeEncoder:
    """Implements `pincite.servers.models.owner.TextEncoder`. `gate` holds batches back until it is
    set; `batches` are the texts of each; a text "raise" makes its batch fail."""

    device = "cpu"
    precision = "fp32"

    def __init__(self) -> None:
        self.prompts = {"query": "query: "}
        self.batches: list[list[str]] = []
        self.prompt_names: list[str | None] = []
        self.gate = threading.Event()
        self.gate.set()
        self.has_begun = threading.Event()
        self.thread_names: set[str] = set()

    def info(self) -> EmbedderInfo:
        return EmbedderInfo("fake", "fake-fingerprint", DIMENSION, MAX_TOKENS)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        counter = FakeTokenCounter()
        return [counter.count(text) + counter.num_special_tokens for text in texts]

    def encode(self, texts: Sequence[str], prompt_name: str | None = None) -> list[list[float]]:
        self.thread_names.add(threading.current_thread().name)
        self.has_begun.set()
        self.gate.wait()
        self.batches.append(list(texts))
        self.prompt_names.append(prompt_name)
        if "raise" in texts:
            raise RuntimeError("told to raise")
        return [hashed_vector(text) for text in texts]
