"""Nothing that an answer shows can act, in one piece or in many."""

from hypothesis import given
from hypothesis import strategies as st

from query.answers.plain_text import InertStream, clean, inert_quote

pieces = st.lists(
    st.sampled_from(["[", "]", "(", "!", "<", "a", "/", ":", "|", "www", ".", "w", " ", "?", "x"]),
    max_size=12,
)
ACTIVE = ("](", "][", "]:", "![", "!(", "<a", "</", "<!", "<?", "<|", ":/")


@given(pieces)
def test_written_text_cannot_act_however_it_is_cut(texts: list[str]) -> None:
    stream = InertStream()
    shown = "".join(stream.push(text) for text in texts)
    assert shown == InertStream().push("".join(texts))
    assert not any(active in shown for active in ACTIVE)
    assert "www." not in shown
    assert shown.replace(" ", "") == "".join(texts).replace(" ", "")


@given(pieces)
def test_a_quote_cannot_act_and_keeps_its_words(texts: list[str]) -> None:
    shown = inert_quote("".join(texts))
    assert not any(active in shown for active in ACTIVE if active != ":/")
    assert shown.replace(" ", "") == "".join(texts).replace(" ", "")
    assert inert_quote(shown) == shown


def test_ordinary_text_stays_as_it_is() -> None:
    text = "Tested yearly (see 4.2) [1]. Ratio 3:1, 5 < 7; “quoted”! Ask a@b.c? Really?!"
    assert InertStream().push(text) == inert_quote(text) == text


def test_an_address_is_parted_in_written_text_and_kept_in_a_quote() -> None:
    text = "See https://x.example and www.x.example."
    assert InertStream().push(text) == "See https: //x.example and www .x.example."
    assert inert_quote(text) == text


@given(st.text())
def test_what_shows_nothing_is_dropped(text: str) -> None:
    shown = clean(text)
    shown.encode()
    assert not set(shown) & set("\x00\x1b\r\u2028\u2029\u202e\u2066\x7f\x85")
    assert "".join(character for character in text if character in shown) == shown
    assert clean("a\tb\nc 漢字 ä😀 \u200d") == "a\tb\nc 漢字 ä😀 \u200d"
    assert clean("\ud83d") == ""
