"""A scheduler with a fake runner, driven as the engine drives it, and checked at every step."""

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache

from engine.cache.blocks import NULL_BLOCK, BlockPool
from engine.cache.sequence_blocks import SequenceBlocks
from engine.request import FinishReason, Request, RequestStatus
from engine.sampling_params import SamplingParams
from engine.scheduling.scheduler import Scheduler, SchedulerLimits
from engine.step import StepPlan
from tests.fakes.engine_runner import POISON, FakeRunner, continuation, kv_of_prefix

VOCAB_SIZE = 50


@lru_cache(maxsize=4096)
def expected_output(prompt: tuple[int, ...], num_tokens: int) -> tuple[int, ...]:
    """What the model writes when nothing is cached, batched, chunked or preempted."""
    return tuple(continuation(prompt, num_tokens, VOCAB_SIZE))


class SchedulerHarness:
    """`num_blocks`: usable ones, without the null block. Time is a counter: one tick a reading."""

    def __init__(
        self,
        num_blocks: int = 64,
        *,
        block_size: int = 4,
        max_num_seqs: int = 8,
        budget: int = 16,
        max_model_len: int = 10_000,
        max_waiting: int = 10_000,
        max_overtakes: int = 8,
        growth_tokens: int = 4,
        enable_prefix_caching: bool = True,
        continuous: bool = True,
    ) -> None:
        ticks = itertools.count()
        self.clock: Callable[[], float] = lambda: float(next(ticks))
        self.limits = SchedulerLimits(
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=budget,
            max_model_len=max_model_len,
            max_waiting=max_waiting,
            max_overtakes=max_overtakes,
            growth_tokens=growth_tokens,
            continuous=continuous,
        )
        self.pool = BlockPool(num_blocks + 1, block_size)
        self.blocks = SequenceBlocks(
            self.pool, enable_prefix_caching=enable_prefix_caching, model_salt=b"fake"
        )
        self.scheduler = Scheduler(self.limits, self.blocks, clock=self.clock)
        self.runner = FakeRunner(
            num_blocks + 1, block_size, vocab_size=VOCAB_SIZE, pool=self.pool, max_num_tokens=budget
        )
        self.ended: list[Request] = []
        self._ids = itertools.count()

    # ------------------------------------------------------------------------- what happens

    def add(
        self,
        prompt: Sequence[int],
        max_output: int = 4,
        *,
        salt: bytes = b"",
        num_shared: int = 0,
        priority: int = 0,
    ) -> Request:
        request = Request(
            request_id=f"r{next(self._ids)}",
            prompt_token_ids=list(prompt),
            sampling=SamplingParams(),
            salt=salt,
            num_shared_prefix_tokens=num_shared,
            priority=priority,
            arrival_s=self.clock(),
            max_output_tokens=max_output,
        )
        self.scheduler.add(request)
        return request

    def schedule(self) -> StepPlan:
        """The next plan; there must be one while there are requests."""
        plan = self.scheduler.schedule()
        assert plan is not None, "there are requests, and nothing is scheduled"
        return plan

    def step(self) -> StepPlan | None:
        """One step of the engine; None when there was nothing to do."""
        if not self.scheduler.requests:
            assert self.scheduler.schedule() is None
            return None
        plan = self.schedule()
        self.check()
        self.run(plan)
        return plan

    def run(self, plan: StepPlan) -> list[tuple[Request, int]]:
        """The second and third beat, then the end of those that have all their output."""
        sampled = self.scheduler.complete(plan, self.runner.run(plan))
        self.finish_full(sampled)
        self.check()
        return sampled

    def finish_full(self, sampled: list[tuple[Request, int]]) -> None:
        """End those that just got their last token, as the engine does."""
        for request, token_id in sampled:
            assert request.output_token_ids[-1] == token_id
            if len(request.output_token_ids) == request.max_output_tokens:
                self.finish(request)

    def finish(self, request: Request, reason: FinishReason = FinishReason.LENGTH) -> None:
        self.scheduler.finish(request, reason)
        assert request.status is RequestStatus.FINISHED
        self.ended.append(request)

    def abort(self, request: Request) -> None:
        assert self.scheduler.abort(request.request_id) is request
        self.ended.append(request)

    def drain(self, max_steps: int = 100_000) -> int:
        """Run until nothing is left; returns the number of steps."""
        for num_steps in range(max_steps):
            if self.step() is None:
                self.check_drained()
                return num_steps
        raise AssertionError(f"still busy after {max_steps} steps: no progress")

    # ------------------------------------------------------------------------ what must hold

    def check(self) -> None:
        self.scheduler.check_integrity()
        assert self.scheduler.num_running <= self.limits.max_num_seqs
        assert (self.runner.kv[NULL_BLOCK] == POISON).all(), "the null block was written"
        for request in self.scheduler.requests:
            self._check_output(request)
            self._check_salts(request)
            assert request.num_computed_tokens < request.num_tokens
            assert (request.status is RequestStatus.RUNNING) == bool(request.block_table)

    def check_drained(self) -> None:
        self.check()
        assert self.scheduler.num_running == self.scheduler.num_waiting == 0
        assert self.pool.num_referenced == 0, "blocks have leaked"
        self.check_cached_kv()
        for request in self.ended:
            self._check_output(request)
            if request.finish_reason is FinishReason.LENGTH:
                assert len(request.output_token_ids) == request.max_output_tokens
            assert not request.block_table

    def check_cached_kv(self) -> None:
        """Every block that can be found holds the KV of the tokens that its chain spells."""
        contents = {
            name: (block, self.pool.content(block)) for name, block in self.pool.registered_hashes()
        }
        for block, content in contents.values():
            assert content is not None
            token_ids, parent = content.token_ids, content.parent_hash
            while parent != self.blocks.root_hash:
                above = contents[parent][1]
                assert above is not None
                token_ids, parent = above.token_ids + token_ids, above.parent_hash
            kv = kv_of_prefix(token_ids)[-self.pool.block_size :]
            assert self.runner.kv[block].tolist() == kv

    def _check_output(self, request: Request) -> None:
        expected = expected_output(tuple(request.prompt_token_ids), request.max_output_tokens)
        output = tuple(request.output_token_ids)
        assert output == expected[: len(output)], "the output depends on how it was scheduled"

    def _check_salts(self, request: Request) -> None:
        """What a request holds is its own, or lies inside its shared prefix."""
        num_shared = min(request.num_shared_prefix_tokens, request.num_prompt_tokens)
        for index, block in enumerate(request.block_table):
            if content := self.pool.content(block):
                is_shared = (index + 1) * self.pool.block_size <= num_shared
                assert content.salt == (b"" if is_shared else request.salt)
