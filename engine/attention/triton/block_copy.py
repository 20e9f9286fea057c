"""Copy of whole blocks in all layers: the tails of copy-on-write."""

# ruff: noqa: PLR0913, PLR0917 - a kernel takes its pointers and constants one by one

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from engine.attention.triton.geometry import COMPILE_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

ELEMENTS = 1024
"""Elements of a block that one program moves."""


@triton.jit(do_not_specialize=["num_copies"])
def copy_kernel(
    keys: tl.tensor,
    values: tl.tensor,
    copies: tl.tensor,
    num_copies: tl.tensor,
    layer_stride: tl.tensor,
    block_elements: tl.tensor,
    TILE: tl.constexpr,
) -> None:
    """Program (layer, slice of a block): every copy, in order.

    A program owns the same elements of all blocks, so copies that follow one another (a to b, then
    b to c) need no ordering between programs.
    """
    layer = tl.program_id(0).to(tl.int64) * layer_stride
    elements = tl.program_id(1) * TILE + tl.arange(0, TILE)
    is_element = elements < block_elements
    for copy in range(num_copies):
        origin = tl.load(copies + copy * 2) * block_elements + layer
        target = tl.load(copies + copy * 2 + 1) * block_elements + layer
        key = tl.load(keys + origin + elements, mask=is_element)
        value = tl.load(values + origin + elements, mask=is_element)
        tl.store(keys + target + elements, key, mask=is_element)
        tl.store(values + target + elements, value, mask=is_element)


def copy_blocks(pool: tuple[torch.Tensor, torch.Tensor], copies: Sequence[tuple[int, int]]) -> None:
    """Copy blocks (from, to), one after the other, within keys and values, contiguous
    [num_layers, num_blocks, ...]."""
    keys, values = pool
    num_layers, num_blocks = keys.shape[:2]
    block_elements = keys[0, 0].numel()
    pairs = torch.tensor(copies, dtype=torch.int64).to(keys.device)
    copy_kernel[(num_layers, triton.cdiv(block_elements, ELEMENTS))](
        keys,
        values,
        pairs,
        len(copies),
        num_blocks * block_elements,
        block_elements,
        TILE=ELEMENTS,
        num_warps=4,
        num_stages=1,  # nothing may be read ahead of the copy before it
        **COMPILE_OPTIONS,
    )
