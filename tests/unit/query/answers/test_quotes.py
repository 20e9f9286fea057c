"""A quote is page text found by offsets; offsets that do not hold drop it, loudly."""

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from core.artifacts import Artifacts
from core.domain.access import Principal
from core.domain.pages import Chunk, Page, SourceSpan
from query.answers.evidence import Evidence
from query.answers.quotes import PageTexts, Quote, cut_quote
from tests.fakes.object_store import FakeObjectStore
from tests.passages import (
    PARSER,
    SHA256,
    make_chunk,
    make_page,
    make_passage,
    make_scored,
    make_version,
)

ASKER = Principal.system("ten_1", "test")
FIRST = "Pumps are tested yearly.\nA log is kept by the"
SECOND = "shift leader for ten years."

Cut = Callable[..., Quote | None]


@pytest.fixture
def cut() -> Cut:
    """Quotes chunk.text[start:end] against stored pages."""

    def quote(
        chunk: Chunk, pages: list[Page], start: int = 0, end: int | None = None
    ) -> Quote | None:
        store = FakeObjectStore({"documents": "ten_1"})
        artifacts = Artifacts(store, "pincite-artifacts")
        if pages:
            artifacts.write_pages(ASKER, SHA256, PARSER, pages)
        passage = make_passage(chunk, "p1")
        evidence = Evidence(
            passage,
            start,
            len(chunk.text) if end is None else end,
            make_scored(passage),
        )
        versions = {passage.generation_id: make_version(passage.generation_id)}
        return cut_quote(evidence, PageTexts(ASKER, artifacts, versions, [evidence]))

    return quote


def across_pages() -> Chunk:
    """One chunk over the end of page 1 and the beginning of page 2."""
    text = f"{FIRST} {SECOND}"
    return make_chunk(
        text,
        spans=[
            SourceSpan(1, 0, len(FIRST), 0, len(FIRST)),
            SourceSpan(2, 0, len(SECOND), len(FIRST) + 1, len(text)),
        ],
    )


def test_a_quote_is_the_pages_text_with_its_lines(cut: Cut) -> None:
    start = FIRST.index("A log")
    found = cut(make_chunk(FIRST), [make_page(FIRST)], start, start + len("A log is kept"))
    assert found is not None
    assert found.text == "A log is kept"
    (location,) = found.locations
    assert (location.page, location.start, location.end) == (1, 25, 38)
    assert FIRST[location.start : location.end] == found.text
    assert location.rects == ((0.1, 0.15, 0.9, 0.18),)
    assert found.page_sizes == {1: (600.0, 800.0)}


def test_a_quote_over_two_pages_has_a_location_on_each(cut: Cut) -> None:
    pages = [make_page(FIRST, 1), make_page(SECOND, 2)]
    found = cut(across_pages(), pages, FIRST.index("A log"))
    assert found is not None
    assert found.text == "A log is kept by the\nshift leader for ten years."
    assert [(place.page, place.start, place.end) for place in found.locations] == [
        (1, 25, 45),
        (2, 0, 27),
    ]


def test_neighbouring_spans_of_a_page_are_one_place(cut: Cut) -> None:
    text = "You need:\nsafety shoes."
    chunk = make_chunk(
        "You need: safety shoes.",
        spans=[SourceSpan(1, 0, 9, 0, 9), SourceSpan(1, 10, 23, 10, 23)],
    )
    found = cut(chunk, [make_page(text)])
    assert found is not None
    assert found.text == text
    assert [(place.start, place.end) for place in found.locations] == [(0, 23)]


def shifted(chunk: Chunk, by: int) -> Chunk:
    (span,) = chunk.spans
    return make_chunk(
        chunk.text,
        spans=[SourceSpan(span.page, span.start + by, span.end + by, 0, len(chunk.text))],
    )


@pytest.mark.parametrize(
    ("chunk", "pages", "problem"),
    [
        pytest.param(shifted(make_chunk("Pumps are"), 1), [make_page(FIRST)], "text_differs",
                     id="offsets moved by one"),
        pytest.param(make_chunk("Pumps were"), [make_page(FIRST)], "text_differs",
                     id="other words in the index"),
        pytest.param(shifted(make_chunk("Pumps"), 100), [make_page(FIRST)], "outside_page",
                     id="beyond the page"),
        pytest.param(shifted(make_chunk("Pumps"), -1), [make_page(FIRST)], "outside_page",
                     id="before the page"),
        pytest.param(make_chunk("Pumps", spans=[SourceSpan(9, 0, 5, 0, 5)]), [make_page(FIRST)],
                     "page_missing", id="another page"),
        pytest.param(make_chunk("Pumps"), [], "page_missing", id="no pages at all"),
        pytest.param(make_chunk("Pumps are", spans=[SourceSpan(1, 0, 5, 0, 5)]),
                     [make_page(FIRST)], "text_without_place", id="half has no place"),
        pytest.param(make_chunk("Pumps", spans=[]), [make_page(FIRST)], "text_without_place",
                     id="no places"),
    ],
)  # fmt: skip
def test_corrupted_offsets_never_become_a_quote(
    cut: Cut, chunk: Chunk, pages: list[Page], problem: str
) -> None:
    with capture_logs() as logs:
        assert cut(chunk, pages) is None
    (line,) = logs
    assert (line["event"], line["log_level"], line["problem"]) == (
        "quote.dropped",
        "error",
        problem,
    )
    assert "Pumps" not in str(line)
