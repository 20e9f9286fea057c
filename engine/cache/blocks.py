"""BlockPool: who holds which block, and which unreferenced blocks still hold KV worth finding.

A block is in exactly one of three states:

blank       nobody references it and nothing in it can be found again; handed out first
referenced  in the block table of at least one request; `refcount` counts them
cached      nobody references it, but its KV can still be found by chain hash; handed out when no
            blank block is left, the longest unused first (as in vLLM's block pool)

A referenced block that is full may also be registered under its chain hash: then others may share
it, and it becomes cached, not blank, when its last reference goes. Block 0 is the null block: it is
in no state, is never handed out and never written (padding reads it).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.cache.hashing import BlockContent

NULL_BLOCK = 0


class BlockPool:
    """`num_blocks` counts the null block, as `KVLayout.num_blocks` does; `block_size` in tokens.

    Everything is O(1). Only the engine's owner thread may touch it.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        if num_blocks < 2 or block_size < 1:
            raise ValueError("a pool needs at least one block besides the null block")
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._refcounts = [0] * num_blocks
        self._contents: list[BlockContent | None] = [None] * num_blocks
        self._block_of_hash: dict[bytes, int] = {}
        self._blank = list(range(num_blocks - 1, NULL_BLOCK, -1))
        self._cached: OrderedDict[int, None] = OrderedDict()  # longest unused first

    @property
    def num_usable(self) -> int:
        """Blocks that can ever be handed out."""
        return self.num_blocks - 1

    @property
    def num_free(self) -> int:
        """Blocks that can be handed out now: blank ones, and cached ones by eviction."""
        return len(self._blank) + len(self._cached)

    @property
    def num_cached(self) -> int:
        return len(self._cached)

    @property
    def num_referenced(self) -> int:
        return self.num_usable - self.num_free

    def num_blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)

    def take(self) -> int:
        """A block to write into, with one reference. Raises IndexError when none is free."""
        if self._blank:
            block = self._blank.pop()
        elif self._cached:
            block, _ = self._cached.popitem(last=False)
            self._forget(block)
        else:
            raise IndexError("no block is free; ask num_free first")
        self._refcounts[block] = 1
        return block

    def share(self, block: int) -> None:
        """One more reference to a registered block, which may be cached."""
        if self._contents[block] is None:
            raise ValueError(f"block {block} is not registered: it may still be written")
        if self._refcounts[block] == 0:
            del self._cached[block]
        self._refcounts[block] += 1

    def release(self, block: int) -> None:
        """One reference less. Release the blocks of a sequence from its end, so that chains are
        evicted from their tails and no cached block outlives its parent."""
        if self._refcounts[block] < 1:
            raise ValueError(f"block {block} is not referenced")
        self._refcounts[block] -= 1
        if self._refcounts[block] == 0:
            if self._contents[block] is None:
                self._blank.append(block)
            else:
                self._cached[block] = None

    def find(self, chain_hash: bytes) -> int | None:
        """The registered block of that name, referenced or cached. Takes no reference."""
        return self._block_of_hash.get(chain_hash)

    def register(self, block: int, content: BlockContent) -> None:
        """Let others find a full block that the caller holds. It must not be written from now on.

        Raises ValueError if it is registered already, or its name is taken by another block."""
        if self._refcounts[block] < 1 or self._contents[block] is not None:
            raise ValueError(f"block {block} is not a referenced, unregistered block")
        if content.chain_hash in self._block_of_hash:
            raise ValueError("another block is registered under this chain hash")
        self._contents[block] = content
        self._block_of_hash[content.chain_hash] = block

    def forget_cached(self) -> int:
        """Make every cached block blank (an empty prefix cache); returns how many."""
        num_forgotten = len(self._cached)
        for block in self._cached:
            self._forget(block)
            self._blank.append(block)
        self._cached.clear()
        return num_forgotten

    def refcount(self, block: int) -> int:
        return self._refcounts[block]

    def content(self, block: int) -> BlockContent | None:
        """What a registered block holds; None for the others."""
        return self._contents[block]

    def is_writable(self, block: int) -> bool:
        """Held once and not registered: nobody else can see a write."""
        return self._refcounts[block] == 1 and self._contents[block] is None

    def blank_blocks(self) -> Iterator[int]:
        return iter(self._blank)

    def cached_blocks(self) -> Iterator[int]:
        """In the order in which they would be evicted."""
        return iter(self._cached)

    def registered_hashes(self) -> Iterator[tuple[bytes, int]]:
        """Every chain hash that can be found, with its block."""
        return iter(self._block_of_hash.items())

    def _forget(self, block: int) -> None:
        content = self._contents[block]
        if content is not None:
            del self._block_of_hash[content.chain_hash]
            self._contents[block] = None
