"""The text of an answer and the ranges that point into it."""

from core.domain.answers import Verdict
from core.domain.pages import Location
from query.answers.composition import compose
from query.answers.evidence import Evidence
from query.answers.quotes import Quote
from query.answers.wording import missing_parts, not_found, shown_quote
from query.retrieval.questions import analyse
from tests.passages import make_passage, make_scored, make_version


def quote(text: str) -> Quote:
    passage = make_passage(text)
    return Quote(
        Evidence(passage, 0, len(text), make_scored(passage)),
        make_version(),
        text,
        (Location(1, 0, len(text), ()),),
        {1: (600.0, 800.0)},
    )


def test_one_quote() -> None:
    (paragraph,) = compose([quote("Pumps are tested\nyearly.")], ["s3"])
    assert paragraph.delta == "“Pumps are tested yearly.” [1]"
    citation = paragraph.citation
    assert (citation.id, citation.n, citation.start, citation.end) == ("c1", 1, 1, 25)
    assert (citation.marker.start, citation.marker.end) == (27, 30)
    assert (citation.verdict, citation.support_score) == (Verdict.SUPPORTED, 1.0)
    (cited,) = citation.sources
    assert (cited.source_id, cited.quote) == ("s3", "Pumps are tested\nyearly.")


def test_ranges_count_code_points_and_hold_over_paragraphs() -> None:
    texts = ["Größe 3 µm 😀 geprüft.", "第二句。", "Third  sentence\n[2] “quoted”."]
    paragraphs = compose([quote(text) for text in texts], ["s1", "s2", "s1"])
    whole = "".join(paragraph.delta for paragraph in paragraphs)
    for number, (text, paragraph) in enumerate(zip(texts, paragraphs, strict=True), 1):
        citation = paragraph.citation
        assert whole[citation.start : citation.end] == " ".join(text.split())
        assert whole[citation.marker.start : citation.marker.end] == f"[{number}]"
        assert whole[citation.start - 1] == "“"
        assert whole[citation.end : citation.marker.start] == "” "
    assert whole.count("\n\n") == 2


def test_no_quotes_no_text() -> None:
    assert compose([], []) == []


def test_a_quote_carries_no_image_link_or_markup() -> None:
    hostile = "![x](https://evil.example/?q=1) <img src=x> <script>alert(1)</script> [a](b) ![a][b]"
    shown = shown_quote(hostile)
    assert "](" not in shown
    assert "![" not in shown
    assert "<img" not in shown
    assert "</" not in shown
    assert "".join(shown.split()) == "".join(hostile.split())


def test_ordinary_text_is_shown_as_it_is() -> None:
    for text in ("3 < 4 and 5 > 2", "see [1] and (2)", "a! b [c] (d)", "x<5"):
        assert shown_quote(text) == text


def test_own_sentences_are_in_the_questions_language() -> None:
    english, german = analyse("What is it?"), analyse("Was ist das?")
    assert not_found(english).startswith("The documents")
    assert not_found(german).startswith("Die Dokumente")
    assert missing_parts(german, ["wer ist das?"]) == "Nicht in den Dokumenten: wer ist das?"
    assert missing_parts(english, ["a\n![x](y)", "b"]) == "Not in the documents: a ! [x] (y); b"
