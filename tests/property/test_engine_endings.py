"""Whatever happens in whatever order, each request is told its end exactly once, and what it was
told before is what the model says alone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cache.blocks import BlockPool
from engine.cache.sequence_blocks import SequenceBlocks
from engine.errors import EngineStopped
from engine.outputs import RequestOutput
from engine.request import FinishReason, Request
from engine.sampling_params import SamplingParams
from engine.scheduling.scheduler import Scheduler, SchedulerLimits
from engine.step import NO_TOKEN, StepOutput, StepPlan
from engine.step_loop import StepLoop
from engine.text.tokenizer import Tokenizer
from engine.transcript import Transcript
from tests.fakes.engine_parts import Listener, byte_tokenizer
from tests.fakes.engine_runner import FakeRunner, continuation

NUM_BLOCKS, BLOCK_SIZE, VOCAB_SIZE, BUDGET = 8, 4, 50, 6

submits = st.tuples(
    st.just("submit"),
    st.integers(1, 12),  # prompt tokens; prompts are prefixes of each other
    st.sampled_from([1, 4, 12, 16]),  # max_tokens: a request may need the whole pool
    st.sampled_from(["plain", "plain", "plain", "raises", "masked"]),
)
aborts = st.tuples(st.just("abort"), st.integers(0, 12))
steps = st.tuples(st.just("steps"), st.integers(1, 9))
failures = st.just(("fail",))
interleavings = st.builds(
    list.__add__,
    st.lists(submits, min_size=2, max_size=6),
    st.lists(st.one_of(submits, aborts, steps, steps, failures), max_size=40),
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return byte_tokenizer(Path(tmp_path_factory.mktemp("tokenizer")))


class MoodyRunner(FakeRunner):
    """The fake model; it can fail after it has written all its KV, and masked requests get nothing
    after two tokens."""

    fails_next = False

    def run(self, plan: StepPlan) -> StepOutput:
        output = super().run(plan)
        if self.fails_next:
            self.fails_next = False
            raise ArithmeticError("the step fails")
        masked = {
            one.request.request_id: NO_TOKEN
            for one in plan.sequences
            if one.samples
            and one.request.request_id.startswith("masked")
            and len(one.request.output_token_ids) == 2
        }
        return StepOutput(output.token_ids | masked)


class Scene:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.pool = BlockPool(NUM_BLOCKS, BLOCK_SIZE)
        limits = SchedulerLimits(3, BUDGET, 999, max_waiting=99)
        self.scheduler = Scheduler(limits, SequenceBlocks(self.pool))
        self.runner = MoodyRunner(NUM_BLOCKS, BLOCK_SIZE, vocab_size=VOCAB_SIZE, pool=self.pool)
        self.ended: list[Request] = []
        self.loop = StepLoop(self.scheduler, self.runner, lambda: 0.0, self.ended.append)
        self.tokenizer = tokenizer
        self.requests: list[Request] = []
        self.listeners: list[Listener] = []
        self.num_calls: list[int] = []

    def submit(self, num_prompt_tokens: int, max_tokens: int, kind: str) -> None:
        index = len(self.requests)
        listener = Listener()
        calls = self.num_calls
        calls.append(0)

        def on_output(output: RequestOutput) -> None:
            calls[index] += 1
            if kind == "raises" and calls[index] == 2:
                raise ConnectionError("the reader is gone")
            listener(output)

        prompt = [position % 7 for position in range(num_prompt_tokens)]
        request = Request(f"{kind}{index}", prompt, SamplingParams(), max_output_tokens=max_tokens)
        self.requests.append(request)
        self.listeners.append(listener)
        self.loop.add(Transcript(request, self.tokenizer, on_output))

    def check(self) -> None:
        assert {id(one) for one in self.ended} == {id(one) for one in self.requests}
        assert len(self.ended) == len(self.requests)
        for request, listener, calls in zip(
            self.requests, self.listeners, self.num_calls, strict=True
        ):
            alone = continuation(request.prompt_token_ids, request.max_output_tokens, VOCAB_SIZE)
            assert listener.token_ids == alone[: len(listener.token_ids)]
            if request.request_id.startswith("raises") and calls == 2:
                assert [piece.finish_reason for piece in listener.pieces] == [None]
                continue
            end = listener.end
            if end.finish_reason is FinishReason.LENGTH:
                assert listener.token_ids == alone
            if end.error.startswith("no_token_allowed"):
                assert len(listener.token_ids) == 2
        self.scheduler.check_integrity()
        assert self.pool.num_referenced == self.scheduler.num_running == 0


@given(actions=interleavings, gives_up=st.booleans())
def test_each_request_ends_once(
    tokenizer: Tokenizer, actions: list[tuple[object, ...]], gives_up: bool
) -> None:
    scene = Scene(tokenizer)
    try:
        for action in actions:
            match action:
                case ("submit", int(prompt), int(max_tokens), str(kind)):
                    scene.submit(prompt, max_tokens, kind)
                case ("abort", int(index)) if index < len(scene.requests):
                    scene.loop.abort(scene.requests[index].request_id)
                case ("steps", int(count)):
                    for _ in range(count):
                        scene.loop.step()
                case ("fail",):
                    scene.runner.fails_next = True
            scene.scheduler.check_integrity()
        scene.runner.fails_next = False
        while not gives_up and scene.loop.step():
            pass
    except EngineStopped:
        gives_up = True
    if gives_up:
        scene.loop.abort_all()
    assert scene.loop.is_empty
    scene.check()
