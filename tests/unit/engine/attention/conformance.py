"""What every attention backend must do, tested against the reference.

To hook a backend in, make a `test_<name>.py` with a subclass:

    class TestMine(AttentionConformance):
        dtypes = (torch.float32,)                       # what it is tried in
        cases = TINY_CASES                              # or CASES, or your own list
        tolerances = {torch.float32: 1e-5}              # greatest absolute difference

        def create(self, layout, num_query_heads, scale):
            return MyAttention(layout, num_query_heads, scale)

`device` is a class attribute too; conftest.py here parametrises the tests by these. The pools have
shuffled block ids, and every slot that no sequence references is NaN.
"""

from __future__ import annotations

import dataclasses
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from engine.attention.base import AttentionBackend, AttentionBatch, KVLayout
from engine.attention.reference import ReferenceAttention

NUM_LAYERS = 2


@dataclass(frozen=True)
class Case:
    """sequences: (context length, number of queries in the step) of each."""

    num_kv_heads: int
    group: int
    head_dim: int
    block_size: int
    sequences: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        lengths = ",".join(f"{context}/{queries}" for context, queries in self.sequences)
        return f"kv{self.num_kv_heads}-g{self.group}-d{self.head_dim}-b{self.block_size}-{lengths}"


_MIXED = ((1, 1), (16, 1), (17, 1), (33, 1), (7, 7), (16, 16), (40, 9), (35, 2))
CASES = (
    Case(1, 1, 16, 4, _MIXED),
    Case(2, 1, 64, 16, _MIXED),
    Case(3, 3, 64, 16, _MIXED),
    Case(2, 3, 16, 4, _MIXED),
    Case(1, 8, 64, 4, _MIXED),
    Case(2, 8, 16, 16, _MIXED),
    Case(3, 3, 64, 16, ((1, 1),)),
    Case(3, 3, 64, 16, ((130, 1), (5, 1), (600, 1), (129, 1), (128, 1))),
    Case(3, 3, 64, 16, ((300, 130), (257, 1), (520, 20))),
)
# For what runs in an interpreter: at most three sequences and four blocks.
TINY_CASES = (
    Case(1, 1, 16, 4, ((1, 1), (5, 1), (7, 3))),
    Case(2, 3, 16, 4, ((9, 1), (6, 6))),
    Case(1, 8, 16, 4, ((12, 1), (16, 5))),
    Case(1, 3, 64, 16, ((20, 1), (17, 2))),
)


@dataclass(frozen=True)
class PagedStep:
    """A pool's layout, a step over it, and all keys, values and queries there are. Keys and values
    are [layers, sum of contexts, kv_heads, head_dim] in the order of `context_slots`; queries are
    [layers, rows, query_heads, head_dim]."""

    layout: KVLayout
    num_query_heads: int
    batch: AttentionBatch
    context_slots: list[int]
    keys: torch.Tensor
    values: torch.Tensor
    queries: torch.Tensor

    @property
    def scale(self) -> float:
        return float(self.layout.head_dim**-0.5)

    @property
    def unreferenced_slots(self) -> list[int]:
        """All slots but those of the contexts and of the null block."""
        size = self.layout.block_size
        used = set(self.context_slots)
        return [slot for slot in range(size, self.layout.num_blocks * size) if slot not in used]


def paged_step(case: Case, dtype: torch.dtype, device: torch.device, *, seed: int = 0) -> PagedStep:
    """A random step of this shape: block ids shuffled, spare blocks in between, tables longer than
    the contexts need (the surplus entries name blocks that nobody filled)."""
    shuffle = random.Random(seed)
    size = case.block_size
    num_spare = 4
    needed = [-(-context // size) for context, _ in case.sequences]
    num_blocks = 1 + sum(needed) + num_spare
    free = list(range(1, num_blocks))
    shuffle.shuffle(free)
    spare, free = free[:num_spare], free[num_spare:]

    tables: list[list[int]] = []
    context_slots: list[int] = []
    step_slots: list[int] = []
    starts = [0]
    for (context, num_queries), count in zip(case.sequences, needed, strict=True):
        table, free = free[:count], free[count:]
        slots = [table[at // size] * size + at % size for at in range(context)]
        context_slots += slots
        step_slots += slots[context - num_queries :]
        starts.append(starts[-1] + num_queries)
        tables.append(table + shuffle.sample(spare, shuffle.randrange(num_spare)))

    layout = KVLayout(NUM_LAYERS, num_blocks, size, case.num_kv_heads, case.head_dim, dtype, device)
    generator = torch.Generator().manual_seed(seed)

    def draw(rows: int, heads: int) -> torch.Tensor:
        shape = (NUM_LAYERS, rows, heads, case.head_dim)
        return torch.randn(shape, generator=generator).to(device, dtype)

    num_query_heads = case.num_kv_heads * case.group
    return PagedStep(
        layout=layout,
        num_query_heads=num_query_heads,
        batch=AttentionBatch(
            starts,
            [context for context, _ in case.sequences],
            tables,
            torch.tensor(step_slots, device=device),
        ),
        context_slots=context_slots,
        keys=draw(len(context_slots), case.num_kv_heads),
        values=draw(len(context_slots), case.num_kv_heads),
        queries=draw(starts[-1], num_query_heads),
    )


def write_slots(
    backend: AttentionBackend, slots: Sequence[int], keys: torch.Tensor, values: torch.Tensor
) -> None:
    """Writes rows, [layers, len(slots), kv_heads, head_dim], to any slots, as one step would."""
    size = backend.layout.block_size
    blocks = sorted({slot // size for slot in slots})
    blocks += [blocks[0]] * (-(-len(slots) // size) - len(blocks))
    index = torch.tensor(list(slots), device=backend.layout.device)
    backend.prepare(AttentionBatch([0, len(slots)], [len(slots)], [blocks], index))
    for layer in range(backend.layout.num_layers):
        backend.write(layer, keys[layer], values[layer])


def run_step(backend: AttentionBackend, step: PagedStep) -> torch.Tensor:
    """Fills the contexts and attends: [layers, rows, query_heads, head_dim]."""
    write_slots(backend, step.context_slots, step.keys, step.values)
    return attend(backend, step)


def attend(backend: AttentionBackend, step: PagedStep) -> torch.Tensor:
    backend.prepare(step.batch)
    return torch.stack([backend.attend(layer, step.queries[layer]) for layer in range(NUM_LAYERS)])


def poison(backend: AttentionBackend, slots: Sequence[int]) -> None:
    """NaN wherever nobody has a claim."""
    layout = backend.layout
    shape = (layout.num_layers, len(slots), layout.num_kv_heads, layout.head_dim)
    nothing = torch.full(shape, float("nan"), dtype=layout.dtype, device=layout.device)
    write_slots(backend, slots, nothing, nothing)


class AttentionConformance(ABC):
    dtypes: ClassVar[Sequence[torch.dtype]] = (torch.float32, torch.bfloat16)
    cases: ClassVar[Sequence[Case]] = CASES
    tolerances: ClassVar[Mapping[torch.dtype, float]] = {
        torch.float32: 2e-6,
        torch.float16: 2e-3,
        torch.bfloat16: 2e-2,
    }
    device: ClassVar[str] = "cpu"

    @abstractmethod
    def create(self, layout: KVLayout, num_query_heads: int, scale: float) -> AttentionBackend:
        """The backend under test."""

    # ------------------------------------------------------------------------------- tests

    def test_agrees_with_the_reference(self, case: Case, dtype: torch.dtype) -> None:
        step = paged_step(case, dtype, torch.device(self.device))
        expected = run_step(self._reference(step), step)
        backend = self._backend(step)
        poison(backend, step.unreferenced_slots)
        actual = run_step(backend, step)
        assert actual.dtype == step.queries.dtype
        assert actual.shape == step.queries.shape
        torch.testing.assert_close(actual, expected, rtol=0.0, atol=self.tolerances[dtype])

    def test_what_nobody_references_has_no_influence(self, case: Case, dtype: torch.dtype) -> None:
        """Freed blocks and the rest of a last block may hold anything; not a bit may change."""
        step = paged_step(case, dtype, torch.device(self.device), seed=1)
        backend = self._backend(step)
        clean = run_step(backend, step)
        poison(backend, step.unreferenced_slots)
        assert torch.equal(attend(backend, step), clean)

    def test_the_tables_decide_what_is_read(self, case: Case, dtype: torch.dtype) -> None:
        """The same tokens in other blocks give the same bits."""
        device = torch.device(self.device)
        step = paged_step(case, dtype, device, seed=2)
        moved = paged_step(case, dtype, device, seed=3)
        moved = dataclasses.replace(moved, keys=step.keys, values=step.values, queries=step.queries)
        assert step.context_slots != moved.context_slots
        first = run_step(self._backend(step), step)
        assert torch.equal(run_step(self._backend(moved), moved), first)

    def test_sequences_share_blocks(self, dtype: torch.dtype) -> None:
        """Two decodes and a chunk over one table: a common prefix is read by all."""
        base = paged_step(self.cases[0], dtype, torch.device(self.device), seed=4)
        size = base.layout.block_size
        table = list(range(base.layout.num_blocks - 1, base.layout.num_blocks - 4, -1))
        slots = [table[at // size] * size + at % size for at in range(3 * size)]
        batch = AttentionBatch(
            [0, 1, 2, 5],
            [2 * size, 3 * size, 2 * size + 1],
            [table] * 3,
            torch.zeros(5, dtype=torch.int64),
        )
        shape = (NUM_LAYERS, len(slots), base.layout.num_kv_heads, base.layout.head_dim)
        generator = torch.Generator().manual_seed(5)
        keys, values = (
            torch.randn(shape, generator=generator).to(self.device, dtype) for _ in range(2)
        )
        query_shape = (NUM_LAYERS, 5, base.num_query_heads, base.layout.head_dim)
        queries = torch.randn(query_shape, generator=generator).to(self.device, dtype)
        step = dataclasses.replace(
            base, batch=batch, context_slots=slots, keys=keys, values=values, queries=queries
        )
        expected = run_step(self._reference(step), step)
        actual = run_step(self._backend(step), step)
        torch.testing.assert_close(actual, expected, rtol=0.0, atol=self.tolerances[dtype])

    def test_gather_gives_back_what_was_written(self, case: Case, dtype: torch.dtype) -> None:
        step = paged_step(case, dtype, torch.device(self.device), seed=6)
        backend = self._backend(step)
        write_slots(backend, step.context_slots, step.keys, step.values)
        at = 0
        for table, context in zip(step.batch.block_tables, step.batch.context_lens, strict=True):
            blocks = table[: -(-context // step.layout.block_size)]
            for layer in range(NUM_LAYERS):
                keys, values = backend.gather(layer, blocks)
                assert torch.equal(keys[:context], step.keys[layer, at : at + context])
                assert torch.equal(values[:context], step.values[layer, at : at + context])
            at += context

    def test_copies_whole_blocks_in_all_layers(self, dtype: torch.dtype) -> None:
        step = paged_step(self.cases[0], dtype, torch.device(self.device), seed=7)
        backend = self._backend(step)
        write_slots(backend, step.context_slots, step.keys, step.values)
        size = step.layout.block_size
        used = list(dict.fromkeys(slot // size for slot in step.context_slots))
        spare = sorted(set(range(1, step.layout.num_blocks)) - set(used))
        copies = list(zip(used[:2], spare[:2], strict=True))
        before = [backend.gather(layer, used[:2]) for layer in range(NUM_LAYERS)]
        backend.copy_blocks(copies)
        for layer, (keys, values) in enumerate(before):
            for blocks in (used[:2], spare[:2]):
                got = backend.gather(layer, blocks)
                assert torch.equal(got[0], keys)
                assert torch.equal(got[1], values)

    def test_a_chunked_prefill_then_decodes_agree_with_one_prefill(
        self, dtype: torch.dtype
    ) -> None:
        """Step by step, each writing its own tokens: what the engine does all day."""
        case = self.cases[1]
        length = case.block_size * 3 + 1
        whole = paged_step(
            dataclasses.replace(case, sequences=((length, length),)),
            dtype,
            torch.device(self.device),
            seed=8,
        )
        expected = run_step(self._reference(whole), whole)
        backend = self._backend(whole)
        poison(backend, whole.unreferenced_slots + whole.context_slots)
        size, at = case.block_size, 0
        for num_tokens in (3, size, size + 1, *(1,) * (length - 2 * size - 4)):
            end = at + num_tokens
            backend.prepare(
                AttentionBatch(
                    [0, num_tokens],
                    [end],
                    whole.batch.block_tables,
                    whole.batch.slots[at:end],
                )
            )
            for layer in range(NUM_LAYERS):
                backend.write(layer, whole.keys[layer, at:end], whole.values[layer, at:end])
                actual = backend.attend(layer, whole.queries[layer, at:end])
                torch.testing.assert_close(
                    actual,
                    expected[layer, at:end],
                    rtol=0.0,
                    atol=self.tolerances[dtype],
                )
            at = end
        assert at == length

    def _backend(self, step: PagedStep) -> AttentionBackend:
        return self.create(step.layout, step.num_query_heads, step.scale)

    def _reference(self, step: PagedStep) -> AttentionBackend:
        return ReferenceAttention(step.layout, step.num_query_heads, step.scale)
