"""How text is cut into words before byte-pair merging, by the name that a GGUF file gives.

The merges were learned inside these words, so another cut gives other tokens. The patterns are
those of the models' own tokenizer.json files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenizers import Regex, pre_tokenizers

from engine.errors import ModelLoadError

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LINES_AND_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"

_LLAMA3 = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
) + _LINES_AND_SPACES
_QWEN2 = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
) + _LINES_AND_SPACES
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*|"
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
) + _LINES_AND_SPACES

_BY_PATTERN = {
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "falcon3": _LLAMA3,
    "smaug-bpe": _LLAMA3,
    "dbrx": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "megrez": _QWEN2,
    "tekken": _TEKKEN,
}
_GPT2 = frozenset({"gpt-2", "mpt", "olmo", "phi-2"})
# Every digit is a word of its own, also one after a space; the rest is cut as in GPT-2.
_SINGLE_DIGITS = frozenset({"smollm", "starcoder", "refact", "codeshell", "command-r"})

# A word that is a token as it stands is taken whole, whatever the merges say.
IGNORES_MERGES = frozenset({"llama-bpe", "llama3", "llama-v3", "falcon3", "tekken"})
# These begin a text with the bos token unless the file says otherwise.
ADDS_BOS = IGNORES_MERGES
# Text is brought into Unicode form NFC first.
NORMALIZES = frozenset({"qwen2", "deepseek-r1-qwen"})


def byte_level_pre_tokenizer(name: str) -> PreTokenizer:
    """The pre-tokenizer of a byte-level vocabulary. Raises ModelLoadError for an unknown name."""
    if name in _BY_PATTERN:
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_BY_PATTERN[name]), behavior="isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name in _GPT2:
        return gpt2
    if name in _SINGLE_DIGITS:
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), gpt2])
    raise ModelLoadError(f"the pre-tokenizer '{name}' is not supported")
