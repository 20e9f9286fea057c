"""load_engine_parts: from an EngineConfig to everything that an engine runs on."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.attention.base import KVLayout
from engine.attention.registry import create_backend
from engine.errors import InvalidRequest, KernelUnavailable
from engine.models.assemble import assemble_weights
from engine.models.config import ModelConfig
from engine.models.decoder import Decoder
from engine.request import Request
from engine.runner import ModelRunner
from engine.sampling.sampler import Sampler
from engine.sampling_params import SamplingParams
from engine.step import ScheduledSequence, StepPlan
from engine.text.chat_template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from engine.weights.dtypes import resolve_device, resolve_dtype
from engine.weights.loading import open_checkpoint

if TYPE_CHECKING:
    from engine.config import EngineConfig
    from engine.models.decoder import DecoderWeights

_log = logging.getLogger(__name__)

# The pool's default size: room for every sequence at this length, within these bounds.
_USUAL_CONTEXT = 1024
_CPU_POOL_BYTES = 150 << 20
_CUDA_POOL_SHARE = 0.8  # of the memory that is free once the weights are there


@dataclass(frozen=True, slots=True)
class EngineParts:
    """
    num_blocks: of the pool, the null block included.
    max_model_len: prompt + output tokens of one request: what was asked for, within what the model
        knows and the pool holds.
    is_exact: a request's tokens do not depend on its batch, chunks and cache (greedy sampling).
    """

    runner: ModelRunner
    tokenizer: Tokenizer
    chat_template: ChatTemplate
    model_config: ModelConfig
    num_blocks: int
    fingerprint: str
    max_model_len: int
    device: torch.device
    dtype: torch.dtype
    is_exact: bool


def load_engine_parts(config: EngineConfig) -> EngineParts:
    """Read the weights, size the block pool, find the exact paddings and run one small step.

    Sets torch's number of threads for the process.

    Raises ModelLoadError: weights, configuration or tokenizer cannot be used. KernelUnavailable:
    the device or the attention backend cannot be used here. InvalidRequest: the model does not
    know contexts as long as `max_model_len`.
    """
    started = time.monotonic()
    device = _device(config.device)
    dtype = resolve_dtype(config.dtype, device.type)
    torch.set_num_threads(config.num_threads)
    # The checkpoint is local: its memory-mapped files go when the weights have been copied.
    checkpoint = open_checkpoint(config.model, dtype, config.conversion_dir)
    model_config = ModelConfig.from_hf(checkpoint.config)
    tokenizer = Tokenizer.load(checkpoint.directory)
    chat_template = ChatTemplate.load(checkpoint.directory)
    longest = _longest_context(config, model_config)
    weights = assemble_weights(model_config, checkpoint, device)
    fingerprint = checkpoint.fingerprint
    del checkpoint

    num_blocks = _num_blocks(config, _layout(config, model_config, 1, weights), longest, weights)
    max_model_len = min(longest, (num_blocks - 1) * config.block_size)
    decoder = Decoder(model_config, weights, max_model_len)
    is_exact = (
        config.deterministic
        and device.type == "cpu"
        and decoder.make_exact(config.max_num_batched_tokens, config.max_num_seqs)
    )
    attention = create_backend(
        config.attention_backend,
        _layout(config, model_config, num_blocks, weights),
        model_config.num_query_heads,
        model_config.head_dim**-0.5,
        deterministic=config.deterministic,
    )
    vocab_size = min(model_config.vocab_size, tokenizer.vocab_size)
    runner = ModelRunner(decoder, attention, Sampler(vocab_size, device))
    _warm_up(runner, max_model_len)
    _log.info(
        "loaded %s on %s as %s in %.1f s: %d blocks of %d tokens, contexts up to %d",
        model_config.architecture,
        device,
        dtype,
        time.monotonic() - started,
        num_blocks,
        config.block_size,
        max_model_len,
    )
    return EngineParts(
        runner=runner,
        tokenizer=tokenizer,
        chat_template=chat_template,
        model_config=model_config,
        num_blocks=num_blocks,
        fingerprint=fingerprint,
        max_model_len=max_model_len,
        device=device,
        dtype=dtype,
        is_exact=is_exact and attention.is_exact,
    )


def _device(wanted: str) -> torch.device:
    name = resolve_device(wanted)
    if name == "cuda" and not torch.cuda.is_available():
        raise KernelUnavailable("device cuda was asked for, but torch finds no CUDA device")
    return (
        torch.device("cuda", torch.cuda.current_device()) if name == "cuda" else torch.device(name)
    )


def _longest_context(config: EngineConfig, model_config: ModelConfig) -> int:
    if config.max_model_len is None:
        return model_config.max_context
    if config.max_model_len > model_config.max_context:
        raise InvalidRequest(
            f"max_model_len {config.max_model_len} is more than the {model_config.max_context} "
            "tokens that the model knows",
            param="max_model_len",
        )
    return config.max_model_len


def _layout(
    config: EngineConfig, model_config: ModelConfig, num_blocks: int, weights: DecoderWeights
) -> KVLayout:
    return KVLayout(
        num_layers=model_config.num_layers,
        num_blocks=num_blocks,
        block_size=config.block_size,
        num_kv_heads=model_config.num_kv_heads,
        head_dim=model_config.head_dim,
        dtype=weights.embedding.dtype,
        device=weights.embedding.device,
    )


def _num_blocks(
    config: EngineConfig, layout: KVLayout, longest: int, weights: DecoderWeights
) -> int:
    """Of the whole pool, the null block included."""
    if config.num_blocks is not None:
        return config.num_blocks + 1
    if config.kv_cache_bytes is not None:
        return max(1, config.kv_cache_bytes // layout.bytes_per_block) + 1
    num_wanted = config.max_num_seqs * -(-min(longest, _USUAL_CONTEXT) // config.block_size)
    if layout.device.type == "cuda":
        free_bytes, _ = torch.cuda.mem_get_info(layout.device)
        most = int(free_bytes * _CUDA_POOL_SHARE) // layout.bytes_per_block
        # What is left over serves the prefix cache.
        return max(1, min(4 * max(num_wanted, -(-longest // config.block_size)), most)) + 1
    most = max(_CPU_POOL_BYTES, weights.num_bytes // 4) // layout.bytes_per_block
    if config.max_model_len is not None:  # asked for: then one such request must fit
        most = max(most, -(-config.max_model_len // config.block_size))
    return max(1, min(num_wanted, most)) + 1


def _warm_up(runner: ModelRunner, max_model_len: int) -> None:
    """A prompt and one more token, in the first blocks: kernels are chosen, memory is touched."""
    layout = runner.attention.layout
    length = min(
        2 * layout.block_size, max_model_len - 1, (layout.num_blocks - 1) * layout.block_size - 1
    )
    if length < 1:
        return
    request = Request("warm-up", [0] * length, SamplingParams(temperature=0.0))
    request.block_table = list(range(1, min(4, layout.num_blocks)))
    for start, num_tokens in ((0, length), (length, 1)):
        output = runner.run(StepPlan((ScheduledSequence(request, start, num_tokens),)))
        request.output_token_ids.append(max(0, output.token_ids[request.request_id]))
