"""From named tensors to fused weights."""

import pytest
import torch

from engine.errors import ModelLoadError
from engine.models.assemble import assemble_weights
from engine.models.config import ModelConfig
from tests.unit.engine.models.tiny_models import CPU, LLAMA, LLAMA3, Tensors, random_tensors

CONFIG = ModelConfig.from_hf(LLAMA)


def test_fuses_what_has_the_same_input() -> None:
    config = ModelConfig.from_hf(LLAMA3)
    source = random_tensors(config)
    layer = assemble_weights(config, source, CPU).layers[1]
    prefix = "model.layers.1"
    qkv = [source.tensor(f"{prefix}.self_attn.{name}_proj.weight") for name in "qkv"]
    assert torch.equal(layer.qkv.weight, torch.cat(qkv))
    biases = [source.tensor(f"{prefix}.self_attn.{name}_proj.bias") for name in "qkv"]
    assert layer.qkv.bias is not None
    assert torch.equal(layer.qkv.bias, torch.cat(biases))
    gate_up = [source.tensor(f"{prefix}.mlp.{name}_proj.weight") for name in ("gate", "up")]
    assert torch.equal(layer.gate_up.weight, torch.cat(gate_up))
    assert torch.equal(layer.down.weight, source.tensor(f"{prefix}.mlp.down_proj.weight"))


def test_shares_no_memory_with_the_source() -> None:
    """A memory-mapped file must be let go once the weights are assembled."""
    source = random_tensors(CONFIG)
    weights = assemble_weights(CONFIG, source, CPU)
    theirs = {tensor.untyped_storage().data_ptr() for tensor in source.tensors.values()}
    ours = [weights.embedding, weights.norm.weight, weights.head.weight]
    for layer in weights.layers:
        ours += [layer.attention_norm.weight, layer.mlp_norm.weight]
        ours += [each.weight for each in (layer.qkv, layer.output, layer.gate_up, layer.down)]
    assert theirs.isdisjoint(tensor.untyped_storage().data_ptr() for tensor in ours)


def test_a_tied_head_is_the_embedding() -> None:
    weights = assemble_weights(CONFIG, random_tensors(CONFIG), CPU)
    assert weights.head.weight is weights.embedding
    matrices = sum(
        tensor.nbytes for tensor in random_tensors(CONFIG).tensors.values() if tensor.dim() == 2
    )
    assert weights.num_bytes == matrices


def test_a_tied_head_may_be_stored_all_the_same() -> None:
    source = random_tensors(CONFIG)
    source.tensors["lm_head.weight"] = torch.zeros(CONFIG.vocab_size, CONFIG.hidden_size)
    weights = assemble_weights(CONFIG, source, CPU)
    assert weights.head.weight is weights.embedding


def test_refuses_another_shape() -> None:
    source = random_tensors(CONFIG)
    source.tensors["model.layers.2.mlp.up_proj.weight"] = torch.zeros(3, 4)
    with pytest.raises(ModelLoadError, match=r"layers\.2\.mlp\.up_proj.*\(3, 4\), not \(160, 96\)"):
        assemble_weights(CONFIG, source, CPU)


def test_refuses_tensors_that_it_would_ignore() -> None:
    source = random_tensors(CONFIG)
    source.tensors["model.layers.0.self_attn.q_norm.weight"] = torch.ones(16)
    with pytest.raises(ModelLoadError, match=r"1 tensors .* q_norm|q_norm"):
        assemble_weights(CONFIG, source, CPU)


def test_ignores_rotary_tables_of_old_files() -> None:
    source = random_tensors(CONFIG)
    source.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(8)
    assert len(assemble_weights(CONFIG, Tensors(source.tensors), CPU).layers) == 3
