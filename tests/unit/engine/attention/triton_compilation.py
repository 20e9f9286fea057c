"""Compiles the kernels for GPUs that are not here, as `test_triton_compile` asks for them.

Triton needs no GPU to make machine code. Each launcher is called as the backend calls it, on CPU
tensors, with a recorder in the place of the launch; what it recorded is compiled for a compute
capability, and what ptxas says of registers and memory is printed as a line of JSON.

    python -m tests.unit.engine.attention.triton_compilation DTYPE HEAD_DIM GROUP CAPABILITY
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from engine.attention.base import AttentionBatch, KVLayout
from engine.attention.triton import block_copy, decode, kv_write, prefill
from engine.attention.triton.geometry import Geometry, TileSizes
from engine.attention.triton.work import plan_work

KERNELS = (
    kv_write.write_kernel,
    decode.split_kernel,
    decode.merge_kernel,
    prefill.prefill_kernel,
    block_copy.copy_kernel,
)
POINTERS = {
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.int32: "*i32",
    torch.int64: "*i64",
}
CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"


class Recorder:
    """Stands where a kernel's `run` does."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.launches: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        kernel.run = self

    def __call__(self, *arguments: Any, grid: tuple[int, ...], warmup: bool, **named: Any) -> None:
        assert min(grid) > 0
        self.launches.append((arguments, named))

    def compiled(self, target: GPUTarget) -> Any:
        ((arguments, named),) = self.launches
        names = self.kernel.arg_names
        given = dict(zip(names, arguments, strict=False))
        constants = {name: value for name, value in named.items() if name in names}
        options = {name: value for name, value in named.items() if name not in names}
        signature = {name: type_of(given[name]) for name in names if name in given}
        signature |= dict.fromkeys(constants, "constexpr")
        assert sorted(signature) == sorted(names)
        aligned = {
            (at,): [["tt.divisibility", 16]]
            for at, name in enumerate(names)
            if signature[name].startswith("*")
        }
        source = ASTSource(self.kernel, signature, constants, aligned)
        return triton.compile(source, target=target, options=options)


def type_of(argument: object) -> str:
    if isinstance(argument, torch.Tensor):
        return POINTERS[argument.dtype]
    return {int: "i32", float: "fp32"}[type(argument)]


def launch_all(dtype: torch.dtype, head_dim: int, group: int) -> None:
    """A mixed step, and a copy."""
    num_kv_heads, block_size = 2, 16
    layout = KVLayout(2, 8, block_size, num_kv_heads, head_dim, dtype, torch.device("cpu"))
    num_query_heads = num_kv_heads * group
    geometry = Geometry.of(layout, num_query_heads, 0.125, TileSizes.fitting(layout), dot_f32=False)
    slots = torch.arange(block_size, block_size + 21)
    batch = AttentionBatch([0, 1, 21], [40, 20], [[1, 2, 3], [4, 5]], slots)
    work = plan_work(batch, geometry, layout.device)
    keys = torch.zeros(2, 8, num_kv_heads, block_size, head_dim, dtype=dtype)
    values = torch.zeros_like(keys)
    layer = keys[0], values[0]
    new = torch.zeros(21, num_kv_heads, head_dim, dtype=dtype)
    query = torch.zeros(21, num_query_heads, head_dim, dtype=dtype)
    output = torch.empty_like(query)

    kv_write.write_kv(new, new, layer, slots, geometry)
    buffers = decode.DecodeBuffers(work, geometry)
    decode.decode(query, output, layer, work, buffers, geometry)
    prefill.prefill(query, output, layer, work, geometry)
    block_copy.copy_blocks((keys, values), [(1, 2)])


def resources(cubin: bytes) -> dict[str, int]:
    """Registers and bytes of stack a thread, by cuobjdump; a stack is where registers spill."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        told = subprocess.run(
            [CUOBJDUMP, "--dump-resource-usage", file.name],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", told)
    assert found, told
    return {"registers": int(found[1]), "stack_bytes": int(found[2])}


def main(dtype: str, head_dim: str, group: str, capability: str) -> None:
    recorders = [Recorder(kernel) for kernel in KERNELS]
    launch_all(getattr(torch, dtype), int(head_dim), int(group))
    report = {}
    for recorder in recorders:
        compiled = recorder.compiled(GPUTarget("cuda", int(capability), 32))
        instructions = compiled.asm["ptx"]
        report[recorder.kernel.__name__] = {
            **resources(compiled.asm["cubin"]),
            "shared_bytes": compiled.metadata.shared,
            "uses_matrix_units": "wgmma" in instructions or "mma.sync" in instructions,
            "contracts_sums": "fma.rn.f32" in instructions,
        }
    print(json.dumps(report))  # noqa: T201 - read by the test


if __name__ == "__main__":
    main(*sys.argv[1:])
