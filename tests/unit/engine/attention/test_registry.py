"""Backends by name."""

import subprocess
import sys

import pytest
import torch

from engine.attention.base import KVLayout
from engine.attention.cpu import CpuAttention
from engine.attention.reference import ReferenceAttention
from engine.attention.registry import create_backend
from engine.errors import KernelUnavailable

LAYOUT = KVLayout(1, 4, 16, 2, 16, torch.float32, torch.device("cpu"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("cpu", CpuAttention), ("auto", CpuAttention), ("reference", ReferenceAttention)],
)
def test_gives_the_backend_of_that_name(name: str, kind: type) -> None:
    assert type(create_backend(name, LAYOUT, 4, 0.25)) is kind


def test_without_determinism_nothing_is_padded() -> None:
    backend = create_backend("cpu", LAYOUT, 4, 0.25, deterministic=False)
    assert isinstance(backend, CpuAttention)
    assert backend.padding.query_rows == 1


def test_refuses_an_unknown_name() -> None:
    with pytest.raises(KernelUnavailable, match=r"'numba'.*reference, cpu, triton"):
        create_backend("numba", LAYOUT, 4, 0.25)


def test_refuses_heads_that_do_not_divide() -> None:
    with pytest.raises(KernelUnavailable, match="3 query heads"):
        create_backend("cpu", LAYOUT, 3, 0.25)


def test_the_cpu_backend_does_not_bring_triton() -> None:
    """Where triton is not installed, or breaks at import, the CPU must not notice."""
    code = (
        "import sys, torch\n"
        "from engine.attention.base import KVLayout\n"
        "from engine.attention.registry import create_backend\n"
        "sys.modules['triton'] = None\n"
        "layout = KVLayout(1, 4, 16, 2, 16, torch.float32, torch.device('cpu'))\n"
        "create_backend('auto', layout, 4, 0.25)\n"
        "try:\n"
        "    create_backend('triton', layout, 4, 0.25)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "KernelUnavailable"
