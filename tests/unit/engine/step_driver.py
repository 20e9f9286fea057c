"""Drives a ModelRunner by hand: any order, any chunks, any company, blocks anywhere.

What the scheduler would do sensibly is done here at random, so that exactness is not owed to the
scheduler's habits. Logits are compared, not only tokens: a tiny model's argmax hides a lot.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from engine.models.decoder import Decoder
from engine.request import Request
from engine.runner import ModelRunner
from engine.sampling_params import SamplingParams
from engine.step import ScheduledSequence, StepPlan
from tests.unit.engine.attention.conformance import poison
from tests.unit.engine.models.tiny_models import build_backend

NUM_BLOCKS = 96
BLOCK_SIZE = 16


class RecordingSampler:
    """Greedy; keeps the logits of every sampled position by request."""

    def __init__(self) -> None:
        self.logits: dict[str, list[torch.Tensor]] = {}

    def sample(self, logits: torch.Tensor, requests: Sequence[Request]) -> list[int]:
        for row, request in zip(logits, requests, strict=True):
            self.logits.setdefault(request.request_id, []).append(row.clone())
        return [int(token_id) for token_id in logits.argmax(-1)]


class StepDriver:
    """One runner with a pool whose blocks are handed out in random order, and poisoned first."""

    def __init__(self, decoder: Decoder, *, seed: int = 0, backend: str = "cpu") -> None:
        self.random = random.Random(seed)
        self.sampler = RecordingSampler()
        attention = build_backend(
            decoder, name=backend, num_blocks=NUM_BLOCKS, block_size=BLOCK_SIZE
        )
        poison(attention, range(BLOCK_SIZE, NUM_BLOCKS * BLOCK_SIZE))
        self.runner = ModelRunner(decoder, attention, self.sampler)
        self._blank = list(range(1, NUM_BLOCKS))
        self.random.shuffle(self._blank)

    def request(self, name: str, prompt: Sequence[int]) -> Request:
        return Request(name, list(prompt), SamplingParams(temperature=0.0))

    def make_room(self, request: Request, end: int) -> None:
        while len(request.block_table) * BLOCK_SIZE < end:
            request.block_table.append(self._blank.pop())

    def step(
        self, sequences: Sequence[tuple[Request, int]], copies: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Compute this many more tokens of each request, and append what is sampled."""
        scheduled = []
        for request, num_tokens in sequences:
            start = request.num_computed_tokens
            self.make_room(request, start + num_tokens)
            scheduled.append(ScheduledSequence(request, start, num_tokens))
        output = self.runner.run(StepPlan(tuple(scheduled), tuple(copies)))
        for sequence in scheduled:
            request = sequence.request
            samples = sequence.samples
            request.num_computed_tokens = sequence.end
            if samples:
                request.output_token_ids.append(output.token_ids[request.request_id])

    def preempt(self, request: Request) -> None:
        """Recompute later: the blocks go back and nothing is computed any more."""
        self._blank = [*request.block_table, *self._blank]
        request.block_table = []
        request.num_computed_tokens = 0

    def alone(self, name: str, prompt: Sequence[int], num_tokens: int) -> list[torch.Tensor]:
        """The logits of one request with the engine to itself, its prompt in one piece."""
        request = self.request(name, prompt)
        while len(request.output_token_ids) < num_tokens:
            self.step([(request, request.num_uncomputed_tokens)])
        return self.sampler.logits[name]

    def at_random(
        self, requests: Sequence[Request], num_tokens: int, budget: int, *, num_preemptions: int = 0
    ) -> None:
        """Until all have `num_tokens` output tokens: random company, random chunks, and so many
        preemptions at random steps."""
        while True:
            active = [r for r in requests if len(r.output_token_ids) < num_tokens]
            if not active:
                return
            if num_preemptions and self.random.random() < 0.3:
                num_preemptions -= 1
                self.preempt(self.random.choice(active))
            chosen = self.random.sample(active, self.random.randint(1, len(active)))
            left = budget
            plan = []
            for request in chosen:
                most = min(left, request.num_uncomputed_tokens)
                if most:
                    plan.append((request, self.random.randint(1, most)))
                    left -= plan[-1][1]
            self.step(sorted(plan, key=lambda entry: entry[1] > 1))
