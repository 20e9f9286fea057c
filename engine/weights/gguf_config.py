"""GGUF metadata -> the content of a Hugging Face config.json.

What is not understood is refused: a rope variant or an expert layer that were silently ignored
would give a model that runs and writes nonsense.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import ModelLoadError

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.weights.gguf_file import GGUFFile

ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}

_NUMBER = (int, float)
# Keys below `<architecture>.` that are read here, or say nothing that changes the computation.
_KNOWN_KEYS = frozenset(
    {
        "attention.causal",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
        "attention.layer_norm_rms_epsilon",
        "attention.value_length",
        "block_count",
        "context_length",
        "embedding_length",
        "expert_count",
        "expert_used_count",
        "feed_forward_length",
        "rope.dimension_count",
        "rope.freq_base",
        "rope.scaling.attn_factor",
        "rope.scaling.factor",
        "rope.scaling.finetuned",
        "rope.scaling.original_context_length",
        "rope.scaling.type",
        "rope.scale_linear",
        "tensor_data_layout",
        "vocab_size",
    }
)
# Meta's published constants of the llama3 rope scaling; files carry only the resulting factors.
_LLAMA3_LOW_FACTOR = 1.0
_LLAMA3_HIGH_FACTOR = 4.0
_LLAMA3_ORIGINAL_CONTEXT = 8192


def read_config(file: GGUFFile) -> dict[str, Any]:
    """config.json of the model in `file`, without the dtype.

    Raises ModelLoadError for an architecture or a variant that is not supported, by name.
    """
    architecture = file.architecture
    if architecture not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise ModelLoadError(
            f"{file.path.name}: architecture '{architecture}' is not supported (only {known})"
        )
    _refuse_unknown(file, architecture)
    num_heads = _whole(file, f"{architecture}.attention.head_count")
    hidden_size = _whole(file, f"{architecture}.embedding_length")
    head_dim = _head_dim(file, architecture, hidden_size, num_heads)
    theta = float(file.get(f"{architecture}.rope.freq_base", _NUMBER, 10_000.0))
    config: dict[str, Any] = {
        "architectures": [ARCHITECTURES[architecture]],
        "model_type": architecture,
        "hidden_act": "silu",
        "hidden_size": hidden_size,
        "intermediate_size": _whole(file, f"{architecture}.feed_forward_length"),
        "num_hidden_layers": _whole(file, f"{architecture}.block_count"),
        "num_attention_heads": num_heads,
        "num_key_value_heads": _whole(file, f"{architecture}.attention.head_count_kv", num_heads),
        "head_dim": head_dim,
        "rms_norm_eps": _shortest(
            file.require(f"{architecture}.attention.layer_norm_rms_epsilon", float)
        ),
        "rope_theta": _shortest(theta),
        "max_position_embeddings": _whole(file, f"{architecture}.context_length"),
        "vocab_size": file.shape("token_embd.weight")[0],
        "tie_word_embeddings": "output.weight" not in file.tensor_names,
    }
    if architecture == "llama":
        config["attention_bias"] = "blk.0.attn_q.bias" in file.tensor_names
        config["mlp_bias"] = "blk.0.ffn_up.bias" in file.tensor_names
    else:
        config["use_sliding_window"] = False
    scaling = _rope_scaling(file, architecture, head_dim, theta)
    if scaling is not None:
        config["rope_scaling"] = scaling
    return config | token_ids(file)


def token_ids(file: GGUFFile) -> dict[str, int]:
    """The special token ids that the file names, in Hugging Face's words."""
    names = {
        "bos_token_id": "tokenizer.ggml.bos_token_id",
        "eos_token_id": "tokenizer.ggml.eos_token_id",
        "pad_token_id": "tokenizer.ggml.padding_token_id",
    }
    return {
        ours: int(file.require(key, int)) for ours, key in names.items() if key in file.metadata
    }


def end_token_ids(file: GGUFFile) -> list[int]:
    """Every token that ends an answer: of the text, of the turn, of the message."""
    found = []
    for name in ("eos", "eot", "eom"):
        token_id = file.get(f"tokenizer.ggml.{name}_token_id", int)
        if token_id is not None and token_id not in found:
            found.append(int(token_id))
    return found


def _refuse_unknown(file: GGUFFile, architecture: str) -> None:
    if file.get("split.count", int, 1) > 1:
        raise ModelLoadError(f"{file.path.name}: a model in several files; merge them first")
    prefix = f"{architecture}."
    own = {key.removeprefix(prefix) for key in file.metadata if key.startswith(prefix)}
    unknown = sorted(own - _KNOWN_KEYS)
    if unknown:
        raise ModelLoadError(f"{file.path.name}: {prefix}{unknown[0]} is not supported")
    if file.get(f"{prefix}expert_count", int, 0):
        raise ModelLoadError(f"{file.path.name}: models with experts are not supported")
    if file.get(f"{prefix}attention.causal", bool, True) is False:
        raise ModelLoadError(f"{file.path.name}: models without a causal mask are not supported")
    if "token_embd.weight" not in file.tensor_names:
        raise ModelLoadError(f"{file.path.name}: has no token_embd.weight")


def _head_dim(file: GGUFFile, architecture: str, hidden_size: int, num_heads: int) -> int:
    key = _whole(file, f"{architecture}.attention.key_length", hidden_size // num_heads)
    value = _whole(file, f"{architecture}.attention.value_length", key)
    rotated = _whole(file, f"{architecture}.rope.dimension_count", key)
    if not key == value == rotated:
        raise ModelLoadError(
            f"{file.path.name}: heads of {key} (keys), {value} (values) and {rotated} (rotated) "
            "dimensions are not supported; they must be equal"
        )
    return key


def _rope_scaling(
    file: GGUFFile, architecture: str, head_dim: int, theta: float
) -> dict[str, Any] | None:
    kind = file.get(f"{architecture}.rope.scaling.type", str, "none")
    if "rope_freqs.weight" in file.tensor_names:
        if kind != "none":
            raise ModelLoadError(f"{file.path.name}: rope factors with scaling '{kind}'")
        return _llama3_scaling(file.read("rope_freqs.weight"), head_dim, theta, file.path.name)
    linear = float(file.get(f"{architecture}.rope.scale_linear", _NUMBER, 1.0))
    factor = float(file.get(f"{architecture}.rope.scaling.factor", _NUMBER, linear))
    if kind == "linear" or (kind == "none" and factor != 1.0):
        return {"rope_type": "linear", "factor": factor}
    if kind != "none":
        raise ModelLoadError(f"{file.path.name}: rope scaling '{kind}' is not supported")
    return None


def _llama3_scaling(
    factors: npt.NDArray[np.float32], head_dim: int, theta: float, name: str
) -> dict[str, Any]:
    """The parameters that give these per-frequency factors; refused when none do."""
    factor = _shortest(float(factors.max())) if factors.size else 1.0
    parameters = {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": _LLAMA3_LOW_FACTOR,
        "high_freq_factor": _LLAMA3_HIGH_FACTOR,
        "original_max_position_embeddings": _LLAMA3_ORIGINAL_CONTEXT,
    }
    expected = llama3_factors(head_dim, theta, factor)
    if expected.shape != factors.shape or not np.allclose(expected, factors, rtol=1e-4):
        raise ModelLoadError(f"{name}: its rope factors are not those of llama3 scaling")
    return parameters


def llama3_factors(head_dim: int, theta: float, factor: float) -> npt.NDArray[np.float64]:
    """How much slower each frequency turns, shape [head_dim / 2].

    Long waves are slowed by `factor`, short ones not at all, those between smoothly (Llama 3.1).
    """
    waves = 2.0 * math.pi * theta ** (np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    smooth = (_LLAMA3_ORIGINAL_CONTEXT / waves - _LLAMA3_LOW_FACTOR) / (
        _LLAMA3_HIGH_FACTOR - _LLAMA3_LOW_FACTOR
    )
    smooth = np.clip(smooth, 0.0, 1.0)
    return np.asarray(1.0 / ((1.0 - smooth) / factor + smooth), dtype=np.float64)


def _whole(file: GGUFFile, key: str, default: int | None = None) -> int:
    value = file.require(key, int) if default is None else file.get(key, int, default)
    if value < 1:
        raise ModelLoadError(f"{file.path.name}: metadata '{key}' is {value}")
    return int(value)


def _shortest(value: float) -> float:
    """1e-05 for the float32 9.999999747378752e-06: what the author wrote."""
    return float(str(np.float32(value)))
