"""check_integrity sees each kind of damage."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.cache.blocks import BlockPool
from engine.cache.integrity import check_integrity
from engine.cache.sequence_blocks import SequenceBlocks
from engine.errors import CacheCorrupted
from engine.request import Request
from engine.sampling_params import SamplingParams

Damage = Callable[[BlockPool, Request], object]


def sound_world() -> tuple[SequenceBlocks, Request]:
    """One request of three blocks, two of them registered, and a cached chain of two."""
    blocks = SequenceBlocks(BlockPool(10, 4))
    request = Request("running", list(range(10)), SamplingParams())
    gone = Request("gone", list(range(50, 58)), SamplingParams())
    for one in (request, gone):
        assert blocks.admit(one)
        blocks.commit(one, one.num_tokens)
    blocks.free(gone)
    return blocks, request


def test_a_sound_pool_passes() -> None:
    blocks, request = sound_world()
    check_integrity(blocks, [request])


def _rename(pool: BlockPool, request: Request) -> None:
    block = request.block_table[0]
    content = pool.content(block)
    assert content is not None
    pool._contents[block] = replace(content, token_ids=(9, 9, 9, 9))


def _forget_parent(pool: BlockPool, request: Request) -> None:
    """The cached parent goes, its child stays: eviction from the wrong end."""
    child, parent = pool.cached_blocks()
    assert pool.content(child) is not None
    pool._forget(parent)
    del pool._cached[parent]
    pool._blank.append(parent)


DAMAGES: dict[str, tuple[Damage, str]] = {
    "leak": (lambda pool, request: request.block_table.pop(), "named 0 times"),
    "double free": (lambda pool, request: pool.release(request.block_table[2]), "0 references"),
    "two owners": (
        lambda pool, request: request.block_table.append(request.block_table[2]),
        "named 2 times",
    ),
    "null block in a table": (lambda pool, request: request.block_table.append(0), "block 0"),
    "null block handed out": (lambda pool, request: pool._blank.append(0), "block 0 is in 1"),
    "free and referenced": (
        lambda pool, request: pool._blank.append(request.block_table[0]),
        "in 2 states",
    ),
    "blank and cached": (
        lambda pool, request: pool._blank.append(next(pool.cached_blocks())),
        "in 2 states",
    ),
    "lost": (lambda pool, request: pool._blank.pop(), "in 0 states"),
    "nameless in the cache": (
        lambda pool, request: pool._forget(next(pool.cached_blocks())),
        "has no name",
    ),
    "another name": (_rename, "do not give its chain hash"),
    "orphan": (_forget_parent, "its parent is not"),
    "short table": (
        lambda pool, request: setattr(request, "num_computed_tokens", 13),
        "more tokens than its blocks hold",
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_seen(damage: Damage, message: str) -> None:
    blocks, request = sound_world()
    damage(blocks.pool, request)
    with pytest.raises(CacheCorrupted, match=message):
        check_integrity(blocks, [request])
