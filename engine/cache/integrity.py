"""check_integrity: the pool's books against the block tables, from scratch.

Run when the engine is idle and after every test: a leaked or doubly owned block is found in the
minute it happens, not when the pool has run dry (the habit is mini-sglang's).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engine.cache.blocks import NULL_BLOCK
from engine.errors import CacheCorrupted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.cache.blocks import BlockPool
    from engine.cache.sequence_blocks import SequenceBlocks
    from engine.request import Request


def check_integrity(blocks: SequenceBlocks, requests: Iterable[Request]) -> None:
    """`requests`: all that hold blocks. Raises CacheCorrupted with everything that is wrong.

    - the references of each block are the table entries (and pending copies) that name it
    - each block but the null block is blank, cached or referenced, and only one of these
    - every registered block is found under its chain hash, which its tokens give again, and so is
      its parent
    About 4 us for each cached block.
    """
    requests = tuple(requests)
    problems = [
        *_wrong_references(blocks, requests),
        *_wrong_states(blocks.pool),
        *_wrong_names(blocks.pool, blocks.root_hash),
        *_short_tables(blocks.pool, requests),
    ]
    if problems:
        raise CacheCorrupted("; ".join(problems[:8]))


def _wrong_references(blocks: SequenceBlocks, requests: tuple[Request, ...]) -> Iterable[str]:
    entries = Counter(block for request in requests for block in request.block_table)
    entries.update(source for source, _ in blocks.copies)
    for block in range(blocks.pool.num_blocks):
        if entries[block] != blocks.pool.refcount(block):
            yield (
                f"block {block} has {blocks.pool.refcount(block)} references and is named "
                f"{entries[block]} times"
            )


def _wrong_states(pool: BlockPool) -> Iterable[str]:
    blank, cached = list(pool.blank_blocks()), list(pool.cached_blocks())
    states = Counter([*blank, *cached])
    states.update(block for block in range(pool.num_blocks) if pool.refcount(block))
    for block in range(pool.num_blocks):
        if states[block] != (block != NULL_BLOCK):
            yield f"block {block} is in {states[block]} states"
    yield from (f"blank block {block} is registered" for block in blank if pool.content(block))
    yield from (f"cached block {block} has no name" for block in cached if not pool.content(block))


def _wrong_names(pool: BlockPool, root: bytes) -> Iterable[str]:
    names = dict(pool.registered_hashes())
    for name, block in names.items():
        content = pool.content(block)
        if content is None or content.chain_hash != name:
            yield f"block {block} is found under a name that it does not have"
        elif len(content.token_ids) != pool.block_size or not content.is_consistent:
            yield f"the tokens of block {block} do not give its chain hash"
        elif content.parent_hash != root and content.parent_hash not in names:
            yield f"block {block} is cached and its parent is not"
    num_registered = sum(pool.content(block) is not None for block in range(pool.num_blocks))
    if num_registered != len(names):
        yield f"{num_registered} blocks are registered under {len(names)} names"


def _short_tables(pool: BlockPool, requests: tuple[Request, ...]) -> Iterable[str]:
    for request in requests:
        if len(request.block_table) < pool.num_blocks_for(request.num_computed_tokens):
            yield f"{request.request_id} has computed more tokens than its blocks hold"
