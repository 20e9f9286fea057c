"""Any mix of add, abort, preempt, finish and step, on pools that are too small: the books add up
after every step, nothing is written that others can see, everything ends, and each output is what
the model writes alone."""

from itertools import chain

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.errors import PromptTooLong
from engine.request import FinishReason, Request, RequestStatus
from tests.scheduler_harness import SchedulerHarness

# A few prompts share long prefixes, as questions with one system prompt and popular passages do.
SYSTEM = [1, 2, 3, 4, 5, 6, 7, 8]
PASSAGES = [[10 + i] * 3 + [20 + i] * 3 for i in range(3)]

rag_prompts = st.builds(
    lambda num_system, passages, question: [*SYSTEM[:num_system], *chain(*passages), *question],
    st.sampled_from([4, 8]),
    st.lists(st.sampled_from(PASSAGES), max_size=3),
    st.lists(st.integers(30, 31), min_size=1, max_size=2),
)
# Whole blocks of one token, so that many are cached to the last token.
short_prompts = st.integers(1, 8).map(lambda num_tokens: [7] * num_tokens)

salts = st.sampled_from([b"", b"tenant-a", b"tenant-b"])


class SchedulerMachine(RuleBasedStateMachine):
    """`usable_blocks` and `seats` say how tight the world is."""

    usable_blocks = st.integers(8, 40)
    seats = st.integers(1, 6)
    block_sizes = st.sampled_from([1, 2, 4])
    prompts = rag_prompts | short_prompts

    @initialize(data=st.data(), budget=st.integers(0, 24))
    def start(self, data: st.DataObject, budget: int) -> None:
        seats = data.draw(self.seats)
        self.world = SchedulerHarness(
            data.draw(self.usable_blocks),
            block_size=data.draw(self.block_sizes),
            max_num_seqs=seats,
            budget=seats + budget,
            max_overtakes=data.draw(st.integers(1, 4)),
            growth_tokens=data.draw(st.sampled_from([0, 1, 4])),
            enable_prefix_caching=data.draw(st.sampled_from([True, True, True, False])),
            continuous=data.draw(st.sampled_from([True, True, True, False])),
        )

    @rule(data=st.data(), num_requests=st.integers(1, 4), salt=salts)
    def add(self, data: st.DataObject, num_requests: int, salt: bytes) -> None:
        for _ in range(num_requests):
            prompt, max_output = data.draw(self.prompts), data.draw(st.integers(1, 12))
            fits = len(prompt) + max_output <= self.world.scheduler.max_request_tokens
            try:
                self.world.add(
                    prompt,
                    max_output,
                    salt=salt,
                    num_shared=data.draw(st.sampled_from([0, 4, 8, 100])),
                    priority=data.draw(st.sampled_from([0, 0, 1])),
                )
            except PromptTooLong:
                assert not fits
            else:
                assert fits

    @rule(num_steps=st.integers(1, 6))
    def step(self, num_steps: int) -> None:
        for _ in range(num_steps):
            self.world.step()

    @precondition(lambda self: self.world.scheduler.requests)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        self.world.abort(self._any_request(data))

    @precondition(lambda self: self.world.scheduler.requests)
    @rule(data=st.data())
    def abort_during_a_step(self, data: st.DataObject) -> None:
        plan = self.world.schedule()
        output = self.world.runner.run(plan)
        victim = self._any_request(data)
        self.world.abort(victim)
        sampled = self.world.scheduler.complete(plan, output)
        assert victim not in [request for request, _ in sampled]
        self.world.finish_full(sampled)

    @precondition(lambda self: self.world.scheduler.requests)
    @rule()
    def lose_a_step(self) -> None:
        """The runner raised before it had done anything: the plan is thrown away."""
        self.world.schedule()

    @precondition(lambda self: self.world.scheduler.num_running)
    @rule(data=st.data())
    def preempt(self, data: st.DataObject) -> None:
        running = [
            request
            for request in self.world.scheduler.requests
            if request.status is RequestStatus.RUNNING
        ]
        self.world.scheduler.preempt(data.draw(st.sampled_from(running)))

    @precondition(lambda self: self.world.scheduler.requests)
    @rule(data=st.data())
    def stop_early(self, data: st.DataObject) -> None:
        self.world.finish(self._any_request(data), FinishReason.STOP)

    @rule()
    def forget_cached(self) -> None:
        self.world.pool.forget_cached()

    @invariant()
    def books_add_up(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.drain()

    def _any_request(self, data: st.DataObject) -> Request:
        return data.draw(st.sampled_from(self.world.scheduler.requests))


class PoolSmallerThanBatchMachine(SchedulerMachine):
    """Fewer blocks than seats: a full batch cannot exist, and the pool is always the limit."""

    usable_blocks = st.integers(4, 7)
    seats = st.integers(8, 12)
    block_sizes = st.sampled_from([2, 4])
    prompts = short_prompts


TestScheduler = SchedulerMachine.TestCase
TestScheduler.settings = settings(max_examples=80, stateful_step_count=40)
TestPoolSmallerThanBatch = PoolSmallerThanBatchMachine.TestCase
TestPoolSmallerThanBatch.settings = settings(max_examples=80, stateful_step_count=40)
