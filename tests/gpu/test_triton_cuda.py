"""The Triton kernels on a GPU: the contract in every dtype, at the tile sizes meant for it."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest
import torch

from engine.attention.base import AttentionBackend, AttentionBatch, KVLayout
from engine.attention.registry import create_backend
from engine.attention.triton.backend import TritonAttention
from tests.unit.engine.attention.conformance import (
    CASES,
    AttentionConformance,
    Case,
    PagedStep,
    paged_step,
    run_step,
)

pytestmark = pytest.mark.gpu

CUDA = torch.device("cuda")
HALVES = [torch.bfloat16, torch.float16]
LONG = Case(2, 4, 128, 16, ((1, 1), (512, 1), (513, 1), (3000, 1), (700, 3), (1500, 400), (64, 64)))


class TestTritonOnCuda(AttentionConformance):
    dtypes = (torch.bfloat16, torch.float16, torch.float32)
    device = "cuda"
    tolerances = {**AttentionConformance.tolerances, torch.float32: 5e-6}  # noqa: RUF012
    cases: ClassVar[Sequence[Case]] = (
        *CASES,
        Case(1, 2, 24, 4, ((9, 1), (40, 33))),
        Case(2, 5, 80, 32, ((130, 1), (90, 40))),
        Case(1, 17, 64, 16, ((65, 1), (40, 20))),
        Case(1, 16, 128, 16, ((1100, 1), (600, 9))),
        Case(1, 4, 256, 16, ((130, 1), (90, 40))),
    )

    def create(self, layout: KVLayout, num_query_heads: int, scale: float) -> AttentionBackend:
        return TritonAttention(layout, num_query_heads, scale)


def backend_of(step: PagedStep) -> TritonAttention:
    return TritonAttention(step.layout, step.num_query_heads, step.scale)


def test_auto_means_triton() -> None:
    layout = KVLayout(1, 4, 16, 2, 64, torch.bfloat16, CUDA)
    assert isinstance(create_backend("auto", layout, 4, 0.125), TritonAttention)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_long_contexts_against_float64(dtype: torch.dtype) -> None:
    """Several splits, many tiles; the error is measured against the whole result, as the
    reference itself would round."""
    step = paged_step(LONG, dtype, CUDA)
    actual = run_step(backend_of(step), step)[0].double()
    at = 0
    for number, (context, queries) in enumerate(LONG.sequences):
        start, end = step.batch.query_starts[number : number + 2]
        keys, values = (
            tensor[0, at : at + context].double().repeat_interleave(LONG.group, dim=1)
            for tensor in (step.keys, step.values)
        )
        logits = torch.einsum("qhd,khd->hqk", step.queries[0, start:end].double(), keys)
        position = torch.arange(context, device=CUDA)
        hidden = position > (context - queries + torch.arange(queries, device=CUDA))[:, None]
        weights = (logits * step.scale).masked_fill(hidden, float("-inf")).softmax(-1)
        expected = torch.einsum("hqk,khd->qhd", weights, values)
        error = (actual[start:end] - expected).norm() / expected.norm()
        assert error < (4e-3 if dtype == torch.bfloat16 else 6e-4), LONG.sequences[number]
        at += context


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_company_changes_no_bit(dtype: torch.dtype) -> None:
    step = paged_step(LONG, dtype, CUDA)
    backend = backend_of(step)
    together = run_step(backend, step)
    for number, context in enumerate(step.batch.context_lens):
        start, end = step.batch.query_starts[number : number + 2]
        batch = AttentionBatch(
            [0, end - start],
            [context],
            [step.batch.block_tables[number]],
            step.batch.slots[start:end],
        )
        backend.prepare(batch)
        alone = backend.attend(1, step.queries[1, start:end])
        assert torch.equal(alone, together[1, start:end]), LONG.sequences[number]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_how_a_prompt_is_cut_hardly_matters(
    dtype: torch.dtype, record_property: Callable[[str, object], None]
) -> None:
    """Decode and prefill multiply tiles of different height, so the last bit may differ; whether
    it does goes to the report, for it decides whether the backend may call itself exact."""
    whole = paged_step(Case(2, 4, 64, 16, ((1200, 1200),)), dtype, CUDA)
    backend = backend_of(whole)
    expected = run_step(backend, whole)[0]
    num_different = 0
    for start, end in ((0, 1), (511, 512), (700, 701), (1000, 1003), (640, 900), (1199, 1200)):
        part = dataclasses.replace(
            whole.batch,
            query_starts=[0, end - start],
            context_lens=[end],
            slots=whole.batch.slots[start:end],
        )
        backend.prepare(part)
        rows = backend.attend(0, whole.queries[0, start:end])
        num_different += int((rows != expected[start:end]).sum())
        torch.testing.assert_close(rows, expected[start:end], rtol=2**-7, atol=2**-9)
    record_property("elements_that_differ_by_cut", num_different)


def test_the_same_step_gives_the_same_bits_each_time() -> None:
    step = paged_step(LONG, torch.bfloat16, CUDA)
    backend = backend_of(step)
    first = run_step(backend, step)
    for _ in range(20):
        backend.prepare(step.batch)
        assert torch.equal(backend.attend(0, step.queries[0]), first[0])
