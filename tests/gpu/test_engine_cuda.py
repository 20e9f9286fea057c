"""The whole engine on a GPU: loading, Triton kernels, scheduler, sampler."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engine import LLM, SamplingParams
from tests.unit.engine.models.tiny_directory import model_directory
from tests.unit.engine.models.tiny_models import LLAMA, LLAMA3, QWEN2

pytestmark = pytest.mark.gpu

GREEDY = SamplingParams(max_tokens=24, temperature=0.0, ignore_eos=True)
SYSTEM = "You answer from the numbered passages only, and cite every one of them. " * 3
PROMPTS = [SYSTEM + "What is " + "the relief pressure of the pump "[: 3 * n] for n in range(1, 11)]
PROMPTS += ["A", "Bc" * 8, "def" * 40]


def tokens_of(model: Path, **options: Any) -> list[tuple[int, ...]]:
    with LLM(model, **options) as llm:
        completions = llm.generate(PROMPTS, GREEDY)
    assert all(len(one.token_ids) == GREEDY.max_tokens for one in completions)
    return [one.token_ids for one in completions]


@pytest.mark.parametrize("hf_config", [LLAMA, LLAMA3, QWEN2], ids=["llama", "llama3", "qwen2"])
def test_writes_in_float32_what_the_cpu_writes(tmp_path: Path, hf_config: dict[str, Any]) -> None:
    """In one batch and in one that the pool is too small for; float32 leaves no near ties."""
    model = model_directory(tmp_path / "model", hf_config)
    expected = tokens_of(model, device="cpu", dtype="float32", threads=1)
    options = {"device": "cuda", "dtype": "float32", "max_num_batched_tokens": 96}
    assert tokens_of(model, **options) == expected
    assert tokens_of(model, **options, num_blocks=40, enable_prefix_caching=False) == expected


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_writes_sensibly_in_16_bits(tmp_path: Path, dtype: str) -> None:
    """The first token of most prompts is what float32 says; later ones may part at near ties."""
    model = model_directory(tmp_path / "model", LLAMA)
    exact = tokens_of(model, device="cpu", dtype="float32", threads=1)
    rounded = tokens_of(model, device="cuda", dtype=dtype)
    agreeing = sum(one[0] == other[0] for one, other in zip(exact, rounded, strict=True))
    assert agreeing >= len(PROMPTS) - 2


def test_the_pool_lies_on_the_gpu(tmp_path: Path) -> None:
    model = model_directory(tmp_path / "model", LLAMA)
    before = torch.cuda.memory_allocated()
    with LLM(model, device="cuda", num_blocks=1000) as llm:
        tokens, keys_and_values, layers, kv_size, item_bytes = 1000 * 16, 2, 3, 32, 2
        pool_bytes = tokens * keys_and_values * layers * kv_size * item_bytes
        assert torch.cuda.memory_allocated() - before > pool_bytes
        assert llm.generate(PROMPTS[:2], GREEDY)[0].token_ids
