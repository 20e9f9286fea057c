"""Our decoder against transformers on tiny random models: the same weights, the same logits."""

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from engine.attention.base import AttentionBatch
from engine.models.assemble import assemble_weights
from engine.models.config import ModelConfig
from engine.models.decoder import Decoder
from tests.unit.engine.models.tiny_models import ALL, CPU, build_backend, random_tensors

LENGTH = 150  # past the llama3 case's original context


def transformers_logits(
    hf_config: dict[str, Any], tensors: dict[str, torch.Tensor], token_ids: list[int]
) -> torch.Tensor:
    fields = {name: value for name, value in hf_config.items() if name != "model_type"}
    config = AutoConfig.for_model(hf_config["model_type"], **fields)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    missing = model.load_state_dict(tensors, strict=False)
    assert not missing.unexpected_keys
    assert set(missing.missing_keys) <= {"lm_head.weight"}
    model.tie_weights()
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([token_ids])).logits[0].float()
    return logits


@pytest.mark.parametrize("name", ALL)
def test_logits_are_those_of_transformers(name: str) -> None:
    config = ModelConfig.from_hf(ALL[name])
    source = random_tensors(config)
    token_ids = torch.randint(
        config.vocab_size, (LENGTH,), generator=torch.Generator().manual_seed(3)
    )
    expected = transformers_logits(ALL[name], source.tensors, token_ids.tolist())

    decoder = Decoder(config, assemble_weights(config, source, CPU), config.max_context)
    backend = build_backend(decoder)
    table = list(range(20, 0, -1))
    at = torch.arange(LENGTH)
    slots = torch.tensor(table)[at // 16] * 16 + at % 16
    backend.prepare(AttentionBatch([0, LENGTH], [LENGTH], [table], slots))
    actual = decoder.forward(token_ids, at, backend, range(LENGTH))

    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(actual.argmax(-1), expected.argmax(-1))
