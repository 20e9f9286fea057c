"""GGUF vocabulary -> a tokenizer of the `tokenizers` library and its configuration."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, processors
from tokenizers.models import BPE

from engine.errors import ModelLoadError
from engine.weights.pre_tokenizers import (
    ADDS_BOS,
    IGNORES_MERGES,
    NORMALIZES,
    byte_level_pre_tokenizer,
)

if TYPE_CHECKING:
    from engine.weights.gguf_file import GGUFFile

_SPACE = "\u2581"  # how sentencepiece writes a space


class TokenType(IntEnum):
    """`tokenizer.ggml.token_type`, as in llama.cpp."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def build_tokenizer(file: GGUFFile) -> Tokenizer:
    """The tokenizer that the file describes: byte-level BPE (gpt2) or sentencepiece BPE (llama).

    Raises ModelLoadError for another kind, an unknown pre-tokenizer or a malformed vocabulary.
    """
    kind = file.require("tokenizer.ggml.model", str)
    if kind not in _BUILDERS:
        raise ModelLoadError(f"{file.path.name}: tokenizer '{kind}' is not supported")
    tokens = _tokens(file)
    tokenizer = _BUILDERS[kind](file, tokens)
    _add_whole_tokens(tokenizer, tokens, _types(file, tokens))
    post_processor = _post_processor(file, kind, tokens)
    if post_processor is not None:
        tokenizer.post_processor = post_processor
    return tokenizer


def tokenizer_config(file: GGUFFile, context_length: int) -> dict[str, Any]:
    """The content of tokenizer_config.json, with the chat template where there is one."""
    tokens = _tokens(file)
    kind = file.require("tokenizer.ggml.model", str)
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_length,
        "add_bos_token": _adds_bos(file, kind),
        "add_eos_token": file.get("tokenizer.ggml.add_eos_token", bool, False),
    }
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    for ours, theirs in names.items():
        token_id = file.get(f"tokenizer.ggml.{theirs}_token_id", int)
        if token_id is not None:
            config[f"{ours}_token"] = _token(tokens, token_id)
    template = _chat_template(file)
    if template is not None:
        config["chat_template"] = template
    return config


def _chat_template(file: GGUFFile) -> str | list[dict[str, str]] | None:
    """One template, or the default and the named ones where the file has several."""
    default = file.get("tokenizer.chat_template", str)
    names = file.get("tokenizer.chat_templates", list, [])
    if not names:
        return None if default is None else str(default)
    named = {name: file.require(f"tokenizer.chat_template.{name}", str) for name in names}
    if default is not None:
        named = {"default": default} | named
    return [{"name": name, "template": text} for name, text in named.items()]


def _tokens(file: GGUFFile) -> list[str]:
    tokens = file.require("tokenizer.ggml.tokens", list)
    if len(set(tokens)) != len(tokens):
        raise ModelLoadError(f"{file.path.name}: a token is in the vocabulary twice")
    return [str(token) for token in tokens]


def _types(file: GGUFFile, tokens: list[str]) -> list[int]:
    types = file.get("tokenizer.ggml.token_type", list, [TokenType.NORMAL] * len(tokens))
    if len(types) != len(tokens):
        raise ModelLoadError(f"{file.path.name}: {len(tokens)} tokens but {len(types)} types")
    return [int(kind) for kind in types]


def _token(tokens: list[str], token_id: int) -> str:
    if not 0 <= token_id < len(tokens):
        raise ModelLoadError(f"the special token id {token_id} is outside the vocabulary")
    return tokens[token_id]


def _byte_level(file: GGUFFile, tokens: list[str]) -> Tokenizer:
    name = file.get("tokenizer.ggml.pre", str, "default")
    vocab = {token: token_id for token_id, token in enumerate(tokens)}
    merges = []
    for line in file.require("tokenizer.ggml.merges", list):
        left, _, right = str(line).partition(" ")
        merges.append((left, right))
    tokenizer = _bpe(vocab=vocab, merges=merges, ignore_merges=name in IGNORES_MERGES)
    tokenizer.pre_tokenizer = byte_level_pre_tokenizer(name)
    tokenizer.decoder = decoders.ByteLevel()
    if name in NORMALIZES:
        tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def _sentencepiece(file: GGUFFile, tokens: list[str]) -> Tokenizer:
    types = _types(file, tokens)
    unknown = [
        token for token, kind in zip(tokens, types, strict=True) if kind == TokenType.UNKNOWN
    ]
    tokenizer = _bpe(
        vocab={token: token_id for token_id, token in enumerate(tokens)},
        merges=_merges_by_value(file, tokens, types),
        unk_token=unknown[0] if unknown else None,
        fuse_unk=True,
        byte_fallback=True,
    )
    has_prefix = file.get("tokenizer.ggml.add_space_prefix", bool, True)
    # As in the models' own files, and lossless, unlike the Metaspace pre-tokenizer, which leaves
    # the prefix out before a text that begins with a space.
    prefix = [normalizers.Prepend(_SPACE)] if has_prefix else []
    tokenizer.normalizer = normalizers.Sequence([*prefix, normalizers.Replace(" ", _SPACE)])
    steps = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if has_prefix:
        steps.append(decoders.Strip(content=" ", left=1))
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer


def _bpe(**options: Any) -> Tokenizer:
    try:
        return Tokenizer(BPE(**options))
    except Exception as error:
        # tokenizers raises nothing narrower: a merge of, or into, something that is no token.
        raise ModelLoadError(f"the vocabulary is unusable: {error}") from error


_BUILDERS = {"gpt2": _byte_level, "llama": _sentencepiece}


def _merges_by_value(file: GGUFFile, tokens: list[str], types: list[int]) -> list[tuple[str, str]]:
    """Every way to put a token together from two others, best tokens first.

    Sentencepiece merges the neighbours whose union has the highest value; as a list of merges that
    is this order. Control and byte tokens are never the result of a merge.
    """
    if "tokenizer.ggml.merges" in file.metadata:
        lines = file.require("tokenizer.ggml.merges", list)
        pairs = [str(line).partition(" ") for line in lines]
        return [(left, right) for left, _, right in pairs]
    values = file.require("tokenizer.ggml.scores", list)
    if len(values) != len(tokens):
        raise ModelLoadError(f"{file.path.name}: {len(tokens)} tokens but {len(values)} values")
    mergeable = (TokenType.NORMAL, TokenType.USER_DEFINED, TokenType.UNUSED)
    known = {token for token, kind in zip(tokens, types, strict=True) if kind in mergeable}
    ranked = []
    for token, value in zip(tokens, values, strict=True):
        if token not in known:
            continue
        for cut in range(1, len(token)):
            if token[:cut] in known and token[cut:] in known:
                ranked.append((-float(value), -cut, token[:cut], token[cut:]))
    ranked.sort(key=lambda entry: entry[:2])
    return [(left, right) for _, _, left, right in ranked]


def _add_whole_tokens(tokenizer: Tokenizer, tokens: list[str], types: list[int]) -> None:
    """Control tokens become special (found in text, skipped in output), user-defined ones only
    whole. All are in the vocabulary already, so no id changes."""
    control = []
    whole = []
    for token, kind in zip(tokens, types, strict=True):
        if kind in (TokenType.CONTROL, TokenType.UNKNOWN):
            control.append(AddedToken(token, normalized=False, special=True))
        elif kind == TokenType.USER_DEFINED:
            whole.append(AddedToken(token, normalized=False, special=False))
    tokenizer.add_special_tokens(control)
    tokenizer.add_tokens(whole)
    if tokenizer.get_vocab_size() != len(tokens):
        raise ModelLoadError("a special token is missing from the vocabulary")


def _adds_bos(file: GGUFFile, kind: str) -> bool:
    is_usual = kind == "llama" or file.get("tokenizer.ggml.pre", str, "") in ADDS_BOS
    has_bos = "tokenizer.ggml.bos_token_id" in file.metadata
    return bool(file.get("tokenizer.ggml.add_bos_token", bool, is_usual and has_bos))


def _post_processor(
    file: GGUFFile, kind: str, tokens: list[str]
) -> processors.TemplateProcessing | None:
    before, after = [], []
    if _adds_bos(file, kind):
        before.append(int(file.require("tokenizer.ggml.bos_token_id", int)))
    if file.get("tokenizer.ggml.add_eos_token", bool, False):
        after.append(int(file.require("tokenizer.ggml.eos_token_id", int)))
    if not before and not after:
        return None
    named = [(_token(tokens, token_id), token_id) for token_id in (*before, *after)]
    single = [*(tokens[t] for t in before), "$A", *(tokens[t] for t in after)]
    second = [*(f"{tokens[t]}:1" for t in before), "$B:1", *(f"{tokens[t]}:1" for t in after)]
    return processors.TemplateProcessing(
        single=single, pair=[*single, *second], special_tokens=sorted(set(named))
    )
