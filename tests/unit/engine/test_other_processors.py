"""Processors with fewer instructions than this one have an exact path, too.

torch and its libraries can be told to use fewer; what this machine does not have stays unused.
"""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SEARCH = """
import sys, torch
from engine.attention.base import KVLayout
from engine.attention.cpu import CpuAttention
from engine.attention.cpu_padding import find_padding
from engine.layers.linear import Linear
from engine.layers.row_padding import find_row_padding

torch.set_num_threads(1)
dtype = getattr(torch, sys.argv[1])
drawn = torch.randn((960, 576), generator=torch.Generator().manual_seed(0)).to(dtype)
for max_rows in (8, 20, 128):
    assert find_row_padding([Linear(drawn)], [], max_rows).is_exact, max_rows
for head_dim, group in ((64, 3), (16, 1), (128, 4)):
    layout = KVLayout(1, 80, 16, 2, head_dim, dtype, torch.device("cpu"))
    padding = find_padding(CpuAttention, layout, 2 * group, head_dim**-0.5)
    assert padding.is_exact, (head_dim, group)
"""
FEWER = {
    "avx512 without amx": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"},
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
    "sse4": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    },
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", FEWER)
def test_has_an_exact_path(name: str, dtype: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, dtype],
        env={**os.environ, **FEWER[name]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
