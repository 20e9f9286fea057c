"""Which configurations are understood, and that everything else is refused by name."""

from typing import Any

import pytest

from engine.errors import ModelLoadError
from engine.layers.rotary import RopeConfig
from engine.models.config import ModelConfig
from tests.unit.engine.models.tiny_models import LLAMA, LLAMA3, MISTRAL, QWEN2

SMOLLM2: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "hidden_act": "silu",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "max_position_embeddings": 8192,
    "mlp_bias": False,
    "num_attention_heads": 9,
    "num_hidden_layers": 30,
    "num_key_value_heads": 3,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-5,
    "rope_scaling": None,
    "rope_theta": 100_000,
    "tie_word_embeddings": True,
    "vocab_size": 49_152,
}


def test_reads_smollm2() -> None:
    assert ModelConfig.from_hf(SMOLLM2) == ModelConfig(
        architecture="LlamaForCausalLM",
        vocab_size=49_152,
        hidden_size=576,
        intermediate_size=1536,
        num_layers=30,
        num_query_heads=9,
        num_kv_heads=3,
        head_dim=64,
        norm_eps=1e-5,
        rope=RopeConfig(100_000.0),
        max_context=8192,
        has_tied_head=True,
    )


@pytest.mark.parametrize(
    ("config", "biases"),
    [
        (LLAMA, (False, False, False)),
        (LLAMA3, (True, True, True)),
        (QWEN2, (True, False, False)),
        (MISTRAL, (False, False, False)),
    ],
)
def test_biases_are_those_of_the_architecture(
    config: dict[str, Any], biases: tuple[bool, bool, bool]
) -> None:
    read = ModelConfig.from_hf(config)
    assert (read.has_qkv_bias, read.has_output_bias, read.has_mlp_bias) == biases


def test_every_head_is_a_kv_head_unless_said() -> None:
    config = {name: value for name, value in LLAMA.items() if name != "num_key_value_heads"}
    assert ModelConfig.from_hf(config).num_kv_heads == LLAMA["num_attention_heads"]


@pytest.mark.parametrize(
    "scaling",
    [
        {"rope_theta": 500_000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"rope_theta": 500_000.0, "rope_scaling": {"type": "linear", "factor": 2}},
        {"rope_parameters": {"rope_theta": 500_000, "rope_type": "linear", "factor": 2.0}},
    ],
)
def test_reads_rope_in_old_and_new_words(scaling: dict[str, Any]) -> None:
    config = {name: value for name, value in LLAMA.items() if name != "rope_parameters"}
    assert ModelConfig.from_hf(config | scaling).rope == RopeConfig(500_000.0, "linear", 2.0)


def test_reads_llama3_rope() -> None:
    assert ModelConfig.from_hf(LLAMA3).rope == RopeConfig(500_000.0, "llama3", 8.0, 1.0, 4.0, 64)


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        (MISTRAL | {"sliding_window": 128}, 128),
        (MISTRAL | {"sliding_window": 4096}, 512),
        (QWEN2 | {"use_sliding_window": False, "sliding_window": 128}, 512),
        (QWEN2 | {"use_sliding_window": True, "sliding_window": 128}, 128),
        (LLAMA | {"sliding_window": 128}, 512),
    ],
)
def test_contexts_stay_within_the_sliding_window(config: dict[str, Any], longest: int) -> None:
    assert ModelConfig.from_hf(config).max_context == longest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": ["GemmaForCausalLM"]}, "architecture GemmaForCausalLM is not supported"),
        ({"architectures": None}, "architecture None"),
        ({"architectures": ["LlamaForCausalLM", "X"]}, "architecture LlamaForCausalLM, X"),
        ({"hidden_act": "gelu"}, "activation gelu"),
        ({"quantization_config": {"bits": 4}}, "quantized"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "rope type yarn"),
        ({"rope_parameters": {"rope_type": "linear"}}, "factor is None"),
        ({"rope_parameters": "linear"}, "not an object"),
        (
            {"rope_parameters": LLAMA3["rope_parameters"] | {"high_freq_factor": 1.0}},
            "high_freq_factor must be above",
        ),
        ({"num_attention_heads": 5}, "5 attention heads cannot share 2"),
        ({"head_dim": 15}, "head_dim 15 is odd"),
        ({"vocab_size": 0}, "vocab_size is 0"),
        ({"hidden_size": None}, "hidden_size is None"),
        ({"num_hidden_layers": "3"}, "num_hidden_layers is '3'"),
        ({"rms_norm_eps": -1}, "rms_norm_eps is -1"),
        ({"max_position_embeddings": True}, "max_position_embeddings is True"),
    ],
)
def test_refuses_what_it_does_not_know(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelLoadError, match=message):
        ModelConfig.from_hf(LLAMA | change)
