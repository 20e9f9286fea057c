"""From a checkpoint's tensors, by Hugging Face name, to the decoder's fused weights."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from engine.errors import ModelLoadError
from engine.layers.linear import Linear
from engine.layers.norm import RMSNorm
from engine.layers.packed_linear import pack_linear
from engine.models.decoder import DecoderLayer, DecoderWeights

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from engine.models.config import ModelConfig

# Left in old files; the tables are computed here.
_UNUSED = re.compile(r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq")


class TensorSource(Protocol):
    """What is needed of `engine.weights.loading.Checkpoint`."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def tensor(self, name: str) -> torch.Tensor:
        """Raises ModelLoadError when there is none of that name."""
        ...


def assemble_weights(
    config: ModelConfig, source: TensorSource, device: torch.device
) -> DecoderWeights:
    """Every tensor is copied: the source's memory-mapped file can be let go, and a kernel gets
    aligned memory.

    Raises ModelLoadError: a tensor is missing, has another shape than the configuration says, or
    is not one that this decoder knows.
    """
    reader = _Reader(source, device)
    embedding = reader.take("model.embed_tokens.weight", (config.vocab_size, config.hidden_size))
    layers = tuple(_layer(reader, config, index) for index in range(config.num_layers))
    norm = RMSNorm(reader.take("model.norm.weight", (config.hidden_size,)), config.norm_eps)
    if config.has_tied_head:
        reader.taken.add("lm_head.weight")
        head = Linear(embedding)
    else:
        head = Linear(reader.take("lm_head.weight", (config.vocab_size, config.hidden_size)))
    unknown = sorted(
        name for name in set(source.names) - reader.taken if not _UNUSED.fullmatch(name)
    )
    if unknown:
        raise ModelLoadError(
            f"{len(unknown)} tensors of the weights are not part of a {config.architecture}: "
            f"{', '.join(unknown[:3])}"
        )
    return DecoderWeights(embedding, layers, norm, head)


def _layer(reader: _Reader, config: ModelConfig, index: int) -> DecoderLayer:
    prefix = f"model.layers.{index}"
    hidden, inner = config.hidden_size, config.intermediate_size
    num_query = config.num_query_heads * config.head_dim
    num_kv = config.num_kv_heads * config.head_dim
    attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
    sizes = {"q_proj": num_query, "k_proj": num_kv, "v_proj": num_kv}
    return DecoderLayer(
        attention_norm=reader.norm(f"{prefix}.input_layernorm", config),
        qkv=reader.linear(
            [f"{attention}.{name}" for name in sizes],
            [(size, hidden) for size in sizes.values()],
            has_bias=config.has_qkv_bias,
        ),
        output=reader.linear(
            [f"{attention}.o_proj"], [(hidden, num_query)], has_bias=config.has_output_bias
        ),
        mlp_norm=reader.norm(f"{prefix}.post_attention_layernorm", config),
        gate_up=reader.linear(
            [f"{mlp}.gate_proj", f"{mlp}.up_proj"],
            [(inner, hidden)] * 2,
            has_bias=config.has_mlp_bias,
        ),
        down=reader.linear([f"{mlp}.down_proj"], [(hidden, inner)], has_bias=config.has_mlp_bias),
    )


class _Reader:
    """Takes tensors by name and remembers which."""

    def __init__(self, source: TensorSource, device: torch.device) -> None:
        self._source = source
        self._device = device
        self.taken: set[str] = set()

    def take(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        return self._view(name, shape).to(self._device, copy=True)

    def norm(self, name: str, config: ModelConfig) -> RMSNorm:
        return RMSNorm(self.take(f"{name}.weight", (config.hidden_size,)), config.norm_eps)

    def linear(
        self, names: Sequence[str], shapes: Sequence[tuple[int, int]], *, has_bias: bool
    ) -> Linear:
        pairs = list(zip(names, shapes, strict=True))
        linear = Linear.fused(
            [self._view(f"{name}.weight", shape) for name, shape in pairs],
            [self._view(f"{name}.bias", shape[:1]) for name, shape in pairs] if has_bias else None,
        )
        return pack_linear(linear.to(self._device))

    def _view(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        tensor = self._source.tensor(name)
        if tuple(tensor.shape) != shape:
            raise ModelLoadError(f"{name} has shape {tuple(tensor.shape)}, not {shape}")
        self.taken.add(name)
        return tensor
