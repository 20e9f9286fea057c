"""Which program computes what: the lists that the Triton kernels work through, made on the host."""

import pytest
import torch

from engine.attention.base import AttentionBatch, KVLayout
from engine.attention.triton.geometry import Geometry, TileSizes, next_power_of_two
from engine.attention.triton.work import StepWork, plan_work
from engine.errors import KernelUnavailable

CPU = torch.device("cpu")


def layout(**changes: int | torch.dtype) -> KVLayout:
    fields = {"num_kv_heads": 2, "head_dim": 24, "dtype": torch.float16, **changes}
    return KVLayout(num_layers=1, num_blocks=9, block_size=4, device=CPU, **fields)


def geometry(group: int = 3) -> Geometry:
    tiles = TileSizes(kv=16, split=32, prefill_rows=16)
    return Geometry.of(layout(), 2 * group, 0.5, tiles, dot_f32=False)


def work_of(*sequences: tuple[int, int], group: int = 3) -> StepWork:
    """(context, queries) of each; every table is 100, 101, ... with surplus entries."""
    starts = [0]
    for _, queries in sequences:
        starts.append(starts[-1] + queries)
    batch = AttentionBatch(
        starts, [context for context, _ in sequences], [list(range(100, 140))] * len(sequences),
        torch.empty(0),
    )  # fmt: skip
    return plan_work(batch, geometry(group), CPU)


def test_lists_splits_merges_and_tiles() -> None:
    # 5 queries of a group of 3 are 15 rows and decoded; 6 are 18 and prefilled in two tiles
    work = work_of((70, 1), (6, 6), (33, 5), (32, 1), (40, 12))
    assert work.splits.tolist() == [[0, 0], [0, 1], [0, 2], [2, 0], [2, 1], [3, 0]]
    assert work.merges.tolist() == [[0, 0, 3], [2, 3, 2], [3, 5, 1]]
    assert work.prefill_tiles.tolist() == [[1, 0], [1, 16], [4, 0], [4, 16], [4, 32]]
    assert work.sequences.tolist() == [[0, 1, 70], [1, 6, 6], [7, 5, 33], [12, 1, 32], [13, 12, 40]]
    assert work.max_decode_rows == 15
    lists = (work.tables, work.sequences, work.splits, work.merges, work.prefill_tiles)
    assert {tensor.dtype for tensor in lists} == {torch.int32}
    assert all(tensor.data_ptr() % 16 == 0 for tensor in lists)


def test_tables_hold_what_is_read_and_no_more() -> None:
    tables = work_of((9, 1), (4, 4), (1, 1)).tables.tolist()
    assert tables == [[100, 101, 102], [100, 0, 0], [100, 0, 0]]


def test_a_step_of_one_kind_has_no_work_of_the_other() -> None:
    decodes, prefills = work_of((9, 1), (40, 1)), work_of((9, 9))
    assert not len(decodes.prefill_tiles)
    assert not len(prefills.splits)
    assert not len(prefills.merges)
    assert prefills.max_decode_rows == 0


def test_a_sequences_share_does_not_depend_on_its_company() -> None:
    alone = work_of((70, 1))
    together = work_of((130, 1), (70, 1), (64, 64))
    share = [split for sequence, split in together.splits.tolist() if sequence == 1]
    assert share == [split for _, split in alone.splits.tolist()]


def test_a_table_shorter_than_its_context_is_caught() -> None:
    batch = AttentionBatch([0, 1], [9], [[1, 2]], torch.tensor([8]))
    with pytest.raises(AssertionError, match="shorter than its context"):
        plan_work(batch, geometry(), CPU)


@pytest.mark.parametrize("sizes", [{"kv": 8}, {"kv": 48}, {"prefill_rows": 24}, {"split": 500}])
def test_refuses_tiles_that_triton_cannot_have(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(sizes))):
        TileSizes(**sizes)


def test_rounds_heads_up_and_keeps_the_scale() -> None:
    assert geometry().head_tile == 32
    assert geometry().scale_log2 == pytest.approx(0.5 * 1.4426950408889634)
    assert Geometry.of(layout(head_dim=3), 2, 1.0, TileSizes(), dot_f32=False).head_tile == 16
    assert [next_power_of_two(number) for number in (1, 2, 3, 64, 65)] == [1, 2, 4, 64, 128]


def test_large_elements_and_heads_take_smaller_tiles() -> None:
    plain = TileSizes.fitting(layout())
    assert TileSizes.fitting(layout(dtype=torch.float32)).kv < plain.kv
    assert TileSizes.fitting(layout(head_dim=256)).kv < plain.kv


def test_refuses_what_the_kernels_cannot_compute() -> None:
    with pytest.raises(KernelUnavailable, match="not 257"):
        Geometry.of(layout(head_dim=257), 2, 1.0, TileSizes(), dot_f32=False)
    with pytest.raises(KernelUnavailable, match="evenly"):
        Geometry.of(layout(), 3, 1.0, TileSizes(), dot_f32=False)
