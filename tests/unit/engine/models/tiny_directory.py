"""Tiny random models on disk, as an engine loads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from engine.models.config import ModelConfig
from tests.fakes.engine_parts import VOCAB_SIZE, byte_tokenizer
from tests.unit.engine.models.tiny_models import random_tensors


def model_directory(directory: Path, hf_config: Mapping[str, Any]) -> Path:
    """Random weights and a byte tokenizer in Hugging Face's layout."""
    byte_tokenizer(directory)
    content = {**hf_config, "vocab_size": VOCAB_SIZE, "eos_token_id": VOCAB_SIZE - 1}
    (directory / "config.json").write_text(json.dumps(content))
    tensors = random_tensors(ModelConfig.from_hf(content)).tensors
    save_file(tensors, directory / "model.safetensors")
    return directory
