"""Tokenizer: text to token ids and back, from a model directory in Hugging Face layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer as RustTokenizer
from tokenizers import normalizers

from engine.errors import InvalidRequest, ModelLoadError
from engine.text.config_files import read_optional_json
from engine.text.control_tokens import GUARD
from engine.text.token_spelling import spelling_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from engine.text.token_spelling import TokenSpelling

# Control tokens that end a text or a turn in the usual chat formats. Configurations often name only
# one of them, and a model that writes another would go on until it is cut off.
_END_TOKENS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end|>",
    "<end_of_turn>",
    "</s>",
)


class Tokenizer:
    """Immutable after loading; safe to use from several threads.

    vocab_size: token ids the tokenizer knows, control tokens included; the model may have more.
    eos_token_ids: every token that ends an output.
    bos_token_id: of the token that begins a text, where the model has one.
    special_tokens: control tokens, spelling -> id; they are no text.
    """

    def __init__(
        self,
        backend: RustTokenizer,
        *,
        eos_token_ids: Iterable[int] = (),
        bos_token_id: int | None = None,
    ) -> None:
        """Takes the backend over: padding and truncation that were saved with it are switched off.

        Raises ModelLoadError when its decoder is not one of the supported kinds.
        """
        backend.no_padding()
        backend.no_truncation()
        self._spelling: TokenSpelling = spelling_of(backend)
        remove_guard = normalizers.Replace(GUARD, "")
        own = backend.normalizer
        backend.normalizer = (
            remove_guard if own is None else normalizers.Sequence([remove_guard, own])
        )
        self._backend = backend
        self._bytes: dict[int, bytes] = {}
        added = backend.get_added_tokens_decoder()
        self.special_tokens = {
            token.content: token_id for token_id, token in added.items() if token.special
        }
        self._special_ids = frozenset(self.special_tokens.values())
        self.vocab_size: int = backend.get_vocab_size(with_added_tokens=True)
        known_ends = (self.special_tokens.get(token) for token in _END_TOKENS)
        self.eos_token_ids = frozenset(eos_token_ids) | {i for i in known_ends if i is not None}
        self.bos_token_id = bos_token_id

    @classmethod
    def load(cls, directory: Path) -> Tokenizer:
        """Read tokenizer.json and what the configuration files say about special tokens.

        Raises ModelLoadError when tokenizer.json is missing, malformed or of an unsupported kind.
        """
        path = directory / "tokenizer.json"
        if not path.is_file():
            raise ModelLoadError(f"{directory} has no tokenizer.json")
        try:
            backend = RustTokenizer.from_file(str(path))
        except Exception as error:
            # tokenizers raises nothing narrower.
            raise ModelLoadError(f"{path} is not a tokenizer: {error}") from error
        configs = [
            read_optional_json(directory / f"{name}.json")
            for name in ("generation_config", "config", "tokenizer_config")
        ]
        return cls(
            backend,
            eos_token_ids=_ids(backend, configs, "eos"),
            bos_token_id=next(iter(_ids(backend, configs, "bos")), None),
        )

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """The token ids of a text. Control tokens that are spelled out in it are recognised, except
        where a `ControlTokenGuard` has marked them.

        add_special_tokens: also those that the model wants around a text (bos). Not for a rendered
            chat template, which writes them itself.

        Raises InvalidRequest for a text with half a surrogate pair, which is no Unicode text.
        """
        try:
            ids: list[int] = self._backend.encode(text, add_special_tokens=add_special_tokens).ids
        except (UnicodeEncodeError, TypeError) as error:
            # tokenizers says TypeError to a string that has no UTF-8 form.
            raise InvalidRequest("the text is not valid Unicode") from error
        return ids

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text of token ids. Bytes that are not UTF-8 become U+FFFD, ids that the tokenizer
        does not know nothing."""
        kept = (i for i in ids if not (skip_special_tokens and i in self._special_ids))
        text = b"".join(map(self.token_bytes, kept)).decode("utf-8", "replace")
        if self.strips_first_space and text.startswith(" "):
            return text[1:]
        return text

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for: often no whole character; for a control token its
        spelling; empty for an id that the tokenizer does not know."""
        found = self._bytes.get(token_id)
        if found is None:
            token = self._backend.id_to_token(token_id) if 0 <= token_id < 2**32 else None
            found = b"" if token is None else self._spelling.bytes_of(token)
            self._bytes[token_id] = found
        return found

    def is_special(self, token_id: int) -> bool:
        """Whether the token is a control token, which is no text."""
        return token_id in self._special_ids

    @property
    def strips_first_space(self) -> bool:
        """Whether a text's first space is only the vocabulary's way to mark a word (decoding)."""
        return self._spelling.strips_first_space


def _ids(backend: RustTokenizer, configs: list[dict[str, Any]], which: str) -> list[int]:
    """What the files call the eos or bos token: ids in two of them, a spelling in the third."""
    found: list[int] = []
    for config in configs:
        value = config.get(f"{which}_token_id")
        found += [i for i in (value if isinstance(value, list) else [value]) if type(i) is int]
        token = config.get(f"{which}_token")
        spelling = token.get("content") if isinstance(token, dict) else token
        token_id = backend.token_to_id(spelling) if isinstance(spelling, str) else None
        if token_id is not None:
            found.append(token_id)
    return found
