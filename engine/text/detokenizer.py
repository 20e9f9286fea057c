"""IncrementalDetokenizer: tokens in, whole characters out."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.text.tokenizer import Tokenizer

_MAX_PENDING_BYTES = 3  # of a character of four


class IncrementalDetokenizer:
    """The pieces joined are the text that the output adds to the prompt: what decoding both at once
    gives, less what decoding the prompt gives.

    A token may end inside a character; its bytes wait for the rest. Bytes that cannot become a
    character any more come out as U+FFFD. Control tokens are no text and are passed over.
    """

    def __init__(self, tokenizer: Tokenizer, prompt_token_ids: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        ending = b""
        for token_id in reversed(prompt_token_ids):
            if not tokenizer.is_special(token_id):
                ending = tokenizer.token_bytes(token_id) + ending
            if len(ending) >= _MAX_PENDING_BYTES:
                break
        self._decoder.decode(ending[-_MAX_PENDING_BYTES:])
        self._strips_space = tokenizer.strips_first_space and not ending

    def push(self, token_id: int) -> str:
        """The characters that the token completes; often none."""
        if self._tokenizer.is_special(token_id):
            return ""
        return self._strip(self._decoder.decode(self._tokenizer.token_bytes(token_id)))

    def flush(self) -> str:
        """What is left when no token follows: U+FFFD for half a character."""
        return self._strip(self._decoder.decode(b"", final=True))

    def _strip(self, text: str) -> str:
        if not (text and self._strips_space):
            return text
        self._strips_space = False
        return text[1:] if text.startswith(" ") else text
