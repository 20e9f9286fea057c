"""The kernels compile for real GPUs, with the constants and options of real launches.

The interpreter accepts what the compiler refuses, and knows nothing of registers. This needs no
GPU; that the machine code computes what the interpreter does is for tests/gpu to show.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
# What a block may have on every GPU from compute capability 8.0 on; 8.6 and 8.9 have the least.
MAX_SHARED_BYTES = 99 * 1024
# A handful of spilled registers costs nothing that could be measured; hundreds halve the speed.
MAX_SPILLED_BYTES = 64

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="triton is made for Linux only, and so is the backend"
)


@pytest.mark.parametrize(
    ("dtype", "head_dim", "group", "capability"),
    [
        ("bfloat16", 64, 3, 80),  # the shape of SmolLM2
        ("bfloat16", 128, 4, 90),  # that of Llama 3 and Qwen3
        ("float16", 80, 16, 80),  # a masked head dimension
    ],
)
def test_kernels_compile_and_fit(
    tmp_path: Path, dtype: str, head_dim: int, group: int, capability: int
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.unit.engine.attention.triton_compilation",
         dtype, str(head_dim), str(group), str(capability)],
        capture_output=True, text=True, cwd=ROOT, check=False,
        env={**environment, "TRITON_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert set(report) == {
        "write_kernel", "split_kernel", "merge_kernel", "prefill_kernel", "copy_kernel",
    }  # fmt: skip
    for kernel, resources in report.items():
        assert resources["shared_bytes"] <= MAX_SHARED_BYTES, kernel
        assert resources["stack_bytes"] <= MAX_SPILLED_BYTES, kernel
        assert not resources["contracts_sums"], f"{kernel} may round unlike its neighbour"
    assert report["split_kernel"]["uses_matrix_units"]
    assert report["prefill_kernel"]["uses_matrix_units"]
