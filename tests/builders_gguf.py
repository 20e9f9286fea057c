"""Small GGUF files, written with llama.cpp's own writer, and what they were made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGUFWriter

HIDDEN, INTERMEDIATE, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 32, 48, 2, 4, 2, 8
CONTEXT = 256
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
CHAT_TEMPLATE = "{% for m in messages %}<|start|>{{ m.content }}<|end|>{% endfor %}"

Arrays = dict[str, npt.NDArray[np.float32]]


@dataclass
class Vocabulary:
    """Tokens with their types, and either merges (byte-level) or values (sentencepiece)."""

    tokens: list[str]
    types: list[int]
    merges: list[str] | None = None
    values: list[float] | None = None
    kind: str = "gpt2"
    pre: str | None = "smollm"


def byte_characters() -> list[str]:
    """GPT-2's spelling of each byte."""
    printing = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printing else next(others)) for byte in range(256)]


def byte_level(pre: str = "smollm") -> Vocabulary:
    """Control tokens, every byte, and a few merges."""
    merges = ["h e", "l l", "he ll", "hell o", "Ġ w", "Ġ Ġ", "ĠĠ ĠĠ", "Ċ Ċ", "1 2", "12 3", "Ã ©"]
    control = ["<|end_of_all|>", "<|start|>", "<|end|>"]
    made = [merge.replace(" ", "") for merge in merges]
    tokens = [*control, *byte_characters(), *made, "<tool>"]
    types = [*[CONTROL] * 3, *[NORMAL] * (256 + len(made)), USER_DEFINED]
    return Vocabulary(tokens, types, merges=merges, pre=pre)


def sentencepiece() -> Vocabulary:
    """Unknown, bos, eos, bytes, characters and some words; merges follow from the values."""
    words = ["▁", "h", "e", "l", "o", "w", "r", "d", "▁h", "he", "ll", "▁he", "llo", "▁hello", "or"]
    words += ["▁w", "ld", "orld", "▁world", "é", "1", "2"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(words)]
    values = [0.0, 0.0, 0.0, *[0.0] * 256, *(-float(rank) for rank in range(len(words)))]
    return Vocabulary(tokens, types, values=values, kind="llama", pre=None)


@dataclass
class TinyModel:
    """A model as Hugging Face has it; `write` makes the GGUF of it that llama.cpp would make.

    metadata: keys below `<architecture>.` to add or, with None, to leave out.
    general: whole keys, likewise.
    """

    architecture: str = "llama"
    vocabulary: Vocabulary = field(default_factory=byte_level)
    metadata: dict[str, Any] = field(default_factory=dict)
    general: dict[str, Any] = field(default_factory=dict)
    extra_tensors: Arrays = field(default_factory=dict)
    ties_embeddings: bool = True
    has_bias: bool = False
    seed: int = 1

    def tensors(self) -> Arrays:
        """The weights by Hugging Face name."""
        random = np.random.default_rng(self.seed)

        def weights(*shape: int) -> npt.NDArray[np.float32]:
            return random.standard_normal(shape).astype(np.float32)

        num_rows = {"q": HEADS * HEAD_DIM, "k": KV_HEADS * HEAD_DIM, "v": KV_HEADS * HEAD_DIM}
        found = {"model.embed_tokens.weight": weights(len(self.vocabulary.tokens), HIDDEN)}
        found["model.norm.weight"] = weights(HIDDEN)
        if not self.ties_embeddings:
            found["lm_head.weight"] = weights(len(self.vocabulary.tokens), HIDDEN)
        for layer in range(LAYERS):
            prefix = f"model.layers.{layer}"
            for letter, rows in num_rows.items():
                found[f"{prefix}.self_attn.{letter}_proj.weight"] = weights(rows, HIDDEN)
                if self.has_bias:
                    found[f"{prefix}.self_attn.{letter}_proj.bias"] = weights(rows)
            found[f"{prefix}.self_attn.o_proj.weight"] = weights(HIDDEN, HEADS * HEAD_DIM)
            if self.has_bias and self.architecture == "llama":
                found[f"{prefix}.self_attn.o_proj.bias"] = weights(HIDDEN)
            found[f"{prefix}.mlp.gate_proj.weight"] = weights(INTERMEDIATE, HIDDEN)
            found[f"{prefix}.mlp.up_proj.weight"] = weights(INTERMEDIATE, HIDDEN)
            found[f"{prefix}.mlp.down_proj.weight"] = weights(HIDDEN, INTERMEDIATE)
            found[f"{prefix}.input_layernorm.weight"] = weights(HIDDEN)
            found[f"{prefix}.post_attention_layernorm.weight"] = weights(HIDDEN)
        return found

    def write(self, path: Path) -> Path:
        writer = GGUFWriter(path, self.architecture)
        self._write_metadata(writer)
        for name, values in (self._gguf_tensors() | self.extra_tensors).items():
            writer.add_tensor(name, np.ascontiguousarray(values))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def _write_metadata(self, writer: GGUFWriter) -> None:
        own = {
            "context_length": CONTEXT,
            "embedding_length": HIDDEN,
            "block_count": LAYERS,
            "feed_forward_length": INTERMEDIATE,
            "attention.head_count": HEADS,
            "attention.head_count_kv": KV_HEADS,
            "attention.layer_norm_rms_epsilon": 1e-5,
            "rope.freq_base": 10_000.0,
            "rope.dimension_count": HEAD_DIM,
        } | self.metadata
        vocabulary = self.vocabulary
        general = {
            "tokenizer.ggml.model": vocabulary.kind,
            "tokenizer.ggml.pre": vocabulary.pre,
            "tokenizer.ggml.tokens": vocabulary.tokens,
            "tokenizer.ggml.token_type": vocabulary.types,
            "tokenizer.ggml.merges": vocabulary.merges,
            "tokenizer.ggml.scores": vocabulary.values,
            "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.chat_template": CHAT_TEMPLATE,
        } | self.general
        keys = {f"{self.architecture}.{name}": value for name, value in own.items()} | general
        for key, value in keys.items():
            if value is not None:
                _add(writer, key, value)

    def _gguf_tensors(self) -> Arrays:
        places = {
            "self_attn.q_proj": "attn_q",
            "self_attn.k_proj": "attn_k",
            "self_attn.v_proj": "attn_v",
            "self_attn.o_proj": "attn_output",
            "mlp.gate_proj": "ffn_gate",
            "mlp.up_proj": "ffn_up",
            "mlp.down_proj": "ffn_down",
            "input_layernorm": "attn_norm",
            "post_attention_layernorm": "ffn_norm",
        }
        top = {
            "model.embed_tokens.weight": "token_embd.weight",
            "model.norm.weight": "output_norm.weight",
            "lm_head.weight": "output.weight",
        }
        found = {}
        for name, values in self.tensors().items():
            if name in top:
                found[top[name]] = values
                continue
            _, _, layer, *middle, kind = name.split(".")
            place = places[".".join(middle)]
            heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(place, 0)
            is_permuted = self.architecture == "llama" and heads
            found[f"blk.{layer}.{place}.{kind}"] = permute(values, heads) if is_permuted else values
        return found


def permute(values: npt.NDArray[np.float32], num_heads: int) -> npt.NDArray[np.float32]:
    """Row by row what llama.cpp's converter does to Q and K: in each head, row `i` of the first
    half goes to `2 i`, row `i` of the second half to `2 i + 1`."""
    permuted = np.empty_like(values)
    head_dim = values.shape[0] // num_heads
    for head in range(num_heads):
        for row in range(head_dim):
            half, offset = divmod(row, head_dim // 2)
            permuted[head * head_dim + 2 * offset + half] = values[head * head_dim + row]
    return permuted


def _add(writer: GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)
