"""A process that runs the Triton backend in Triton's interpreter, for `triton_process`.

TRITON_INTERPRET must be set before triton is imported and then holds for the whole process, so the
interpreter has a process of its own and the tests that use it never import triton.

Reads calls on stdin and answers each on stdout: a line of JSON, whose `num_bytes` bytes of
safetensors follow it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO, Any

import numpy as np
import torch
from safetensors.torch import load, save

from engine.attention.base import AttentionBatch, KVLayout
from engine.attention.triton.backend import TritonAttention
from engine.attention.triton.geometry import TileSizes

Tensors = dict[str, torch.Tensor]


def send(stream: IO[bytes], message: dict[str, Any], tensors: Tensors) -> None:
    # clones: safetensors refuses tensors that share memory
    body = save({name: tensor.clone().contiguous() for name, tensor in tensors.items()})
    header = json.dumps({**message, "num_bytes": len(body)})
    stream.write(header.encode() + b"\n" + body)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], Tensors]:
    """Raises EOFError when the other side is gone."""
    header = stream.readline()
    if not header:
        raise EOFError
    message: dict[str, Any] = json.loads(header)
    return message, load(stream.read(message["num_bytes"]))


def dtype_named(name: str) -> torch.dtype:
    dtype = getattr(torch, name.removeprefix("torch."))
    assert isinstance(dtype, torch.dtype)
    return dtype


def create(call: dict[str, Any]) -> TritonAttention:
    layout = dict(call["layout"])
    layout["dtype"] = dtype_named(layout["dtype"])
    layout["device"] = torch.device(layout["device"])
    tiles = TileSizes(**call["tiles"]) if call["tiles"] else None
    return TritonAttention(KVLayout(**layout), call["num_query_heads"], call["scale"], tiles=tiles)


def answer(backends: list[TritonAttention], call: dict[str, Any], tensors: Tensors) -> Tensors:
    """Do what one call asks of one backend; `create` appends to `backends`."""
    if call["method"] == "create":
        backends.append(create(call))
        return {}
    backend = backends[call["backend"]]
    match call["method"]:
        case "prepare":
            batch = AttentionBatch(
                call["query_starts"], call["context_lens"], call["block_tables"], tensors["slots"]
            )
            backend.prepare(batch)
        case "write":
            backend.write(call["layer"], tensors["key"], tensors["value"])
        case "write_fused":
            key, value = tensors["fused"].chunk(2, dim=1)  # views whose rows lie apart
            backend.write(call["layer"], key, value)
        case "attend":
            return {"result": backend.attend(call["layer"], tensors["query"])}
        case "copy_blocks":
            backend.copy_blocks([(source, target) for source, target in call["copies"]])
        case "gather":
            keys, values = backend.gather(call["layer"], call["block_ids"])
            return {"keys": keys, "values": values}
    return {}


def main() -> None:
    torch.set_num_threads(1)
    # The kernels take exp2 of -inf on purpose, and never compute with a NaN.
    np.seterr(invalid="raise", divide="raise")
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    backends: list[TritonAttention] = []
    while True:
        try:
            call, tensors = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            result = answer(backends, call, tensors)
        except Exception as error:  # noqa: BLE001 - the caller raises it
            send(answers, {"error": type(error).__name__, "message": str(error)}, {})
        else:
            send(answers, {"error": ""}, result)


if __name__ == "__main__":
    main()
