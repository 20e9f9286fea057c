"""Chunks fit, keep to their section, carry their headings apart, and lead back to the page."""

from pathlib import Path

import pytest

from core.domain.pages import (
    Chunk,
    DocumentFacts,
    Element,
    ElementKind,
    Line,
    Page,
    PageOutcome,
    text_of,
)
from core.settings import ChunkerSettings
from ingest.chunking import chunk_document, chunker_fingerprint
from tests.builders_pdf import Sheet, pdf
from tests.fakes.models import FakeTokenCounter
from tests.pdf_reading import pages_of

HEADING, PARAGRAPH, TABLE = ElementKind.HEADING, ElementKind.PARAGRAPH, ElementKind.TABLE
CAPTION, LIST_ITEM = ElementKind.CAPTION, ElementKind.LIST_ITEM
Part = tuple[ElementKind, str] | tuple[ElementKind, str, int]


def page(number: int, *parts: Part) -> Page:
    """A page of these elements, one under the other; the third of a part is a heading's level."""
    text, elements, lines = "", [], []
    for position, (kind, words, *level) in enumerate(parts):
        if position:
            text += "\n\n"
        start = len(text)
        text += words
        elements.append(Element(kind, start, len(text), level[0] if level else 0))
        # Headings are printed larger the higher they are.
        height = 0.012 * (1.0 + 0.25 * (4 - level[0]) if level else 1.0)
        top = 0.2 + 0.02 * position
        lines.append(Line(start, len(text), (0.1, top, 0.9, top + height)))
    return Page(
        number, 595, 842, 0, str(number), text, tuple(lines), tuple(elements), PageOutcome.OK
    )


def chunks_of(
    *pages: Page,
    title: str = "Manual",
    max_tokens: int = 60,
    outline: tuple[tuple[int, str, int], ...] = (),
    **settings: float,
) -> list[Chunk]:
    facts = DocumentFacts(len(pages), title, None, outline, {})
    found = chunk_document(
        pages,
        facts,
        title=title,
        token_counter=FakeTokenCounter(),
        max_tokens=max_tokens,
        settings=ChunkerSettings.model_validate({"min_tokens": 5, **settings}),
    )
    by_number = {each.number: each for each in pages}
    for ordinal, chunk in enumerate(found):
        assert chunk.ordinal == ordinal
        assert chunk.text == text_of(chunk.spans, by_number)
        assert chunk.num_tokens == FakeTokenCounter().count(chunk.index_text) + 2 <= max_tokens
    return found


def words(count: int, word: str = "word") -> str:
    return " ".join(f"{word}{number}" for number in range(count))


def sentences(count: int, size: int = 8) -> str:
    return " ".join(f"Sentence {n} has {words(size - 4)}." for n in range(count))


OUTLINE = ((1, "Safety", 1), (2, "Torques", 1), (3, "Details", 1))


def test_a_small_section_is_one_chunk_under_its_heading() -> None:
    (chunk,) = chunks_of(page(1, (HEADING, "Safety", 1), (PARAGRAPH, words(12))), outline=OUTLINE)
    assert chunk.text == f"Safety\n\n{words(12)}"
    assert chunk.heading_path == ("Safety",)
    assert chunk.index_text == f"Manual\nSafety\n\n{words(12)}"
    assert len(chunk.spans) == 1


def test_chunks_never_cross_a_heading_of_level_one_or_two() -> None:
    found = chunks_of(
        page(
            1,
            *((HEADING, "Safety", 1), (PARAGRAPH, words(6))),
            *((HEADING, "Torques", 2), (PARAGRAPH, words(6))),
        ),
        outline=OUTLINE,
    )
    assert [chunk.heading_path for chunk in found] == [("Safety",), ("Safety", "Torques")]
    assert found[1].index_text.startswith("Manual > Safety\nTorques")


def test_small_subsections_share_a_chunk_under_what_they_share() -> None:
    (chunk,) = chunks_of(
        page(
            1,
            *((HEADING, "Torques", 2), (PARAGRAPH, words(6))),
            *((HEADING, "Details", 3), (PARAGRAPH, words(6))),
        ),
        outline=OUTLINE,
    )
    assert chunk.heading_path == ("Torques",)


def test_headings_stay_with_what_they_head() -> None:
    found = chunks_of(
        page(
            1,
            *((PARAGRAPH, words(40)), (HEADING, "Details", 3), (PARAGRAPH, words(12))),
        ),
        outline=OUTLINE,
    )
    assert [chunk.text.split()[0] for chunk in found] == ["word0", "Details"]


def test_elements_are_packed_whole_up_to_the_target() -> None:
    found = chunks_of(page(1, *[(PARAGRAPH, words(12)) for _ in range(6)]))
    assert [len(chunk.text.split()) for chunk in found] == [36, 36]


def test_a_long_paragraph_is_cut_at_sentences_into_like_pieces() -> None:
    found = chunks_of(page(1, (PARAGRAPH, sentences(15))))
    assert all(chunk.text.startswith("Sentence") and chunk.text.endswith(".") for chunk in found)
    sizes = [len(chunk.text.split()) for chunk in found]
    assert max(sizes) - min(sizes) <= 16
    assert " ".join(chunk.text for chunk in found) == sentences(15)


def test_an_endless_sentence_is_cut_at_clauses_then_blanks() -> None:
    clauses = ", ".join(words(7, f"clause{n}x") for n in range(12))
    found = chunks_of(page(1, (PARAGRAPH, clauses)))
    assert len(found) > 1
    assert all(chunk.text.endswith(",") for chunk in found[:-1])
    assert " ".join(chunk.text for chunk in found) == clauses


def test_a_word_without_end_is_cut_somewhere() -> None:
    found = chunks_of(page(1, (PARAGRAPH, "x" * 20_000)))
    assert "".join(chunk.text for chunk in found) == "x" * 20_000
    assert max(len(chunk.text) for chunk in found) <= 60 * 12


def test_crumbs_join_a_neighbour() -> None:
    found = chunks_of(
        page(1, (PARAGRAPH, words(44)), (PARAGRAPH, "see below")), target_fraction=0.8
    )
    assert [chunk.text for chunk in found] == [f"{words(44)}\n\nsee below"]


def test_a_paragraph_over_two_pages_has_a_span_on_each() -> None:
    (chunk,) = chunks_of(page(1, (PARAGRAPH, "It begins")), page(2, (PARAGRAPH, "and ends.")))
    assert chunk.text == "It begins\nand ends."
    assert chunk.pages == (1, 2)
    assert [(span.page, span.chunk_start, span.chunk_end) for span in chunk.spans] == [
        (1, 0, 9),
        (2, 10, 19),
    ]


def rows(first: int, last: int) -> str:
    return "\n".join(f"PX-{number} | {number} Nm" for number in range(first, last + 1))


def test_a_long_table_is_cut_at_rows_behind_its_header() -> None:
    table = f"Model | Torque\n{rows(1, 20)}"
    found = chunks_of(page(1, (TABLE, table)))
    assert len(found) > 1
    assert all(chunk.is_table and chunk.text.startswith("Model | Torque\n") for chunk in found)
    body = [row for chunk in found for row in chunk.text.split("\n")[1:]]
    assert body == rows(1, 20).split("\n")
    assert found[1].spans[0].start == found[0].spans[0].start == 0


def test_a_table_that_goes_on_overleaf_gets_its_header_too() -> None:
    found = chunks_of(
        page(1, (TABLE, f"Model | Torque\n{rows(1, 6)}")), page(2, (TABLE, rows(7, 12)))
    )
    assert all(chunk.text.startswith("Model | Torque\n") for chunk in found)
    assert {span.page for span in found[-1].spans} == {1, 2}


def test_a_header_printed_again_is_not_given_twice() -> None:
    header = "Model | Torque"
    found = chunks_of(
        page(1, (TABLE, f"{header}\n{rows(1, 6)}")), page(2, (TABLE, f"{header}\n{rows(7, 12)}"))
    )
    assert all(chunk.text.count(header) == 1 for chunk in found)


def test_a_caption_goes_with_its_table() -> None:
    found = chunks_of(
        page(1, (PARAGRAPH, words(38)), (CAPTION, "Table 1: Torques"), (TABLE, rows(1, 3)))
    )
    assert found[-1].text == f"Table 1: Torques\n\n{rows(1, 3)}"
    assert found[-1].is_table


def test_a_long_prefix_keeps_its_end() -> None:
    path = [f"Heading {words(6)} {level}" for level in (1, 2, 3)]
    outline = tuple((level, path[level - 1], 1) for level in (1, 2, 3))
    parts = [(HEADING, heading, level) for level, heading in enumerate(path, start=1)]
    found = chunks_of(
        page(1, *parts, (PARAGRAPH, sentences(12))), outline=outline, title=words(9, "title")
    )
    assert found[-1].heading_path == tuple(path)
    prefix = found[-1].index_text.split("\n")[0]
    assert prefix == path[2]
    assert all(chunk.text not in chunk.index_text.split("\n")[0] for chunk in found)


def test_the_title_is_not_repeated_before_itself() -> None:
    found = chunks_of(
        page(1, (HEADING, "Safety", 1), (PARAGRAPH, sentences(15))),
        title="SAFETY",
        outline=OUTLINE,
    )
    assert found[-1].index_text.startswith("Safety\nSentence")


def test_running_heads_are_in_no_chunk(tmp_path: Path) -> None:
    sheets = [
        Sheet()
        .text(72, 820, "Station manual 2026")
        .text(72, 700, f"Sheet {word} speaks of something of its own.")
        .text(290, 30, f"Page {number} of 4")
        for number, word in enumerate(("one", "two", "three", "four"), start=1)
    ]
    pages = pages_of(pdf(sheets), tmp_path)
    text = " ".join(chunk.text for chunk in chunks_of(*pages))
    assert "Station manual" not in text
    assert "Page" not in text
    assert "Sheet four speaks" in text


def test_a_cover_does_not_head_the_chapters_after_it(tmp_path: Path) -> None:
    """What is large on its page only is no heading: sizes count over the whole document."""
    cover = Sheet().lines(72, 700, ["12 Main Street, Springfield"], size=9)
    cover.lines(72, 600, ["small print of the cover that goes on and on"] * 12, size=6)
    body = Sheet().text(72, 740, "Services", size=15, font="F2")
    body.lines(72, 700, ["The company sells pumps and repairs them in all of the country."] * 12)
    found = chunks_of(*pages_of(pdf([cover, body, body]), tmp_path), max_tokens=200)
    assert found[-1].heading_path == ("Services",)


def test_the_language_is_that_of_the_text() -> None:
    text = "Der Vertrag endet am Ende des Monats, wenn er nicht zuvor verlängert worden ist. " * 3
    assert {chunk.language for chunk in chunks_of(page(1, (PARAGRAPH, text)))} == {"de"}


def test_pages_without_text_have_no_chunks() -> None:
    assert chunks_of(page(1)) == []


@pytest.mark.parametrize(
    "settings", [{"target_fraction": 0.5}, {"prefix_fraction": 0.1}, {"min_tokens": 7}]
)
def test_the_fingerprint_changes_with_the_settings(settings: dict[str, float]) -> None:
    default = chunker_fingerprint(ChunkerSettings())
    assert chunker_fingerprint(ChunkerSettings()) == default
    assert chunker_fingerprint(ChunkerSettings.model_validate(settings)) != default
    assert "." not in default
