"""Tiny random models: Hugging Face configurations, weights, and our decoder over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from engine.attention.base import AttentionBackend, KVLayout
from engine.attention.cpu import CpuAttention
from engine.attention.cpu_padding import AttentionPadding, find_padding
from engine.attention.registry import create_backend
from engine.models.assemble import assemble_weights
from engine.models.config import ModelConfig
from engine.models.decoder import Decoder

CPU = torch.device("cpu")
_PADDINGS: dict[object, AttentionPadding] = {}

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 199,
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
}
LLAMA3: dict[str, Any] = LLAMA | {
    "tie_word_embeddings": False,
    "head_dim": 32,
    "attention_bias": True,
    "mlp_bias": True,
    "rope_parameters": {
        "rope_type": "llama3",
        "rope_theta": 500_000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
}
LINEAR: dict[str, Any] = LLAMA | {
    "rope_parameters": {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0},
}
QWEN2: dict[str, Any] = LLAMA | {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "num_attention_heads": 6,
    "num_key_value_heads": 6,
    "rms_norm_eps": 1e-6,
    "use_sliding_window": False,
}
MISTRAL: dict[str, Any] = LLAMA | {
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "tie_word_embeddings": False,
    "num_key_value_heads": 1,
    "sliding_window": None,
}
ALL: dict[str, dict[str, Any]] = {
    "llama": LLAMA,
    "llama3": LLAMA3,
    "linear": LINEAR,
    "qwen2": QWEN2,
    "mistral": MISTRAL,
}


class Tensors:
    """A checkpoint in memory."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self.tensors = dict(tensors)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.tensors)

    def tensor(self, name: str) -> torch.Tensor:
        return self.tensors[name]


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor of such a model by its Hugging Face name."""
    hidden, inner = config.hidden_size, config.intermediate_size
    query = config.num_query_heads * config.head_dim
    kv = config.num_kv_heads * config.head_dim
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config.vocab_size, hidden)}
    for index in range(config.num_layers):
        layer = f"model.layers.{index}"
        found[f"{layer}.input_layernorm.weight"] = (hidden,)
        found[f"{layer}.post_attention_layernorm.weight"] = (hidden,)
        for name, size in (("q", query), ("k", kv), ("v", kv)):
            found[f"{layer}.self_attn.{name}_proj.weight"] = (size, hidden)
            if config.has_qkv_bias:
                found[f"{layer}.self_attn.{name}_proj.bias"] = (size,)
        found[f"{layer}.self_attn.o_proj.weight"] = (hidden, query)
        if config.has_output_bias:
            found[f"{layer}.self_attn.o_proj.bias"] = (hidden,)
        for name, shape in (
            ("gate", (inner, hidden)),
            ("up", (inner, hidden)),
            ("down", (hidden, inner)),
        ):
            found[f"{layer}.mlp.{name}_proj.weight"] = shape
            if config.has_mlp_bias:
                found[f"{layer}.mlp.{name}_proj.bias"] = shape[:1]
    found["model.norm.weight"] = (hidden,)
    if not config.has_tied_head:
        found["lm_head.weight"] = (config.vocab_size, hidden)
    return found


def random_tensors(config: ModelConfig, *, seed: int = 0) -> Tensors:
    """Weights of a scale at which activations stay near 1 and logits are a few units apart."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in shapes(config).items():
        drawn = torch.randn(shape, generator=generator)
        if name.endswith("norm.weight"):
            tensors[name] = 1.0 + 0.1 * drawn
        elif len(shape) == 1:
            tensors[name] = 0.1 * drawn
        else:
            tensors[name] = drawn * (2.0 / shape[1]) ** 0.5
    return Tensors(tensors)


def build_decoder(
    hf_config: Mapping[str, Any], *, dtype: torch.dtype = torch.float32, seed: int = 0
) -> Decoder:
    config = ModelConfig.from_hf(hf_config)
    tensors = random_tensors(config, seed=seed)
    cast = Tensors({name: tensor.to(dtype) for name, tensor in tensors.tensors.items()})
    return Decoder(config, assemble_weights(config, cast, CPU), config.max_context)


def build_backend(
    decoder: Decoder, *, name: str = "cpu", num_blocks: int = 64, block_size: int = 16
) -> AttentionBackend:
    config = decoder.config
    layout = KVLayout(
        config.num_layers,
        num_blocks,
        block_size,
        config.num_kv_heads,
        config.head_dim,
        decoder.dtype,
        decoder.device,
    )
    scale = config.head_dim**-0.5
    if name != "cpu":
        return create_backend(name, layout, config.num_query_heads, scale)
    key = (layout.dtype, block_size, config.num_kv_heads, config.num_query_heads, config.head_dim)
    if key not in _PADDINGS:  # the self-test takes longer than what these models do
        _PADDINGS[key] = find_padding(CpuAttention, layout, config.num_query_heads, scale)
    return CpuAttention(layout, config.num_query_heads, scale, padding=_PADDINGS[key])
