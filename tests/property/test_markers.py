"""However a generator's text is cut into pieces, the same markers and sentences come out."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from query.answers.markers import Cites, MarkerFilter, Words
from query.answers.written_sentences import SentenceAssembler, WrittenSentence

PIECES = st.sampled_from(
    [
        "Pumps run", "The seal", " is dry", ". ", ".", "! ", "? ", "。", "」", "\n", "\n\n", " ",
        "  ", "[1]", "[2]", "[9]", "[1, 2]", "[1-3]", "[", "]", "1", "2", "arr[0]", "[sic]",
        "【2】",
        "e.g. ", "3.5", "Dr. ", "`", "``", "```", "```py\n", "~~~\n", "~", "x", "- ", "1. ",
        "According to ",
        ", ", '"', " » ", "...", "Foo",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@st.composite
def texts_and_cuts(draw: st.DrawFn) -> tuple[str, list[str]]:
    text = draw(TEXTS)
    places = sorted(draw(st.sets(st.integers(0, len(text)), max_size=len(text))))
    bounds = [0, *places, len(text)]
    return text, [text[a:b] for a, b in pairwise(bounds)]


def joined(items: list[Words | Cites]) -> list[Words | Cites]:
    found: list[Words | Cites] = []
    for item in items:
        last = found[-1] if found else None
        if isinstance(item, Words) and isinstance(last, Words) and item.is_code == last.is_code:
            found[-1] = Words(last.text + item.text, item.is_code)
        else:
            found.append(item)
    return found


def filtered(pieces: list[str]) -> list[Words | Cites]:
    markers = MarkerFilter(2)
    items = [item for piece in pieces for item in markers.push(piece)]
    return items + markers.end()


def assembled(items: list[Words | Cites]) -> list[WrittenSentence]:
    assembler = SentenceAssembler()
    found = [sentence for item in items for sentence in assembler.push(item)]
    return found + assembler.end()


@given(texts_and_cuts())
def test_pieces_do_not_change_the_markers(drawn: tuple[str, list[str]]) -> None:
    text, pieces = drawn
    assert joined(filtered(pieces)) == joined(filtered([text]))


@given(texts_and_cuts())
def test_pieces_do_not_change_the_sentences(drawn: tuple[str, list[str]]) -> None:
    text, pieces = drawn
    assert assembled(filtered(pieces)) == assembled(filtered([text]))


@given(texts_and_cuts())
def test_only_numbers_of_passages_are_cited(drawn: tuple[str, list[str]]) -> None:
    sentences = assembled(filtered(drawn[1]))
    assert all(set(sentence.cited) <= {1, 2} for sentence in sentences)
    assert all(sentence.text == sentence.text.strip() != "" for sentence in sentences)
    assert all(not sentence.lead.strip() for sentence in sentences)


@given(TEXTS.filter(lambda text: "[" not in text and "【" not in text))
def test_text_without_brackets_is_kept_whole(text: str) -> None:
    assert joined(filtered([text])) == joined(filtered(list(text)))
    assert "".join(i.text for i in filtered([text]) if isinstance(i, Words)) == text
    rebuilt = "".join(s.lead + s.text for s in assembled(filtered([text])))
    assert rebuilt == text.rstrip()


@given(texts_and_cuts())
def test_nothing_that_may_become_a_marker_is_let_out(drawn: tuple[str, list[str]]) -> None:
    """What is out at any time is a beginning of what comes out of the whole text."""
    text, pieces = drawn
    whole = joined(filtered([text]))
    markers = MarkerFilter(2)
    out: list[Words | Cites] = []
    for piece in pieces:
        out = joined([*out, *markers.push(piece)])
        for mine, theirs in zip(out[:-1], whole, strict=False):
            assert mine == theirs
        if out:
            last = whole[len(out) - 1]
            if isinstance(out[-1], Words):
                assert isinstance(last, Words)
                assert last.text.startswith(out[-1].text)
            else:
                assert out[-1] == last
