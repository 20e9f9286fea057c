"""From a model directory to the parts of an engine."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from engine.config import EngineConfig
from engine.errors import InvalidRequest, KernelUnavailable, ModelLoadError
from engine.loading import EngineParts, load_engine_parts
from engine.models.config import ModelConfig
from engine.request import Request
from engine.sampling_params import SamplingParams
from engine.step import ScheduledSequence, StepPlan
from tests.fakes.engine_parts import VOCAB_SIZE, byte_tokenizer
from tests.unit.engine.models.tiny_models import LLAMA, MISTRAL, random_tensors

NUM_PADDED = 3  # rows of the vocabulary that no token has
HF_CONFIG = LLAMA | {"vocab_size": VOCAB_SIZE + NUM_PADDED}


def save_model(directory: Path, hf_config: dict[str, Any]) -> Path:
    byte_tokenizer(directory)
    (directory / "config.json").write_text(json.dumps(hf_config))
    tensors = random_tensors(ModelConfig.from_hf(hf_config)).tensors
    save_file(tensors, directory / "model.safetensors")
    return directory


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model"), HF_CONFIG)


@pytest.fixture
def config(model: Path) -> EngineConfig:
    return EngineConfig(
        model, device="cpu", dtype="float32", threads=1, max_num_seqs=4, max_num_batched_tokens=48
    )


def greedy(parts: EngineParts, prompt: list[int], num_tokens: int) -> list[int]:
    request = Request("request", prompt, SamplingParams(temperature=0.0))
    request.block_table = list(range(1, 6))
    while len(request.output_token_ids) < num_tokens:
        start = request.num_computed_tokens
        plan = StepPlan((ScheduledSequence(request, start, request.num_tokens - start),))
        request.num_computed_tokens = request.num_tokens
        request.output_token_ids.append(parts.runner.run(plan).token_ids["request"])
    return request.output_token_ids


def test_loads_what_an_engine_needs(config: EngineConfig) -> None:
    parts = load_engine_parts(config)
    assert parts.model_config == ModelConfig.from_hf(HF_CONFIG)
    assert parts.device == torch.device("cpu")
    assert parts.dtype is torch.float32
    assert parts.is_exact
    assert parts.tokenizer.vocab_size == VOCAB_SIZE
    assert parts.fingerprint
    assert len(greedy(parts, [1, 2, 3], 20)) == 20
    assert torch.get_num_threads() == 1


def test_the_default_pool_has_room_for_every_sequence(config: EngineConfig) -> None:
    parts = load_engine_parts(config)
    assert parts.max_model_len == 512
    assert parts.num_blocks == 4 * (512 // 16) + 1
    assert parts.runner.attention.layout.num_blocks == parts.num_blocks


def test_the_null_block_comes_on_top_of_what_is_asked_for(config: EngineConfig) -> None:
    assert load_engine_parts(replace(config, num_blocks=40)).num_blocks == 41


def test_a_pool_in_bytes(config: EngineConfig) -> None:
    bytes_per_block = 2 * 3 * 16 * 2 * 16 * 4
    parts = load_engine_parts(replace(config, kv_cache_bytes=10 * bytes_per_block + 1))
    assert parts.num_blocks == 11


def test_a_request_cannot_be_longer_than_the_pool(config: EngineConfig) -> None:
    assert load_engine_parts(replace(config, num_blocks=5)).max_model_len == 80


@pytest.mark.parametrize("num_blocks", [1, 2])
def test_the_smallest_pools_load(config: EngineConfig, num_blocks: int) -> None:
    assert load_engine_parts(replace(config, num_blocks=num_blocks, block_size=1)).num_blocks > 1


def test_contexts_are_as_long_as_asked_for(config: EngineConfig) -> None:
    parts = load_engine_parts(replace(config, max_model_len=100))
    assert parts.max_model_len == 100


def test_refuses_contexts_that_the_model_does_not_know(config: EngineConfig) -> None:
    with pytest.raises(InvalidRequest, match="more than the 512 tokens") as caught:
        load_engine_parts(replace(config, max_model_len=513))
    assert caught.value.param == "max_model_len"


def test_stays_within_a_sliding_window(config: EngineConfig, tmp_path: Path) -> None:
    model = save_model(tmp_path, MISTRAL | {"vocab_size": VOCAB_SIZE, "sliding_window": 64})
    assert load_engine_parts(replace(config, model=model)).max_model_len == 64


def test_rows_that_no_token_has_are_never_sampled(config: EngineConfig) -> None:
    parts = load_engine_parts(config)
    # A head that prefers the rows of padding to everything else, by far.
    head = parts.runner.decoder.weights.head
    head.weight = head.weight.clone()
    head.weight[VOCAB_SIZE:] *= 1000.0
    assert max(greedy(parts, [5, 6], 8)) < VOCAB_SIZE


def test_both_dtypes_and_backends_give_much_the_same(config: EngineConfig) -> None:
    exact = greedy(load_engine_parts(config), [9, 8, 7], 4)
    reference = load_engine_parts(replace(config, attention_backend="reference"))
    assert greedy(reference, [9, 8, 7], 4) == exact
    rounded = load_engine_parts(replace(config, dtype="bfloat16"))
    assert rounded.dtype is torch.bfloat16
    assert rounded.is_exact
    assert greedy(rounded, [9, 8, 7], 1) == exact[:1]


def test_without_determinism_nothing_is_padded(config: EngineConfig) -> None:
    parts = load_engine_parts(replace(config, deterministic=False))
    assert not parts.is_exact
    assert parts.runner.decoder.row_padding.padded(3) == 3
    assert greedy(parts, [1, 2, 3], 2)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_lets_the_memory_mapped_weights_go(config: EngineConfig, tmp_path: Path) -> None:
    """In a directory of its own: errors that other tests caught may still hold theirs."""
    parts = load_engine_parts(replace(config, model=save_model(tmp_path, HF_CONFIG)))
    is_mapped = str(tmp_path) in Path("/proc/self/maps").read_text(encoding="utf-8")
    assert not is_mapped
    assert parts.num_blocks


def test_refuses_cuda_where_there_is_none(
    config: EngineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(KernelUnavailable, match="device cuda was asked for"):
        load_engine_parts(replace(config, device="cuda"))


def test_refuses_another_architecture(config: EngineConfig, tmp_path: Path) -> None:
    save_model(tmp_path, HF_CONFIG)
    changed = HF_CONFIG | {"architectures": ["GPT2LMHeadModel"]}
    (tmp_path / "config.json").write_text(json.dumps(changed))
    with pytest.raises(ModelLoadError, match="GPT2LMHeadModel"):
        load_engine_parts(replace(config, model=tmp_path))


def test_refuses_weights_that_do_not_match(config: EngineConfig, tmp_path: Path) -> None:
    save_model(tmp_path, HF_CONFIG)
    changed = HF_CONFIG | {"num_hidden_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps(changed))
    with pytest.raises(ModelLoadError, match=r"9 tensors .*layers\.2"):
        load_engine_parts(replace(config, model=tmp_path))


def test_brings_neither_transformers_nor_triton() -> None:
    code = (
        "import sys, engine.loading, engine.attention.cpu\n"
        "print([name for name in ('transformers', 'triton') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
