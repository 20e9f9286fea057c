"""Tokenizer: what is loaded from a directory, and text to ids and back."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models

from engine.errors import InvalidRequest, ModelLoadError
from engine.text.control_tokens import GUARD, ControlTokenGuard
from engine.text.token_spelling import byte_level_table
from engine.text.tokenizer import Tokenizer
from tests.builders_gguf import byte_characters
from tests.unit.engine.text.text_tokenizers import (
    both,
    byte_level_tokenizer,
    sentencepiece_tokenizer,
)


def save(backend: RustTokenizer, directory: Path, **files: dict[str, Any]) -> Path:
    backend.save(str(directory / "tokenizer.json"))
    for name, content in files.items():
        (directory / f"{name}.json").write_text(json.dumps(content))
    return directory


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> list[Tokenizer]:
    return both(tmp_path_factory.mktemp("tokenizers"))


@pytest.fixture(scope="module")
def backends(tmp_path_factory: pytest.TempPathFactory) -> list[RustTokenizer]:
    folder = tmp_path_factory.mktemp("backends")
    return [byte_level_tokenizer(folder), sentencepiece_tokenizer(folder)]


class TestLoad:
    def load(self, tmp_path: Path, **files: dict[str, Any]) -> Tokenizer:
        return Tokenizer.load(save(byte_level_tokenizer(tmp_path), tmp_path, **files))

    def test_end_tokens_come_from_every_file(self, tmp_path: Path) -> None:
        tokenizer = self.load(
            tmp_path,
            generation_config={"eos_token_id": [7, 8]},
            config={"eos_token_id": 9, "bos_token_id": 4},
            tokenizer_config={"eos_token": {"content": "<|end|>"}},
        )
        assert tokenizer.eos_token_ids == {7, 8, 9, 2}
        assert tokenizer.bos_token_id == 4

    def test_bos_by_its_spelling(self, tmp_path: Path) -> None:
        tokenizer = self.load(tmp_path, tokenizer_config={"bos_token": "<|start|>"})
        assert tokenizer.bos_token_id == 1

    def test_known_end_tokens_end_a_text_though_no_file_names_them(self, tmp_path: Path) -> None:
        backend = byte_level_tokenizer(tmp_path)
        backend.add_special_tokens(["<|im_end|>", "<|something|>"])
        directory = save(backend, tmp_path, generation_config={"eos_token_id": None})
        ends = {backend.token_to_id("<|im_end|>"), backend.token_to_id("<|end|>")}
        assert Tokenizer.load(directory).eos_token_ids == ends

    def test_a_word_that_is_spelled_like_one_is_no_end_token(self, tmp_path: Path) -> None:
        backend = byte_level_tokenizer(tmp_path)
        backend.add_tokens(["</s>"])
        assert backend.token_to_id("</s>") not in Tokenizer(backend).eos_token_ids

    def test_saved_truncation_and_padding_do_not_count(self, tmp_path: Path) -> None:
        backend = byte_level_tokenizer(tmp_path)
        backend.enable_truncation(2)
        backend.enable_padding(length=8)
        tokenizer = Tokenizer.load(save(backend, tmp_path))
        assert len(tokenizer.encode("abcd", add_special_tokens=False)) == 4

    def test_special_tokens_and_sizes(self, tmp_path: Path) -> None:
        tokenizer = self.load(tmp_path)
        assert tokenizer.special_tokens == {"<|end_of_all|>": 0, "<|start|>": 1, "<|end|>": 2}
        assert tokenizer.vocab_size == byte_level_tokenizer(tmp_path).get_vocab_size()
        assert tokenizer.bos_token_id is None

    @pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"model": 1}'])
    def test_a_tokenizer_file_that_is_none(self, tmp_path: Path, content: str | None) -> None:
        if content is not None:
            (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(ModelLoadError, match=r"tokenizer"):
            Tokenizer.load(tmp_path)

    @pytest.mark.parametrize("content", ["", "[]", "{"])
    def test_a_configuration_that_is_none(self, tmp_path: Path, content: str) -> None:
        save(byte_level_tokenizer(tmp_path), tmp_path)
        (tmp_path / "generation_config.json").write_text(content)
        with pytest.raises(ModelLoadError, match="generation_config"):
            Tokenizer.load(tmp_path)

    @pytest.mark.parametrize(
        "decoder",
        [
            None,
            decoders.WordPiece(),
            decoders.Metaspace(),
            decoders.Sequence([decoders.ByteLevel(), decoders.Fuse()]),
            decoders.Sequence(
                [decoders.Replace("_", " "), decoders.ByteFallback(), decoders.Fuse()]
            ),
        ],
    )
    def test_a_decoder_that_cannot_go_token_by_token(self, decoder: Any) -> None:
        backend = RustTokenizer(models.BPE(vocab={"a": 0}, merges=[]))
        if decoder is not None:
            backend.decoder = decoder
        with pytest.raises(ModelLoadError, match="decoder"):
            Tokenizer(backend)


def test_the_byte_table_is_gpt2s() -> None:
    assert byte_level_table() == {c: byte for byte, c in enumerate(byte_characters())}


@given(ids=st.lists(st.integers(0, 290), max_size=40), skips=st.booleans())
def test_byte_level_decodes_as_tokenizers_does(
    tokenizers: list[Tokenizer], backends: list[RustTokenizer], ids: list[int], skips: bool
) -> None:
    expected = backends[0].decode(ids, skip_special_tokens=skips)
    assert tokenizers[0].decode(ids, skip_special_tokens=skips) == expected


@given(text=st.text(max_size=20))
def test_sentencepiece_decodes_as_tokenizers_does(
    tokenizers: list[Tokenizer], backends: list[RustTokenizer], text: str
) -> None:
    """For valid text; of broken characters `tokenizers` spoils the neighbours, too."""
    ids = backends[1].encode(text).ids
    for skips in (True, False):
        expected = backends[1].decode(ids, skip_special_tokens=skips)
        assert tokenizers[1].decode(ids, skip_special_tokens=skips) == expected


@given(text=st.text(max_size=20))
def test_encoding_is_that_of_the_backend(
    tokenizers: list[Tokenizer], backends: list[RustTokenizer], text: str
) -> None:
    text = text.replace(GUARD, "")
    for tokenizer, backend in zip(tokenizers, backends, strict=True):
        for special in (True, False):
            expected = backend.encode(text, add_special_tokens=special).ids
            assert tokenizer.encode(text, add_special_tokens=special) == expected


def test_bytes_of_tokens(tokenizers: list[Tokenizer]) -> None:
    byte_pair, sentences = tokenizers
    assert byte_pair.token_bytes(byte_pair.special_tokens["<|end|>"]) == b"<|end|>"
    assert sentences.token_bytes(3 + 0xE2) == b"\xe2"
    (hello,) = sentences.encode("hello", add_special_tokens=False)
    assert sentences.token_bytes(hello) == b" hello"
    for tokenizer in tokenizers:
        assert tokenizer.token_bytes(99_999) == tokenizer.token_bytes(-1) == b""
        assert tokenizer.token_bytes(2**70) == b""


@pytest.mark.parametrize("text", ["\ud800", "a\udfff"])
def test_half_a_surrogate_pair_is_refused(tokenizers: list[Tokenizer], text: str) -> None:
    with pytest.raises(InvalidRequest, match="Unicode"):
        tokenizers[0].encode(text, add_special_tokens=False)


class TestGuard:
    """Text that spells a control token, and must stay text."""

    @given(
        text=st.lists(
            st.sampled_from(["<|end|>", "<|start|>", "<|", "|>", "end", "é", " ", "<|end_of_all|>"])
        ).map("".join)
    )
    def test_guarded_text_has_no_control_token_and_the_same_characters(
        self, tokenizers: list[Tokenizer], text: str
    ) -> None:
        tokenizer = tokenizers[0]
        guarded = ControlTokenGuard(tokenizer.special_tokens).guard(text)
        ids = tokenizer.encode(guarded, add_special_tokens=False)
        assert not any(tokenizer.is_special(token_id) for token_id in ids)
        assert tokenizer.decode(ids) == text

    def test_other_text_is_left_alone(self) -> None:
        guard = ControlTokenGuard(["<|end|>"])
        assert guard.guard("plain <b>text</b>") == "plain <b>text</b>"
        assert guard.guard("a<|end|>") == f"a<{GUARD}|end|>"
        assert ControlTokenGuard([]).guard("<|end|>") == "<|end|>"

    def test_tokens_inside_tokens_are_broken_as_well(self) -> None:
        guarded = ControlTokenGuard(["<<a>>", "<a>", "a>>"]).guard("<<a>>")
        assert guarded.replace(GUARD, "") == "<<a>>"
        assert not any(token in guarded for token in ("<<a>>", "<a>", "a>>"))
