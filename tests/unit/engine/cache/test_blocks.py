"""The block pool: three states, LRU, and refusals."""

import pytest

from engine.cache.blocks import NULL_BLOCK, BlockPool
from engine.cache.hashing import BlockContent, chain_hash, root_hash

ROOT = root_hash(b"")


def content(*token_ids: int) -> BlockContent:
    return BlockContent(chain_hash(ROOT, token_ids), ROOT, token_ids)


def cached_pool(num_cached: int, num_blocks: int = 8) -> tuple[BlockPool, list[BlockContent]]:
    """A pool with that many cached blocks, released in the order of their contents."""
    pool = BlockPool(num_blocks, block_size=2)
    contents = [content(index, index) for index in range(num_cached)]
    blocks = [pool.take() for _ in contents]
    for block, one in zip(blocks, contents, strict=True):
        pool.register(block, one)
    for block in blocks:
        pool.release(block)
    return pool, contents


def test_every_block_but_the_null_block_is_handed_out_once() -> None:
    pool = BlockPool(5, block_size=4)
    assert sorted(pool.take() for _ in range(4)) == [1, 2, 3, 4]
    assert (pool.num_free, pool.num_referenced) == (0, 4)
    with pytest.raises(IndexError):
        pool.take()


@pytest.mark.parametrize(("num_blocks", "block_size"), [(1, 4), (0, 4), (4, 0)])
def test_a_pool_has_room_for_something(num_blocks: int, block_size: int) -> None:
    with pytest.raises(ValueError, match="at least one block"):
        BlockPool(num_blocks, block_size)


def test_a_block_that_is_full_of_findable_kv_waits_in_the_cache() -> None:
    pool, (one,) = cached_pool(1)
    block = pool.find(one.chain_hash)
    assert block is not None
    assert (pool.num_cached, pool.num_free, pool.num_referenced) == (1, 7, 0)
    pool.share(block)
    assert (pool.num_cached, pool.num_free, pool.num_referenced) == (0, 6, 1)
    assert not pool.is_writable(block), "held once, but others can find it"


def test_blank_blocks_go_before_cached_ones_and_the_longest_unused_is_evicted_first() -> None:
    pool, contents = cached_pool(3)
    blocks = [pool.find(one.chain_hash) for one in contents]
    assert None not in blocks
    blank = {pool.take() for _ in range(4)}
    assert blank.isdisjoint(blocks), "nothing is evicted while there is a blank block"
    touched = blocks[0]
    assert touched is not None
    pool.share(touched)
    pool.release(touched)
    assert [pool.take() for _ in range(3)] == [blocks[1], blocks[2], blocks[0]]
    assert all(pool.find(one.chain_hash) is None for one in contents), "evicted is not found"


def test_an_evicted_block_is_writable_and_has_no_content() -> None:
    pool, (one,) = cached_pool(1, num_blocks=2)
    block = pool.take()
    assert pool.is_writable(block)
    assert pool.content(block) is None
    pool.register(block, one)  # the name is free again


def test_a_shared_block_survives_until_the_last_holder_lets_go() -> None:
    pool, (one,) = cached_pool(1)
    block = pool.find(one.chain_hash)
    assert block is not None
    pool.share(block)
    pool.share(block)
    assert pool.refcount(block) == 2
    pool.release(block)
    assert list(pool.cached_blocks()) == []
    pool.release(block)
    assert list(pool.cached_blocks()) == [block]


def test_misuse_is_refused() -> None:
    pool, (one,) = cached_pool(1)
    cached, private = pool.find(one.chain_hash), pool.take()
    assert cached is not None
    with pytest.raises(ValueError, match="may still be written"):
        pool.share(private)
    with pytest.raises(ValueError, match="another block is registered"):
        pool.register(private, one)
    with pytest.raises(ValueError, match="not referenced"):
        pool.release(cached)
    with pytest.raises(ValueError, match="not a referenced"):
        pool.register(cached, content(9, 9))
    pool.register(private, content(9, 9))
    with pytest.raises(ValueError, match="unregistered"):
        pool.register(private, content(8, 8))
    with pytest.raises(ValueError, match="may still be written"):
        pool.share(NULL_BLOCK)


def test_forgetting_the_cache_makes_its_blocks_blank_and_leaves_held_ones() -> None:
    pool, contents = cached_pool(3)
    held = pool.find(contents[1].chain_hash)
    assert held is not None
    pool.share(held)
    assert pool.forget_cached() == 2
    assert (pool.num_cached, pool.num_free) == (0, 6)
    assert [pool.find(one.chain_hash) for one in contents] == [None, held, None]


@pytest.mark.parametrize(("num_tokens", "num_blocks"), [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2)])
def test_blocks_for_tokens(num_tokens: int, num_blocks: int) -> None:
    assert BlockPool(4, block_size=4).num_blocks_for(num_tokens) == num_blocks
