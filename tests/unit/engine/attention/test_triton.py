"""The Triton kernels in Triton's interpreter: the contract, and what is special about them."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest
import torch

from engine.attention.base import AttentionBackend, AttentionBatch, KVLayout
from engine.attention.reference import ReferenceAttention
from engine.attention.triton.backend import TritonAttention
from engine.attention.triton.geometry import TileSizes
from engine.errors import KernelUnavailable
from tests.unit.engine.attention.conformance import (
    TINY_CASES,
    AttentionConformance,
    Case,
    PagedStep,
    attend,
    paged_step,
    poison,
    run_step,
    write_slots,
)
from tests.unit.engine.attention.triton_process import TritonProcess, triton_process

CPU = torch.device("cpu")

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="triton is made for Linux only, and so is the backend"
)


@pytest.fixture(scope="module", autouse=True)
def interpreter() -> Iterator[TritonProcess]:
    with triton_process() as process:
        TestTriton.interpreter = process
        yield process


class TestTriton(AttentionConformance):
    dtypes = (torch.float32,)
    cases: ClassVar[Sequence[Case]] = (
        *TINY_CASES,
        # padded head dimensions, a group past the decode tile, a block that is no power of two
        Case(1, 2, 24, 4, ((9, 1), (12, 11))),
        Case(1, 5, 8, 4, ((5, 1), (6, 4))),
        Case(1, 17, 16, 4, ((5, 1), (6, 4))),
        Case(3, 2, 32, 6, ((17, 1), (14, 14))),
        # several splits: of a decode, of a chunk of two queries, and of a prefill
        Case(1, 4, 16, 32, ((65, 1), (36, 2), (20, 20))),
        Case(1, 16, 128, 16, ((33, 1), (18, 1))),
    )
    interpreter: ClassVar[TritonProcess]

    def create(self, layout: KVLayout, num_query_heads: int, scale: float) -> AttentionBackend:
        return self.interpreter.create(layout, num_query_heads, scale)


class TestTritonInHalfPrecision(TestTriton):
    dtypes = (torch.float16,)
    cases = TINY_CASES


def step_on(
    interpreter: TritonProcess, step: PagedStep, tiles: TileSizes | None = None
) -> torch.Tensor:
    backend = interpreter.create(
        step.layout, step.num_query_heads, step.scale, *([tiles] if tiles else [])
    )
    return run_step(backend, step)


def expected_of(step: PagedStep) -> torch.Tensor:
    return run_step(ReferenceAttention(step.layout, step.num_query_heads, step.scale), step)


def alone(step: PagedStep, number: int) -> AttentionBatch:
    """The batch with one sequence of the step left."""
    starts = step.batch.query_starts[number : number + 2]
    return AttentionBatch(
        [0, starts[1] - starts[0]],
        [step.batch.context_lens[number]],
        [step.batch.block_tables[number]],
        step.batch.slots[starts[0] : starts[1]],
    )


# ------------------------------------------------------------------------------- exactness


def test_company_changes_no_bit(interpreter: TritonProcess) -> None:
    """Decodes, short chunks and prefills, together and each alone."""
    case = Case(1, 3, 16, 4, ((39, 1), (30, 2), (5, 1), (40, 20), (17, 9)))
    step = paged_step(case, torch.float32, CPU)
    backend = interpreter.create(step.layout, step.num_query_heads, step.scale)
    together = run_step(backend, step)
    for number in range(len(case.sequences)):
        batch = alone(step, number)
        start, end = step.batch.query_starts[number : number + 2]
        backend.prepare(batch)
        assert torch.equal(backend.attend(1, step.queries[1, start:end]), together[1, start:end])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("sizes", [[1] * 9 + [28], [20, 17], [36, 1]], ids=str)
def test_how_a_prompt_is_cut_hardly_matters(
    interpreter: TritonProcess, dtype: torch.dtype, sizes: list[int]
) -> None:
    """The operations behind a row are the same in every chunk and in both kernels. The matrix
    product of the interpreter (numpy's) may still add up a row differently at another height in
    its tile, so this allows the last bit of float32, not more."""
    step = paged_step(Case(1, 3, 16, 8, ((37, 37),)), dtype, CPU)
    backend = interpreter.create(step.layout, step.num_query_heads, step.scale)
    whole = run_step(backend, step)[0]
    at = 0
    for size in sizes:
        end = at + size
        backend.prepare(AttentionBatch([0, size], [end], step.batch.block_tables, torch.empty(0)))
        rows = backend.attend(0, step.queries[0, at:end])
        tolerance = 4e-7 if dtype == torch.float32 else 1e-3
        torch.testing.assert_close(rows, whole[at:end], rtol=0.0, atol=tolerance)
        at = end


@pytest.mark.parametrize(
    "tiles",
    [
        TileSizes(kv=16, split=48, prefill_rows=32),
        TileSizes(kv=32, split=32, prefill_rows=16),
        TileSizes(),
    ],
    ids=str,
)
def test_any_tiles_give_the_same_attention(interpreter: TritonProcess, tiles: TileSizes) -> None:
    case = Case(1, 4, 16, 8, ((50, 1), (49, 20), (3, 3)))
    step = paged_step(case, torch.float32, CPU)
    actual = step_on(interpreter, step, tiles)
    torch.testing.assert_close(actual, expected_of(step), rtol=0.0, atol=2e-6)


def test_bfloat16_pools_are_read_rightly(interpreter: TritonProcess) -> None:
    """The interpreter multiplies in float32 what it loads as bfloat16; the multiplication in
    bfloat16 itself is for tests/gpu. It rounds results toward zero: one unit in the last place."""
    step = paged_step(Case(2, 3, 16, 4, ((21, 1), (30, 9))), torch.bfloat16, CPU)
    actual = step_on(interpreter, step)
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual, expected_of(step), rtol=2**-7, atol=1e-4)


@pytest.mark.parametrize(("size", "tolerance"), [(1e3, 2e-3), (1e-3, 2e-6)])
def test_large_and_small_logits(interpreter: TritonProcess, size: float, tolerance: float) -> None:
    """Logits in the thousands: without the running maximum all weights would be infinite. The
    tolerance is what float32 leaves of such logits."""
    step = paged_step(Case(1, 3, 16, 4, ((39, 1), (30, 20))), torch.float32, CPU)
    step.queries.mul_(size)
    actual = step_on(interpreter, step)
    torch.testing.assert_close(actual, expected_of(step), rtol=0.0, atol=tolerance)


# -------------------------------------------------------------------- writing and copying


def test_reads_slices_of_a_fused_projection(interpreter: TritonProcess) -> None:
    layout = KVLayout(1, 4, 4, 3, 24, torch.float32, CPU)
    backend = interpreter.create(layout, 3, 1.0)
    fused = torch.randn(5, 6, 24, generator=torch.Generator().manual_seed(0))
    slots = torch.tensor([13, 4, 9, 15, 6])
    backend.prepare(AttentionBatch([0, 5], [5], [[1, 2]], slots))
    backend.write_fused(0, fused)
    keys, values = backend.gather(0, range(4))
    assert torch.equal(keys[slots], fused[:, :3])
    assert torch.equal(values[slots], fused[:, 3:])
    untouched = sorted(set(range(16)) - set(slots.tolist()))
    assert not keys[untouched].any()
    assert not values[untouched].any()


def test_copies_follow_one_another(interpreter: TritonProcess) -> None:
    """(1, 2) then (2, 3): block 3 gets what was in 1, in all layers; odd block sizes too."""
    layout = KVLayout(2, 5, 3, 5, 72, torch.float32, CPU)  # 1080 elements a block: two programs
    backend = interpreter.create(layout, 5, 1.0)
    generator = torch.Generator().manual_seed(0)
    keys, values = (torch.randn(2, 12, 5, 72, generator=generator) for _ in range(2))
    write_slots(backend, range(3, 15), keys, values)
    backend.copy_blocks([(1, 2), (2, 3)])
    backend.copy_blocks([])
    for layer in range(2):
        got_keys, got_values = backend.gather(layer, [3, 2, 1, 4])
        first, last = slice(0, 3), slice(9, 12)
        for got, put in ((got_keys, keys[layer]), (got_values, values[layer])):
            assert torch.equal(got, torch.cat([put[first]] * 3 + [put[last]]))


def test_a_poisoned_pool_never_shows(interpreter: TritonProcess) -> None:
    """Everything but the contexts is NaN, the null block included; the worker would also fail at
    the first computation with a NaN."""
    step = paged_step(Case(2, 3, 16, 4, ((14, 1), (6, 6), (7, 2))), torch.float32, CPU)
    backend = interpreter.create(step.layout, step.num_query_heads, step.scale)
    poison(backend, range(step.layout.num_blocks * step.layout.block_size))
    write_slots(backend, step.context_slots, step.keys, step.values)
    actual = attend(backend, step)
    torch.testing.assert_close(actual, expected_of(step), rtol=0.0, atol=2e-6)


# ---------------------------------------------------------------------------- unavailable


def tiny_layout(**changes: Any) -> KVLayout:
    fields = {"dtype": torch.float32, "device": CPU, "num_kv_heads": 2, "head_dim": 16}
    return KVLayout(num_layers=1, num_blocks=3, block_size=4, **{**fields, **changes})


def test_the_cpu_needs_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(KernelUnavailable, match="TRITON_INTERPRET"):
        TritonAttention(tiny_layout(), 2, 1.0)


@pytest.mark.parametrize(
    ("layout", "num_query_heads", "reason"),
    [
        (tiny_layout(dtype=torch.float64), 2, "do not read torch.float64"),
        (tiny_layout(device=torch.device("meta")), 2, "do not run on meta"),
    ],
)
def test_says_what_it_cannot_do(layout: KVLayout, num_query_heads: int, reason: str) -> None:
    with pytest.raises(KernelUnavailable, match=reason):
        TritonAttention(layout, num_query_heads, 1.0)


def test_needs_a_gpu_for_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(KernelUnavailable, match="CUDA"):
        TritonAttention(tiny_layout(device=torch.device("cuda")), 2, 1.0)


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        (tiny_layout(head_dim=320), "not 320"),
        (tiny_layout(num_kv_heads=3), "4 query heads do not share 3"),
    ],
)
def test_refuses_shapes_it_was_not_written_for(
    interpreter: TritonProcess, layout: KVLayout, reason: str
) -> None:
    with pytest.raises(KernelUnavailable, match=reason):
        interpreter.create(layout, 4, 1.0)


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("sys.modules['triton'] = None; os.environ['TRITON_INTERPRET'] = '1'", "not installed"),
        (
            "import engine.attention.triton.tiles; os.environ['TRITON_INTERPRET'] = '1'",
            "after triton had been imported",
        ),
    ],
)
def test_says_what_is_wrong_with_triton(first: str, reason: str) -> None:
    code = f"""
import os, sys, torch
from engine.attention.base import KVLayout
from engine.attention.registry import create_backend
from engine.errors import KernelUnavailable
{first}
try:
    create_backend("triton", KVLayout(1, 2, 4, 1, 16, torch.float32, torch.device("cpu")), 1, 1.0)
except KernelUnavailable as error:
    print(error)
"""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert reason in done.stdout
