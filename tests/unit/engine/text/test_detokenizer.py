"""Pieces of text from pieces of characters, for any token ids at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.detokenizer import IncrementalDetokenizer
from engine.text.tokenizer import Tokenizer
from tests.unit.engine.text.text_tokenizers import both

IDS = st.lists(st.integers(0, 300), max_size=40)  # beyond both vocabularies, too


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> list[Tokenizer]:
    return both(tmp_path_factory.mktemp("tokenizers"))


def pieces(tokenizer: Tokenizer, prompt: list[int], ids: list[int]) -> list[str]:
    detokenizer = IncrementalDetokenizer(tokenizer, prompt)
    return [*(detokenizer.push(token_id) for token_id in ids), detokenizer.flush()]


@given(ids=IDS)
def test_pieces_joined_are_the_whole(tokenizers: list[Tokenizer], ids: list[int]) -> None:
    for tokenizer in tokenizers:
        assert "".join(pieces(tokenizer, [], ids)) == tokenizer.decode(ids)


@given(prompt=IDS, ids=IDS)
def test_pieces_continue_the_prompt(
    tokenizers: list[Tokenizer], prompt: list[int], ids: list[int]
) -> None:
    """A character that begins in the prompt belongs to the output, which completes it."""
    for tokenizer in tokenizers:
        whole = tokenizer.decode([*prompt, *ids])
        joined = "".join(pieces(tokenizer, prompt, ids))
        assert whole.endswith(joined)
        before = whole.removesuffix(joined)
        assert tokenizer.decode(prompt).rstrip("\ufffd") in (before.rstrip("\ufffd"), before)


@given(text=st.text(max_size=30))
def test_text_comes_out_in_whole_characters(tokenizers: list[Tokenizer], text: str) -> None:
    text = text.replace("\ufdd0", "").replace("\u2581", "")
    for tokenizer in tokenizers:
        found = pieces(tokenizer, [], tokenizer.encode(text, add_special_tokens=False))
        assert "".join(found) == text
        assert found[-1] == ""
        assert "\ufffd" not in "".join(found).replace("\ufffd", "", text.count("\ufffd"))


def test_a_character_waits_for_its_last_byte(tokenizers: list[Tokenizer]) -> None:
    tokenizer = tokenizers[0]
    ids = tokenizer.encode("a😀b", add_special_tokens=False)
    detokenizer = IncrementalDetokenizer(tokenizer)
    shown = [detokenizer.push(token_id) for token_id in ids]
    assert shown[0] == "a"
    assert set(shown[1:-2]) == {""}
    assert shown[-2:] == ["😀", "b"]


@pytest.mark.parametrize("num_in_prompt", [1, 2, 3])
def test_a_character_may_begin_in_the_prompt(
    tokenizers: list[Tokenizer], num_in_prompt: int
) -> None:
    for tokenizer in tokenizers:
        ids = [_byte_id(tokenizer, byte) for byte in "😀".encode()]
        found = pieces(tokenizer, ids[:num_in_prompt], ids[num_in_prompt:])
        assert "".join(found) == "😀"


def _byte_id(tokenizer: Tokenizer, byte: int) -> int:
    return next(i for i in range(300) if tokenizer.token_bytes(i) == bytes([byte]))


def test_half_a_character_at_the_end_is_shown_as_such(tokenizers: list[Tokenizer]) -> None:
    tokenizer = tokenizers[0]
    ids = tokenizer.encode("€", add_special_tokens=False)[:-1]
    assert pieces(tokenizer, [], ids)[-1] == "\ufffd"


def test_control_tokens_are_no_text_also_inside_a_character(tokenizers: list[Tokenizer]) -> None:
    for tokenizer in tokenizers:
        control = next(iter(tokenizer.special_tokens.values()))
        ids = tokenizer.encode("€", add_special_tokens=False)
        broken = [i for token_id in ids for i in (token_id, control)]
        assert "".join(pieces(tokenizer, [control], [control, *broken])) == "€"


def test_the_first_space_is_text_only_after_text(tokenizers: list[Tokenizer]) -> None:
    """Sentencepiece marks words with a space in front; a text does not begin with one."""
    tokenizer = tokenizers[1]
    hello = tokenizer.encode("hello", add_special_tokens=False)
    bos = tokenizer.special_tokens["<s>"]
    assert "".join(pieces(tokenizer, [], [*hello, *hello])) == "hello hello"
    assert "".join(pieces(tokenizer, [bos], hello)) == "hello"
    assert "".join(pieces(tokenizer, [bos, *hello], hello)) == " hello"
