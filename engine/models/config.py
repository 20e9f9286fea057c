"""ModelConfig: what of a Hugging Face config.json the decoder acts on.

One decoder covers Llama, Mistral and Qwen2 by switches. Whatever would change the computation and
is not supported is refused: a model that runs and writes nonsense is worse than an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import ModelLoadError
from engine.layers.rotary import RopeConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

# Hugging Face architecture -> whether its query, key and value projections have a bias when the
# configuration does not say.
_ARCHITECTURES = {
    "LlamaForCausalLM": False,
    "MistralForCausalLM": False,
    "Qwen2ForCausalLM": True,
}
_DEFAULT_ROPE_THETA = 10_000.0
_DEFAULT_NORM_EPS = 1e-6


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes and switches of a decoder. `max_context` is the most tokens of prompt + output: the
    positions that it was trained on, or its sliding window, within which a window hides nothing."""

    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_query_heads: int
    num_kv_heads: int
    head_dim: int
    norm_eps: float
    rope: RopeConfig
    max_context: int
    has_qkv_bias: bool = False
    has_output_bias: bool = False
    has_mlp_bias: bool = False
    has_tied_head: bool = False

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> ModelConfig:
        """From the content of config.json.

        Raises ModelLoadError: an architecture, rope type or variant that is not supported, or a
        size that is missing or makes no sense.
        """
        architecture = _architecture(config)
        _refuse_variants(config)
        hidden_size = _size(config, "hidden_size")
        num_query_heads = _size(config, "num_attention_heads")
        num_kv_heads = _size(config, "num_key_value_heads", num_query_heads)
        if num_query_heads % num_kv_heads:
            raise ModelLoadError(
                f"{num_query_heads} attention heads cannot share {num_kv_heads} key-value heads"
            )
        head_dim = _size(config, "head_dim", hidden_size // num_query_heads)
        if head_dim % 2:
            raise ModelLoadError(f"head_dim {head_dim} is odd, which rotary embedding cannot be")
        has_attention_bias = bool(config.get("attention_bias", _ARCHITECTURES[architecture]))
        return cls(
            architecture=architecture,
            vocab_size=_size(config, "vocab_size"),
            hidden_size=hidden_size,
            intermediate_size=_size(config, "intermediate_size"),
            num_layers=_size(config, "num_hidden_layers"),
            num_query_heads=num_query_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            norm_eps=_number(config, "rms_norm_eps", _DEFAULT_NORM_EPS),
            rope=_rope(config),
            max_context=_max_context(config, architecture),
            has_qkv_bias=has_attention_bias,
            # Llama's switch is for all four projections, Qwen2's bias for the first three.
            has_output_bias=has_attention_bias and architecture == "LlamaForCausalLM",
            has_mlp_bias=bool(config.get("mlp_bias", False)),
            has_tied_head=bool(config.get("tie_word_embeddings", False)),
        )


def _architecture(config: Mapping[str, Any]) -> str:
    names = config.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or names[0] not in _ARCHITECTURES:
        said = ", ".join(map(str, names)) if isinstance(names, list) else str(names)
        raise ModelLoadError(
            f"architecture {said} is not supported (only {', '.join(_ARCHITECTURES)})"
        )
    return str(names[0])


def _refuse_variants(config: Mapping[str, Any]) -> None:
    activation = config.get("hidden_act", "silu")
    if activation not in {"silu", "swish"}:
        raise ModelLoadError(f"activation {activation} is not supported (only silu)")
    if config.get("quantization_config"):
        raise ModelLoadError("quantized safetensors weights are not supported; use GGUF")
    partial = config.get("partial_rotary_factor", 1.0)
    if partial != 1.0:
        raise ModelLoadError(f"partial_rotary_factor {partial} is not supported (only 1.0)")


def _max_context(config: Mapping[str, Any], architecture: str) -> int:
    positions = _size(config, "max_position_embeddings")
    if architecture == "LlamaForCausalLM" or config.get("use_sliding_window") is False:
        return positions
    if config.get("sliding_window") is None:
        return positions
    return min(positions, _size(config, "sliding_window"))


def _rope(config: Mapping[str, Any]) -> RopeConfig:
    """Old files have `rope_theta` and `rope_scaling`, new ones `rope_parameters` with both."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(scaling, dict):
        raise ModelLoadError("rope_scaling is not an object")
    theta = _number(scaling, "rope_theta", _number(config, "rope_theta", _DEFAULT_ROPE_THETA))
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if _number(scaling, "partial_rotary_factor", 1.0) != 1.0:
        raise ModelLoadError("partial_rotary_factor is not supported (only 1.0)")
    if kind == "default":
        return RopeConfig(theta)
    if kind == "linear":
        return RopeConfig(theta, kind, _number(scaling, "factor"))
    if kind == "llama3":
        rope = RopeConfig(
            theta=theta,
            kind=kind,
            factor=_number(scaling, "factor"),
            low_frequency_factor=_number(scaling, "low_freq_factor"),
            high_frequency_factor=_number(scaling, "high_freq_factor"),
            original_context=_size(scaling, "original_max_position_embeddings"),
        )
        if rope.high_frequency_factor <= rope.low_frequency_factor:
            raise ModelLoadError("rope: high_freq_factor must be above low_freq_factor")
        return rope
    raise ModelLoadError(f"rope type {kind} is not supported (only default, linear, llama3)")


def _size(config: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = config.get(name)
    if value is None:
        value = default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelLoadError(f"config.json: {name} is {value!r}, not a whole number above 0")
    return value


def _number(config: Mapping[str, Any], name: str, default: float | None = None) -> float:
    value = config.get(name)
    if value is None:
        value = default
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise ModelLoadError(f"config.json: {name} is {value!r}, not a number above 0")
    return float(value)
