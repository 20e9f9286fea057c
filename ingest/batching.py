"""How pages and chunks are cut into parts and batches: pure arithmetic, the same for every worker.

Pages count from 1, chunks from 0, ranges are inclusive as in `core.domain.documents.NewPart`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.domain.documents import NewPart, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Vectors are stored in groups of this many chunks. The grid is fixed over the whole document, so
# that the index stage and a repeated embed part find what is there, whatever the parts' sizes are.
VECTOR_GROUP = 16


def first_parse_part(pages_per_part: int) -> NewPart:
    """What every accepted document starts with; its last page may lie behind the document's end."""
    return NewPart(Stage.PARSE, 1, pages_per_part)


def remaining_parse_parts(
    page_count: int, last_done: int, pages_per_part: int
) -> tuple[NewPart, ...]:
    """Parts for the pages behind `last_done`."""
    return tuple(
        NewPart(Stage.PARSE, first, min(first + pages_per_part - 1, page_count))
        for first in range(last_done + 1, page_count + 1, pages_per_part)
    )


def chunk_parts(stage: Stage, num_chunks: int, chunks_per_part: int) -> tuple[NewPart, ...]:
    """Parts of a stage over all chunks; each begins on the grid of vector groups."""
    size = max(1, chunks_per_part // VECTOR_GROUP) * VECTOR_GROUP
    return tuple(
        NewPart(stage, first, min(first + size, num_chunks) - 1)
        for first in range(0, num_chunks, size)
    )


def vector_groups(first: int, last: int, num_chunks: int) -> Iterator[range]:
    """The groups of the grid that chunks `first..last` touch, each clipped at the document's
    end."""
    start = first // VECTOR_GROUP * VECTOR_GROUP
    for low in range(start, min(last + 1, num_chunks), VECTOR_GROUP):
        yield range(low, min(low + VECTOR_GROUP, num_chunks))


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending numbers as runs without gaps: 1 2 3 7 -> (1, 3) (7, 7)."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def split(ranges: Sequence[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """The same numbers in ranges of at most `size`."""
    for first, last in ranges:
        for low in range(first, last + 1, size):
            yield low, min(low + size - 1, last)
