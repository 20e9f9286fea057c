"""Counting tokens with the embedder's own tokenizer.json: no torch, about 20 MB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import NotFound

if TYPE_CHECKING:
    from pathlib import Path


class HfTokenCounter:
    """Implements `core.ports.models.TokenCounter`; safe in threads.

    Args:
        directory: the embedder's directory.

    Raises NotFound when it has no tokenizer.json.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / "tokenizer.json"
        if not path.is_file():
            raise NotFound(
                f"there is no tokenizer at {path}",
                hint="run `pincite models fetch`, or set models.embedder to the model's directory; "
                "its files are needed here even when another machine serves the model",
            )
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(path))
        # Many files are saved with both on: a count would never pass the limit, or never be under.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._num_special_tokens = int(self._tokenizer.num_special_tokens_to_add(False))

    @property
    def num_special_tokens(self) -> int:
        return self._num_special_tokens

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).offsets)
