"""Whatever a document looks like, its chunks fit, miss nothing and say where everything stands."""

from hypothesis import given
from hypothesis import strategies as st

from core.domain.pages import (
    DocumentFacts,
    Element,
    ElementKind,
    Line,
    Page,
    PageOutcome,
    text_of,
)
from core.settings import ChunkerSettings
from ingest.chunking import chunk_document
from ingest.layout.furniture import mark_furniture
from tests.fakes.models import FakeTokenCounter

_WORDS = st.sampled_from(
    [
        "pump",
        "Valve.",
        "45 Nm",
        "(main)",
        "gauge,",
        "ends!",
        "保険約款の規定。",
        "x" * 90,
        "e.g.",
        "–",
    ]
)
_PROSE = st.lists(_WORDS, min_size=1, max_size=60).map(" ".join)
_ROWS = st.lists(
    st.lists(_WORDS, min_size=2, max_size=4).map(" | ".join), min_size=1, max_size=25
).map("\n".join)
_KINDS = st.sampled_from([ElementKind.PARAGRAPH, ElementKind.LIST_ITEM, ElementKind.CAPTION])
_ELEMENTS = st.one_of(
    st.tuples(_KINDS, _PROSE, st.just(0)),
    st.tuples(st.just(ElementKind.TABLE), _ROWS, st.just(0)),
    st.tuples(
        st.just(ElementKind.HEADING),
        st.lists(_WORDS, min_size=1, max_size=6).map(" ".join),
        st.integers(1, 4),
    ),
)
_PAGES = st.lists(st.lists(_ELEMENTS, max_size=7), min_size=1, max_size=4)


def page(number: int, parts: list[tuple[ElementKind, str, int]]) -> Page:
    text, elements, lines = "", [], []
    for position, (kind, words, level) in enumerate(parts):
        text += "\n\n" if position else ""
        elements.append(Element(kind, len(text), len(text) + len(words), level))
        top = 0.2 + 0.05 * position
        lines.append(Line(len(text), len(text) + len(words), (0.1, top, 0.9, top + 0.02)))
        text += words
    outcome = PageOutcome.OK if text else PageOutcome.EMPTY
    return Page(number, 595, 842, 0, str(number), text, tuple(lines), tuple(elements), outcome)


@given(
    pages=_PAGES,
    title=_PROSE,
    max_tokens=st.integers(24, 120),
    target=st.sampled_from([0.5, 0.8, 1.0]),
    min_tokens=st.sampled_from([0, 5, 40]),
)
def test_chunks_fit_and_miss_nothing(
    pages: list[list[tuple[ElementKind, str, int]]],
    title: str,
    max_tokens: int,
    target: float,
    min_tokens: int,
) -> None:
    counter = FakeTokenCounter()
    made = [page(number, parts) for number, parts in enumerate(pages, start=1)]
    chunks = chunk_document(
        made,
        DocumentFacts(len(made), title, None, (), {}),
        title=title,
        token_counter=counter,
        max_tokens=max_tokens,
        settings=ChunkerSettings(target_fraction=target, min_tokens=min_tokens),
    )
    by_number = {each.number: each for each in made}
    covered: dict[int, set[int]] = {each.number: set() for each in made}
    for ordinal, chunk in enumerate(chunks):
        assert chunk.ordinal == ordinal
        assert chunk.text == text_of(chunk.spans, by_number)
        assert chunk.index_text.endswith(chunk.text)
        assert chunk.num_tokens == counter.count(chunk.index_text) + 2 <= max_tokens
        for span in chunk.spans:
            text = by_number[span.page].text[span.start : span.end]
            assert chunk.text[span.chunk_start : span.chunk_end] == text
            covered[span.page].update(range(span.start, span.end))
    for each in mark_furniture(made):
        for element in each.elements:
            if element.kind is not ElementKind.FURNITURE:
                missed = set(range(element.start, element.end)) - covered[each.number]
                assert all(each.text[index].isspace() for index in missed)
