"""Aborts, failing callbacks and failing steps: who is hurt, and who is not."""

from pathlib import Path

import pytest

from engine.errors import EngineStopped
from engine.outputs import RequestOutput
from engine.request import FinishReason
from engine.sampling_params import SamplingParams
from engine.step import StepPlan
from tests.fakes.engine_parts import (
    LONG,
    Listener,
    ScriptedRunner,
    byte_tokenizer,
    complete,
    held,
    running_engine,
    says,
)

# ---------------------------------------------------------------------------- aborts


def test_aborts_in_the_queue_in_prefill_and_in_decode(tmp_path: Path) -> None:
    runner = held()
    with running_engine(tmp_path, runner, max_num_seqs=2, max_num_batched_tokens=16) as engine:
        decoding, prefilling, queued = Listener(), Listener(), Listener()
        decode_id = engine.submit([1, 2], LONG, decoding)
        runner.wait_for_step()
        prefill_id = engine.submit([3] * 60, LONG, prefilling)
        queued_id = engine.submit([4], LONG, queued)
        runner.allow()
        plan = runner.wait_for_step()  # one decode, and a first chunk of the long prompt
        assert [(one.num_tokens, one.samples) for one in plan.sequences] == [(1, True), (15, False)]

        engine.abort(queued_id)
        engine.abort(prefill_id)
        runner.allow()
        assert len(runner.wait_for_step().sequences) == 1  # the results of the step were kept
        assert queued.end.finish_reason is prefilling.end.finish_reason is FinishReason.ABORT
        assert (queued.token_ids, prefilling.token_ids) == ([], [])
        assert len(decoding.token_ids) == 2

        engine.abort(decode_id)
        engine.abort(decode_id)
        engine.abort("unknown")
        runner.let_go()
        assert decoding.wait().finish_reason is FinishReason.ABORT
        assert decoding.text == "xxx"  # with the step that ran when it was aborted
        assert complete(engine, SamplingParams(max_tokens=2)).text == "xx"
        assert engine.stats().num_used_blocks == 0


def test_a_callback_that_raises_hurts_only_its_own_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls = 0

    def broken(output: RequestOutput) -> None:
        nonlocal calls
        calls += 1
        raise ConnectionError("gone")

    runner = held()
    with running_engine(tmp_path, runner) as engine:
        good = Listener()
        engine.submit([1], LONG, broken)
        engine.submit([2], SamplingParams(max_tokens=5), good)
        runner.let_go()
        good.wait()
        assert good.text == "xxxxx"
        assert engine.stats().num_running == engine.stats().num_used_blocks == 0
        assert engine.is_ready
    assert calls == 1
    assert "gone" in caplog.text


def test_a_callback_may_abort_and_submit(tmp_path: Path) -> None:
    second = Listener()
    with running_engine(tmp_path, says("abcdef")) as engine:
        first = Listener()

        def on_output(output: RequestOutput) -> None:
            first(output)
            if len(first.token_ids) == 1 and not output.finish_reason:
                engine.abort(output.request_id)
                engine.submit([1], LONG, second)

        engine.submit([1], LONG, on_output)
        assert first.wait().finish_reason is FinishReason.ABORT
        assert second.wait().finish_reason is FinishReason.STOP


# ---------------------------------------------------------------------------- failing steps


def test_a_failing_step_costs_its_requests_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runner = held()
    with running_engine(tmp_path, runner, max_num_seqs=1) as engine:
        lost, next_one = Listener(), Listener()
        engine.submit(b"p" * 40, LONG, lost)
        runner.wait_for_step()
        engine.submit(b"p" * 40, SamplingParams(max_tokens=4), next_one)
        runner.fail_next = 1
        runner.let_go()
        assert lost.wait().finish_reason is FinishReason.ERROR
        assert lost.end.error == "step_failed: the step raised ArithmeticError"
        assert next_one.wait().finish_reason is FinishReason.LENGTH
        assert next_one.end.usage.num_cached_tokens == 0  # the failed step is in no prefix cache
        assert engine.is_ready
        assert engine.stats().num_used_blocks == 0
    assert "the scripted step fails" in caplog.text
    assert "not in order" not in caplog.text


def test_steps_that_keep_failing_stop_the_engine(tmp_path: Path) -> None:
    runner = held()
    with running_engine(tmp_path, runner, max_num_seqs=1) as engine:
        listeners = [Listener() for _ in range(5)]
        for one in listeners:
            engine.submit([1], LONG, one)
        runner.fail_next = 99
        runner.let_go()
        errors = [one.wait().error for one in listeners]
        engine.close(timeout_s=30)
        assert runner.num_steps == 3
        assert [error.split(":")[0] for error in errors] == [
            *["step_failed"] * 3,
            *["engine_stopped"] * 2,
        ]
        assert not engine.is_ready
        with pytest.raises(EngineStopped, match="3 steps in a row failed"):
            engine.submit([1], LONG, Listener())


def test_failures_are_counted_in_a_row(tmp_path: Path) -> None:
    runner = says("ab")
    with running_engine(tmp_path, runner) as engine:
        for _ in range(4):
            runner.fail_next = 2
            reasons = [complete(engine, LONG).end.finish_reason for _ in range(3)]
            assert reasons == [FinishReason.ERROR, FinishReason.ERROR, FinishReason.STOP]
        assert engine.is_ready


def test_books_that_do_not_add_up_are_logged_when_idle(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runner = ScriptedRunner(lambda _: b"ab", is_held=True)
    with running_engine(tmp_path, runner, clock=lambda: 0.0) as engine:  # checks take no time
        engine._pool.take()  # a leak
        listener = Listener()
        engine.submit([1], LONG, listener)
        runner.wait_for_step()
        caplog.clear()  # it may have been idle before
        runner.let_go()
        listener.wait()
        assert complete(engine, LONG).text == "ab"
        engine.close(timeout_s=30)
    assert "the block pool is not in order" in caplog.text


def test_the_books_are_checked_for_a_hundredth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, num_checks = 1000.0, 0

    def takes_two_seconds() -> None:
        nonlocal now, num_checks
        now += 2.0
        num_checks += 1

    with running_engine(tmp_path, says(""), clock=lambda: now, is_started=False) as engine:
        monkeypatch.setattr(engine._scheduler, "check_integrity", takes_two_seconds)
        for _ in range(5):
            engine._steps.check_integrity()
        assert num_checks == 1
        now += 199.0
        engine._steps.check_integrity()
        assert num_checks == 1
        now += 1.5
        engine._steps.check_integrity()
        assert num_checks == 2


def test_with_nothing_to_do_the_thread_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = says("ab")
    with running_engine(tmp_path, runner, is_started=False) as engine:
        num_calls = 0
        schedule = engine._scheduler.schedule

        def counted() -> StepPlan | None:
            nonlocal num_calls
            num_calls += 1
            return schedule()

        monkeypatch.setattr(engine._scheduler, "schedule", counted)
        engine.start()
        for _ in range(5):
            complete(engine, LONG)
            byte_tokenizer(tmp_path)  # takes milliseconds
        engine.close(timeout_s=30)
        assert num_calls <= runner.num_steps + 5 + 2  # once before each wait, at start and end
