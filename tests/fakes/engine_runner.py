"""A runner without a model: its KV is a hash of what a real model's KV depends on, and its next
token a hash of all KV it can see, so that one wrong block, copy or eviction changes the output."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from engine.cache.blocks import NULL_BLOCK, BlockPool
from engine.request import Request
from engine.step import ScheduledSequence, StepOutput, StepPlan

POISON = 0xDEAD_BEEF_DEAD_BEEF
_WIDTH = 8


class _Attention:
    """Folds KV in order; cheap to extend by one token at a time."""

    def __init__(self, visible: bytes = b"") -> None:
        self._hasher = blake2b(visible, digest_size=_WIDTH)

    def kv_of(self, token_id: int) -> bytes:
        """KV of the next token: of the token and of everything before it, as behind a layer of
        attention. It becomes visible."""
        hasher = self._hasher.copy()
        hasher.update(token_id.to_bytes(4, "little"))
        kv = hasher.digest()
        self._hasher.update(kv)
        return kv

    def next_token(self, vocab_size: int) -> int:
        return int.from_bytes(self._hasher.digest(), "little") % vocab_size


def continuation(prompt: Sequence[int], num_tokens: int, vocab_size: int) -> list[int]:
    """What the model writes after a prompt, computed without blocks, batches or chunks."""
    attention = _Attention()
    for token_id in prompt:
        attention.kv_of(token_id)
    output = []
    for _ in range(num_tokens):
        token_id = attention.next_token(vocab_size)
        output.append(token_id)
        attention.kv_of(token_id)
    return output


def kv_of_prefix(token_ids: Sequence[int]) -> list[int]:
    """The KV of each token of a prefix, as it must stand in the pool."""
    attention = _Attention()
    return [int.from_bytes(attention.kv_of(token_id), "little") for token_id in token_ids]


class FakeRunner:
    """Implements `engine.step.Runner` over a simulated paged KV, [num_blocks, block_size] uint64.

    It refuses what a real one would silently get wrong: a plan over the budget, a slot written
    twice, a write to the null block or to one that others can see, a gap in the positions. With a
    `pool` it also fills every blank block with poison before each step.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        *,
        vocab_size: int = 50,
        pool: BlockPool | None = None,
        max_num_tokens: int | None = None,
    ) -> None:
        self.kv = np.full((num_blocks, block_size), POISON, dtype=np.uint64)
        self.vocab_size = vocab_size
        self.num_computed_tokens = 0
        self.num_copied_blocks = 0
        self._pool = pool
        self._max_num_tokens = max_num_tokens

    def run(self, plan: StepPlan) -> StepOutput:
        self._check(plan)
        self._poison_blank_blocks()
        for source, target in plan.copies:
            self.kv[target] = self.kv[source]
            self.num_copied_blocks += 1
        token_ids = {}
        for sequence in plan.sequences:
            attention = self._compute(sequence)
            if sequence.samples:
                token_ids[sequence.request.request_id] = attention.next_token(self.vocab_size)
        self.num_computed_tokens += plan.num_tokens
        return StepOutput(token_ids)

    def _compute(self, sequence: ScheduledSequence) -> _Attention:
        request, block_size = sequence.request, self.kv.shape[1]
        visible = self.kv[request.block_table].reshape(-1)[: sequence.start]
        assert POISON not in visible, f"{request.request_id} sees a block that was freed"
        attention = _Attention(visible.tobytes())
        for position in range(sequence.start, sequence.end):
            block = request.block_table[position // block_size]
            kv = attention.kv_of(request.token_at(position))
            self.kv[block, position % block_size] = int.from_bytes(kv, "little")
        return attention

    def _check(self, plan: StepPlan) -> None:
        assert plan.sequences, "an empty plan"
        assert self._max_num_tokens is None or plan.num_tokens <= self._max_num_tokens
        written: list[tuple[int, int]] = []
        copied = {target for _, target in plan.copies}
        for sequence in plan.sequences:
            request = sequence.request
            assert sequence.num_tokens > 0
            assert sequence.start == request.num_computed_tokens, "a gap in the positions"
            assert sequence.end <= request.num_tokens, "a token that is not known"
            written += self._slots(request, sequence.start, sequence.end)
        assert len(written) == len(set(written)), "two tokens in one slot"
        assert len(copied) == len(plan.copies), "two copies into one block"
        for block in copied.union(block for block, _ in written):
            assert block != NULL_BLOCK, "the null block is written"
            is_writable = self._pool is None or self._pool.is_writable(block)
            assert is_writable, f"block {block} is written, and others can see it"

    def _slots(self, request: Request, start: int, end: int) -> list[tuple[int, int]]:
        size = self.kv.shape[1]
        return [(request.block_table[at // size], at % size) for at in range(start, end)]

    def _poison_blank_blocks(self) -> None:
        if self._pool is not None:
            self.kv[list(self._pool.blank_blocks())] = POISON
