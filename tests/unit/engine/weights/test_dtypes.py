"""The format of the weights follows what the processor multiplies natively."""

from typing import Any

import pytest
import torch

from engine.errors import ModelLoadError
from engine.weights.dtypes import default_dtype, dtype_name, resolve_device, resolve_dtype


@pytest.fixture
def capabilities(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {"architecture": "x86_64", "avx2": True}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [("amx_bf16", torch.bfloat16), ("avx512_bf16", torch.bfloat16), ("avx512_f", torch.float32)],
)
def test_bfloat16_only_where_it_is_native(
    capabilities: dict[str, Any], name: str, expected: torch.dtype
) -> None:
    assert default_dtype("cpu") == torch.float32
    capabilities[name] = True
    assert default_dtype("cpu") == expected
    capabilities[name] = False
    assert default_dtype("cpu") == torch.float32


def test_a_gpu_has_bfloat16(capabilities: dict[str, Any]) -> None:
    assert default_dtype("cuda") == torch.bfloat16
    assert default_dtype("cuda:1") == torch.bfloat16


@pytest.mark.parametrize(("has_gpu", "expected"), [(True, "cuda"), (False, "cpu")])
def test_auto_is_the_gpu_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, has_gpu: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    assert resolve_device("auto") == expected
    assert resolve_device("cpu") == "cpu"


def test_names_and_dtypes_are_one_to_one(capabilities: dict[str, Any]) -> None:
    for name in ("float32", "bfloat16", "float16"):
        assert dtype_name(resolve_dtype(name, "cpu")) == name
    assert resolve_dtype("auto", "cpu") == torch.float32


def test_others_are_refused() -> None:
    with pytest.raises(ModelLoadError, match="int8"):
        dtype_name(torch.int8)
    with pytest.raises(ModelLoadError, match="unknown dtype 'fp8'"):
        resolve_dtype("fp8", "cpu")
