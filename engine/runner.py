"""ModelRunner: the middle beat of a step. Copies blocks, runs the decoder, samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.batch import build_batch
from engine.step import StepOutput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from engine.attention.base import AttentionBackend
    from engine.models.decoder import Decoder
    from engine.request import Request
    from engine.step import StepPlan

    class TokenSampler(Protocol):
        """`engine.sampling.sampler.Sampler`, or what a test puts in its place."""

        def sample(self, logits: torch.Tensor, requests: Sequence[Request]) -> list[int]:
            """[num_requests, vocab_size] float32 -> a token id for each."""
            ...


class ModelRunner:
    """Implements `engine.step.Runner`. Used by one thread at a time."""

    def __init__(
        self, decoder: Decoder, attention: AttentionBackend, sampler: TokenSampler
    ) -> None:
        self.decoder = decoder
        self.attention = attention
        self.sampler = sampler

    def run(self, plan: StepPlan) -> StepOutput:
        """Compute the KV of every scheduled token and sample where a sequence is complete."""
        batch = build_batch(plan, self.attention.layout.block_size, self.decoder.device)
        with torch.inference_mode():
            self.attention.copy_blocks(plan.copies)
            self.attention.prepare(batch.attention)
            logits = self.decoder.forward(
                batch.token_ids, batch.positions, self.attention, batch.sampled_rows
            )
            chosen = self.sampler.sample(logits, batch.sampling) if batch.sampling else []
        return StepOutput(
            {
                request.request_id: token_id
                for request, token_id in zip(batch.sampling, chosen, strict=True)
            }
        )
