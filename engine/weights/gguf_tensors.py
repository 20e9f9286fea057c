"""Names and layouts: GGUF tensors as the Hugging Face checkpoint had them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine.errors import ModelLoadError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engine.weights.gguf_file import GGUFFile

_TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER = re.compile(r"blk\.(\d+)\.([a-z_]+)\.(weight|bias)")
# Turned into config.json's rope_scaling by gguf_config.
_IN_CONFIG = frozenset({"rope_freqs.weight"})
# llama.cpp rotates neighbouring pairs of llama models, Hugging Face the two halves of a head.
_PERMUTED = {"llama": ("attn_q", "attn_k"), "qwen2": ()}


def hf_names(file: GGUFFile) -> dict[str, str]:
    """Hugging Face name -> name in the file, in the order of the file.

    Raises ModelLoadError for a tensor without a place: leaving it out would change the model.
    """
    names = {}
    for name in file.tensor_names:
        if name in _IN_CONFIG:
            continue
        names[_hf_name(name, file.path.name)] = name
    return names


def read_tensor(file: GGUFFile, name: str, config: dict[str, Any]) -> npt.NDArray[np.float32]:
    """The tensor in Hugging Face's layout: rows first, rotary pairs half a head apart.

    Args:
        file: the GGUF file.
        name: the tensor's name in the file.
        config: from `read_config`, for the numbers of heads.

    Raises ModelLoadError when its rows are not heads.
    """
    values = file.read(name)
    match = _LAYER.fullmatch(name)
    if match is None or match[2] not in _PERMUTED[file.architecture]:
        return values
    is_query = match[2] == "attn_q"
    num_heads = config["num_attention_heads" if is_query else "num_key_value_heads"]
    if values.shape[0] != num_heads * config["head_dim"]:
        raise ModelLoadError(f"{name} has {values.shape[0]} rows, not {num_heads} heads")
    return unpermute(values, num_heads)


def unpermute(values: npt.NDArray[np.float32], num_heads: int) -> npt.NDArray[np.float32]:
    """Rows of each head from interleaved rotary pairs (0, 1), (2, 3), ... to pairs half a head
    apart. values: [num_heads * head_dim, ...], weights or biases."""
    half = values.shape[0] // num_heads // 2
    pairs = values.reshape(num_heads, half, 2, *values.shape[1:])
    return pairs.swapaxes(1, 2).reshape(values.shape)


def _hf_name(name: str, file_name: str) -> str:
    if name in _TOP:
        return _TOP[name]
    match = _LAYER.fullmatch(name)
    if match is None or match[2] not in _IN_LAYER:
        raise ModelLoadError(f"{file_name}: tensor {name} is not supported")
    return f"model.layers.{match[1]}.{_IN_LAYER[match[2]]}.{match[3]}"
