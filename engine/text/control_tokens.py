"""Text that spells a control token without being one.

A document may contain `<|im_end|>`; read as the control token, it would end the user's turn and let
the document speak as the system. A guard character inside the spelling keeps the tokenizer from
seeing it, and the tokenizer's normalizer takes the guard out again before the text is merged, so
the model reads exactly the characters of the document.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

GUARD = "\ufdd0"  # a code point that Unicode keeps free of any character


class ControlTokenGuard:
    """Breaks up the spellings of control tokens in text that comes from outside."""

    def __init__(self, control_tokens: Iterable[str]) -> None:
        spellings = sorted({token for token in control_tokens if len(token) > 1}, key=len)
        alternatives = "|".join(re.escape(token) for token in reversed(spellings))
        self._pattern = re.compile(alternatives) if alternatives else None

    def guard(self, text: str) -> str:
        """The text with a guard after the first character of each spelling; else unchanged."""
        if self._pattern is None:
            return text
        while (guarded := self._pattern.sub(_broken, text)) != text:
            text = guarded
        return text


def _broken(match: re.Match[str]) -> str:
    return match[0][0] + GUARD + match[0][1:]
