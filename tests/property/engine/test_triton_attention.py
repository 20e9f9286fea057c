"""The Triton kernels agree with the reference on any shape, batch and cut (in the interpreter)."""

import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.attention.base import AttentionBatch
from engine.attention.reference import ReferenceAttention
from engine.attention.triton.geometry import TileSizes
from tests.unit.engine.attention.conformance import (
    NUM_LAYERS,
    Case,
    PagedStep,
    paged_step,
    poison,
    run_step,
    write_slots,
)
from tests.unit.engine.attention.triton_process import TritonProcess, triton_process

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="triton is made for Linux only, and so is the backend"
)

MAX_BLOCKS = 4
TILES = (TileSizes(kv=16, split=16, prefill_rows=16), TileSizes(kv=16, split=32, prefill_rows=32))
FEW = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def interpreter() -> Iterator[TritonProcess]:
    with triton_process() as process:
        yield process


@st.composite
def steps(draw: st.DrawFn) -> PagedStep:
    block_size = draw(st.sampled_from([4, 7, 8, 16]))
    sequences = []
    for _ in range(draw(st.integers(1, 3))):
        context = draw(st.integers(1, MAX_BLOCKS * block_size))
        sequences.append((context, draw(st.integers(1, min(context, 12)))))
    case = Case(
        num_kv_heads=draw(st.integers(1, 2)),
        group=draw(st.sampled_from([1, 2, 3, 4, 7, 8, 16])),
        head_dim=draw(st.sampled_from([16, 20, 32, 64])),
        block_size=block_size,
        sequences=tuple(sequences),
    )
    dtype = draw(st.sampled_from([torch.float32, torch.float16]))
    return paged_step(case, dtype, torch.device("cpu"), seed=draw(st.integers(0, 99)))


@given(step=steps(), tiles=st.sampled_from(TILES))
@FEW
def test_agrees_with_the_reference(
    interpreter: TritonProcess, step: PagedStep, tiles: TileSizes
) -> None:
    reference = ReferenceAttention(step.layout, step.num_query_heads, step.scale)
    backend = interpreter.create(step.layout, step.num_query_heads, step.scale, tiles)
    poison(backend, step.unreferenced_slots)
    tolerance = 3e-6 if step.layout.dtype == torch.float32 else 2e-3
    torch.testing.assert_close(
        run_step(backend, step), run_step(reference, step), rtol=0.0, atol=tolerance
    )


@given(
    step=steps().filter(lambda step: step.batch.num_seqs == 1),
    cuts=st.lists(st.integers(1, 20), min_size=1, max_size=6),
)
@FEW
def test_any_cut_of_a_prompt_gives_the_whole(
    interpreter: TritonProcess, step: PagedStep, cuts: list[int]
) -> None:
    """Written and attended chunk by chunk, with everything that is not yet written poisoned."""
    context = step.batch.context_lens[0]
    queries = torch.randn(
        (NUM_LAYERS, context, step.num_query_heads, step.layout.head_dim),
        generator=torch.Generator().manual_seed(1),
    ).to(step.layout.dtype)
    slots = torch.tensor(step.context_slots)
    reference = ReferenceAttention(step.layout, step.num_query_heads, step.scale)
    write_slots(reference, step.context_slots, step.keys, step.values)
    reference.prepare(AttentionBatch([0, context], [context], step.batch.block_tables, slots))
    expected = reference.attend(1, queries[1])

    backend = interpreter.create(step.layout, step.num_query_heads, step.scale)
    poison(backend, step.unreferenced_slots + step.context_slots)
    tolerance = 3e-6 if step.layout.dtype == torch.float32 else 2e-3
    start = 0
    for size in [*cuts, context]:
        end = min(context, start + size)
        if start == end:
            break
        backend.prepare(
            AttentionBatch([0, end - start], [end], step.batch.block_tables, slots[start:end])
        )
        backend.write(1, step.keys[1, start:end], step.values[1, start:end])
        torch.testing.assert_close(
            backend.attend(1, queries[1, start:end]),
            expected[start:end],
            rtol=0.0,
            atol=tolerance,
        )
        start = end
    assert start == context
