"""SequenceBlocks: the blocks of each request, from admission to its end.

Admission shares what the prefix cache already has and takes fresh blocks for the rest; steps fill
them; a block that is full is committed, so that others (and the request itself, should it be
preempted) find it. Nothing shared or registered is ever written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cache.hashing import BlockContent, block_salt, chain_hash, root_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.cache.blocks import BlockPool
    from engine.request import Request


class SequenceBlocks:
    """
    model_salt: fingerprint of the weights and the KV dtype; the root of every hash chain.
    prefix_query_tokens, prefix_hit_tokens: known tokens of requests at their first admission, and
        those of them that the cache had. Later admissions (after preemption) are not counted.
    """

    def __init__(
        self, pool: BlockPool, *, enable_prefix_caching: bool = True, model_salt: bytes = b""
    ) -> None:
        self.pool = pool
        self.enable_prefix_caching = enable_prefix_caching
        self.prefix_query_tokens = 0
        self.prefix_hit_tokens = 0
        self._root = root_hash(model_salt)
        # Copies that no step has done yet, by request id. Each holds a reference to its source, so
        # that nobody can overwrite what must still be copied.
        self._copies: dict[str, tuple[int, int]] = {}

    @property
    def root_hash(self) -> bytes:
        return self._root

    @property
    def copies(self) -> tuple[tuple[int, int], ...]:
        """(from, to) of the copies that the next step must do before it writes."""
        return tuple(self._copies.values())

    def match_prefix(self, request: Request) -> list[int]:
        """The cached blocks of the longest prefix of the request's known tokens, in order.

        Walks from the root and stops at the first miss: a block whose parent is gone is no hit.
        Takes no references.
        """
        blocks: list[int] = []
        if not self.enable_prefix_caching:
            return blocks
        for index in range(request.num_tokens // self.pool.block_size):
            block = self.pool.find(self._block_hash(request, index))
            if block is None:
                break
            blocks.append(block)
        return blocks

    def admit(self, request: Request, *, headroom: int = 0) -> bool:
        """Give the request blocks for all its known tokens, and set `num_computed_tokens` to what
        the cache has of them. False, with nothing changed, if fewer than `headroom` blocks would
        stay free.

        At least one token is left to compute, since a step must give logits. Where the cache has
        everything, that is the last token, and its block is a copy: the cached one is never
        written. Where there is no room for a copy, the last block is computed again instead.
        """
        cached = self.match_prefix(request)
        is_full_hit = len(cached) * self.pool.block_size == request.num_tokens
        if not self._has_room(request, cached, headroom + is_full_hit):
            if not is_full_hit or not self._has_room(request, cached[:-1], headroom):
                return False
            del cached[-1]
            is_full_hit = False
        self._install(request, cached, copy_last=is_full_hit)
        return True

    def num_blocks_short(self, request: Request) -> int:
        """Blocks that the table lacks for the known tokens."""
        return self.pool.num_blocks_for(request.num_tokens) - len(request.block_table)

    def grow(self, request: Request) -> None:
        """Extend the table to cover all known tokens. Ask `num_blocks_short` against
        `pool.num_free` first: raises IndexError when the pool is empty."""
        for _ in range(self.num_blocks_short(request)):
            request.block_table.append(self.pool.take())

    def commit(self, request: Request, num_computed_tokens: int) -> None:
        """The KV of the first `num_computed_tokens` tokens is now in the request's blocks: move the
        mark, and let others find the blocks that became full.

        Where another request has committed the same block meanwhile, this one lets its own go and
        shares that, so that requests which started together end up holding one copy of their
        prefix, and every cached block has a cached parent.
        """
        size = self.pool.block_size
        first = request.num_computed_tokens // size
        request.num_computed_tokens = num_computed_tokens
        if not self.enable_prefix_caching:
            return
        for index in range(first, num_computed_tokens // size):
            own = request.block_table[index]
            twin = self.pool.find(self._block_hash(request, index))
            if twin is None:
                self.pool.register(own, self._content(request, index))
            elif twin != own:
                self.pool.share(twin)
                self.pool.release(own)
                request.block_table[index] = twin

    def finish_copies(self) -> None:
        """A step has done the copies: let go of their sources."""
        for source, _ in self._copies.values():
            self.pool.release(source)
        self._copies.clear()

    def free(self, request: Request) -> None:
        """Let go of every block of the request, the deepest first. Committed ones stay cached."""
        if copy := self._copies.pop(request.request_id, None):
            self.pool.release(copy[0])
        for block in reversed(request.block_table):
            self.pool.release(block)
        request.block_table.clear()
        request.num_computed_tokens = 0

    def num_unshared_tokens(self, request: Request) -> int:
        """Computed tokens that no other request holds: what preempting it may cost."""
        shared = sum(self.pool.refcount(block) > 1 for block in request.block_table)
        return max(0, request.num_computed_tokens - shared * self.pool.block_size)

    def _has_room(self, request: Request, cached: Sequence[int], headroom: int) -> bool:
        fresh = self.pool.num_blocks_for(request.num_tokens) - len(cached)
        revived = sum(self.pool.refcount(block) == 0 for block in cached)
        return fresh + revived + headroom <= self.pool.num_free

    def _install(self, request: Request, cached: list[int], *, copy_last: bool) -> None:
        for block in cached:
            self.pool.share(block)
        num_cached = len(cached) * self.pool.block_size - copy_last
        request.block_table.extend(cached)
        if copy_last:
            source = request.block_table.pop()
            copy = self.pool.take()
            request.block_table.append(copy)
            self._copies[request.request_id] = (source, copy)
        self.grow(request)
        request.num_computed_tokens = num_cached
        if request.num_preemptions == 0:
            request.num_cached_tokens = num_cached
            self.prefix_query_tokens += request.num_tokens
            self.prefix_hit_tokens += num_cached

    def _block_hash(self, request: Request, index: int) -> bytes:
        """Chain hash of a full block of known tokens. Hashes are kept on the request: its tokens
        only grow, so a waiting or preempted request is hashed once."""
        hashes = request.block_hashes
        while len(hashes) <= index:
            hashes.append(self._content(request, len(hashes)).chain_hash)
        return hashes[index]

    def _content(self, request: Request, index: int) -> BlockContent:
        size = self.pool.block_size
        parent = request.block_hashes[index - 1] if index else self._root
        token_ids = tuple(request.tokens(index * size, (index + 1) * size))
        salt = block_salt(request, index, size)
        return BlockContent(chain_hash(parent, token_ids, salt), parent, token_ids, salt)
