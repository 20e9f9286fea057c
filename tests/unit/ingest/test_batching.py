"""Parts and batches cover every page and chunk exactly once, whatever the sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.documents import NewPart, Stage
from ingest.batching import (
    VECTOR_GROUP,
    chunk_parts,
    first_parse_part,
    remaining_parse_parts,
    runs,
    split,
    vector_groups,
)


def test_a_document_starts_with_its_first_pages() -> None:
    assert first_parse_part(32) == NewPart(Stage.PARSE, 1, 32)


@given(st.integers(1, 400), st.integers(0, 400), st.integers(1, 32))
def test_the_remaining_pages_are_all_there_once(page_count: int, done: int, size: int) -> None:
    parts = remaining_parse_parts(page_count, done, size)
    pages = [page for part in parts for page in range(part.first, part.last + 1)]
    assert pages == list(range(done + 1, page_count + 1))
    assert all(part.last - part.first < size for part in parts)


@given(st.integers(1, 500), st.integers(1, 300))
def test_chunk_parts_cover_all_chunks_and_begin_on_the_grid(num_chunks: int, size: int) -> None:
    parts = chunk_parts(Stage.EMBED, num_chunks, size)
    ordinals = [ordinal for part in parts for ordinal in range(part.first, part.last + 1)]
    assert ordinals == list(range(num_chunks))
    assert all(part.first % VECTOR_GROUP == 0 for part in parts)


@given(st.integers(1, 500), st.integers(1, 300), st.integers(1, 300))
def test_any_parts_find_the_groups_that_others_stored(
    num_chunks: int, embed_size: int, index_size: int
) -> None:
    def groups(stage: Stage, size: int) -> set[tuple[int, ...]]:
        return {
            tuple(group)
            for part in chunk_parts(stage, num_chunks, size)
            for group in vector_groups(part.first, part.last, num_chunks)
        }

    stored = groups(Stage.EMBED, embed_size)
    assert groups(Stage.INDEX, index_size) == stored
    assert sorted(ordinal for group in stored for ordinal in group) == list(range(num_chunks))


def test_a_range_inside_a_group_touches_the_whole_group() -> None:
    assert list(vector_groups(17, 18, 20)) == [range(16, 20)]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([], []), ([4], [(4, 4)]), ([1, 2, 3, 7, 9, 10], [(1, 3), (7, 7), (9, 10)])],
)
def test_runs(numbers: list[int], expected: list[tuple[int, int]]) -> None:
    assert runs(numbers) == expected


def test_split_keeps_ranges_short() -> None:
    assert list(split([(1, 8), (20, 29)], 8)) == [(1, 8), (20, 27), (28, 29)]
