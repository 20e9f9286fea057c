"""Tokenizers built from GGUF vocabularies, against slow ones in plain Python."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engine.weights.gguf_file import GGUFFile
from engine.weights.gguf_tokenizer import build_tokenizer, tokenizer_config
from tests.builders_gguf import CONTROL, TinyModel, Vocabulary, byte_level, sentencepiece
from tests.reference_bpe import ByteLevelReference, SentencePieceReference

# What the pre-tokenizers treat differently, often side by side.
PIECES = [
    "hello",
    "Hello",
    " ",
    "  ",
    "    ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "1",
    "12",
    "123",
    "٣",
    "Ⅷ",
]
PIECES += [
    "'s",
    "'S",
    "'ll",
    "é",
    "e\u0301",
    "你好",
    "👩‍🚀",
    "!",
    "...",
    "_",
    "²",
    "\u00a0",
    "\u3000",
    "½",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
MARKED = st.lists(st.sampled_from([*PIECES, "<|end|>", "<tool>", "<|", "|>"]), max_size=12).map(
    "".join
)


def build(vocabulary: Vocabulary, folder: Path, **general: object) -> Tokenizer:
    path = TinyModel(vocabulary=vocabulary, general=general).write(folder / "m.gguf")
    return build_tokenizer(GGUFFile(path))


@pytest.fixture(scope="module", params=["gpt-2", "smollm", "llama-bpe", "qwen2"])
def byte_pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Tokenizer, ByteLevelReference]:
    pre = request.param
    vocabulary = byte_level(pre)
    tokenizer = build(
        vocabulary, tmp_path_factory.mktemp("gguf"), **{"tokenizer.ggml.add_bos_token": False}
    )
    assert vocabulary.merges is not None
    reference = ByteLevelReference(
        vocabulary.tokens,
        vocabulary.types,
        vocabulary.merges,
        pre,
        ignores_merges=pre == "llama-bpe",
    )
    return pre, tokenizer, reference


@given(text=MARKED)
def test_byte_level_as_the_reference(
    byte_pair: tuple[str, Tokenizer, ByteLevelReference], text: str
) -> None:
    pre, tokenizer, reference = byte_pair
    if pre == "qwen2":
        text = text.replace("e\u0301", "é")  # NFC, which has a test of its own
    ids = tokenizer.encode(text).ids
    assert ids == reference.encode(text)
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


@given(text=TEXTS)
def test_sentencepiece_as_the_reference(
    sentence_pair: tuple[Tokenizer, SentencePieceReference], text: str
) -> None:
    tokenizer, reference = sentence_pair
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert ids == reference.encode(text)
    assert tokenizer.decode(ids) == text


@pytest.fixture(scope="module")
def sentence_pair(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Tokenizer, SentencePieceReference]:
    vocabulary = sentencepiece()
    assert vocabulary.values is not None
    mergeable = [
        (token, value)
        for token, value, kind in zip(
            vocabulary.tokens, vocabulary.values, vocabulary.types, strict=True
        )
    ]
    tokens, values = zip(*mergeable, strict=True)
    return build(vocabulary, tmp_path_factory.mktemp("gguf")), SentencePieceReference(
        tokens, values
    )


def test_smollm_cuts_every_digit_off_also_after_spaces(tmp_path: Path) -> None:
    tokenizer = build(byte_level("smollm"), tmp_path)
    assert tokenizer.encode("  123").tokens == ["ĠĠ", "1", "2", "3"]
    gpt2 = build(byte_level("gpt-2"), tmp_path)
    assert gpt2.encode("  123").tokens == ["Ġ", "Ġ", "123"]


def test_qwen2_normalizes(tmp_path: Path) -> None:
    tokenizer = build(byte_level("qwen2"), tmp_path)
    assert tokenizer.encode("e\u0301").ids == tokenizer.encode("é").ids


def test_a_word_that_is_a_token_is_taken_whole(tmp_path: Path) -> None:
    """llama3's rule; here no merge leads to the word."""
    vocabulary = byte_level("llama-bpe")
    vocabulary.tokens.append("zzz")
    vocabulary.types.append(1)
    off = {"tokenizer.ggml.add_bos_token": False}
    assert build(vocabulary, tmp_path, **off).encode("zzz").tokens == ["zzz"]
    vocabulary.pre = "smollm"
    assert build(vocabulary, tmp_path).encode("zzz").tokens == ["z", "z", "z"]


@pytest.mark.parametrize(
    ("vocabulary", "flag", "expected"),
    [
        (byte_level("smollm"), None, []),
        (byte_level("smollm"), True, ["<|start|>"]),
        (byte_level("llama-bpe"), None, ["<|start|>"]),
        (byte_level("llama-bpe"), False, []),
        (sentencepiece(), None, ["<s>"]),
        (sentencepiece(), False, []),
    ],
)
def test_bos_goes_before_a_text_where_the_model_wants_it(
    tmp_path: Path, vocabulary: Vocabulary, flag: bool | None, expected: list[str]
) -> None:
    model = TinyModel(vocabulary=vocabulary, general={"tokenizer.ggml.add_bos_token": flag})
    file = GGUFFile(model.write(tmp_path / "m.gguf"))
    tokens = build_tokenizer(file).encode("hello").tokens
    assert tokens[: len(expected)] == expected
    assert len(tokens) > len(expected)
    assert tokens.count("<|start|>") + tokens.count("<s>") == len(expected)
    assert tokenizer_config(file, 8)["add_bos_token"] is bool(expected)


def test_eos_goes_after_a_text_where_the_file_says_so(tmp_path: Path) -> None:
    tokenizer = build(byte_level(), tmp_path, **{"tokenizer.ggml.add_eos_token": True})
    assert tokenizer.encode("1").tokens == ["1", "<|end|>"]


def test_only_control_tokens_are_special(tmp_path: Path) -> None:
    tokenizer = build(byte_level(), tmp_path)
    ids = tokenizer.encode("<|start|><tool>1").ids
    assert tokenizer.decode(ids) == "<tool>1"


def test_control_tokens_are_no_result_of_a_merge(tmp_path: Path) -> None:
    """Guarded against: `<` + `s>` in the vocabulary must not make the bos token of plain text."""
    vocabulary = sentencepiece()
    for token in ("<", "s>", "s", ">"):
        vocabulary.tokens.append(token)
        vocabulary.types.append(1)
        assert vocabulary.values is not None
        vocabulary.values.append(-99.0)
    tokenizer = build(vocabulary, tmp_path, **{"tokenizer.ggml.add_bos_token": False})
    bos = tokenizer.token_to_id("<s>")
    tokenizer.encode_special_tokens = True
    assert bos is not None
    assert vocabulary.types[bos] == CONTROL
    assert bos not in tokenizer.encode("<s>").ids
