"""The engine from outside: what callers are told, whatever happens to their requests."""

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import EngineStopped, InvalidRequest, PromptTooLong, QueueFull
from engine.outputs import RequestOutput
from engine.request import FinishReason, Request
from engine.sampling_params import SamplingParams
from engine.step import NO_TOKEN, StepPlan
from tests.fakes.engine_parts import (
    END,
    VOCAB_SIZE,
    Listener,
    ScriptedRunner,
    byte_tokenizer,
    running_engine,
)
from tests.fakes.engine_runner import FakeRunner, continuation

LONG = SamplingParams(max_tokens=200, temperature=0.0)


def says(text: str) -> ScriptedRunner:
    return ScriptedRunner(lambda _: text.encode())


def held() -> ScriptedRunner:
    """Talks for ever, one allowed step at a time."""
    return ScriptedRunner(lambda _: b"x" * 500, is_held=True)


def complete(engine: Engine, sampling: SamplingParams, prompt: Sequence[int] = b"ask") -> Listener:
    listener = Listener()
    engine.submit(list(prompt), sampling, listener)
    listener.wait()
    return listener


# ---------------------------------------------------------------------------- where it ends


def test_ends_at_the_end_token_which_has_no_text(tmp_path: Path) -> None:
    with running_engine(tmp_path, says("Grüße 🙂")) as engine:
        heard = complete(engine, LONG)
    assert heard.text == "Grüße 🙂"
    assert heard.token_ids == [*"Grüße 🙂".encode(), END]
    assert heard.end.finish_reason is FinishReason.STOP
    assert heard.end.usage.num_completion_tokens == len(heard.token_ids)
    assert all("�" not in piece.text for piece in heard.pieces)


def test_ends_at_max_tokens(tmp_path: Path) -> None:
    with running_engine(tmp_path, says("abcdef")) as engine:
        heard = complete(engine, SamplingParams(max_tokens=3))
        half = complete(engine, SamplingParams(max_tokens=1), b"?")
    assert (heard.text, heard.end.finish_reason) == ("abc", FinishReason.LENGTH)
    assert (half.text, half.end.finish_reason) == ("a", FinishReason.LENGTH)


@pytest.mark.parametrize("max_tokens", [None, 600])
def test_ends_where_the_context_does(tmp_path: Path, max_tokens: int | None) -> None:
    with running_engine(tmp_path, says("x" * 600), num_blocks=3) as engine:  # 32 tokens
        heard = complete(engine, SamplingParams(max_tokens=max_tokens), b"a" * 20)
        assert len(heard.token_ids) == 12
        assert heard.end.finish_reason is FinishReason.LENGTH
        with pytest.raises(PromptTooLong, match="32 tokens in all"):
            engine.submit([1] * 32, LONG, Listener())


def test_a_half_character_at_the_end_is_shown_as_one(tmp_path: Path) -> None:
    with running_engine(tmp_path, says("a🙂")) as engine:
        heard = complete(engine, SamplingParams(max_tokens=3))
    assert heard.text == "a�"


@pytest.mark.parametrize(
    ("include_stop", "text"), [(False, "one two "), (True, "one two END")], ids=["without", "with"]
)
def test_a_stop_string_ends_the_output_over_token_borders(
    tmp_path: Path, include_stop: bool, text: str
) -> None:
    sampling = SamplingParams(max_tokens=50, stop=("nope", "END"), include_stop=include_stop)
    with running_engine(tmp_path, says("one two ENDING")) as engine:
        heard = complete(engine, sampling)
    assert heard.text == text
    assert heard.end.finish_reason is FinishReason.STOP
    assert bytes(heard.token_ids) == b"one two END"


def test_what_only_looked_like_a_stop_string_is_shown(tmp_path: Path) -> None:
    with running_engine(tmp_path, says("an EN")) as engine:
        heard = complete(engine, SamplingParams(max_tokens=50, stop=("END",)))
        cut = complete(engine, SamplingParams(max_tokens=4, stop=("END",)))
    assert (heard.text, heard.end.finish_reason) == ("an EN", FinishReason.STOP)
    assert (cut.text, cut.end.finish_reason) == ("an E", FinishReason.LENGTH)


def test_no_stop_string_is_looked_for_before_min_tokens(tmp_path: Path) -> None:
    sampling = SamplingParams(max_tokens=50, stop=("b",), min_tokens=2)
    with running_engine(tmp_path, says("ababab")) as engine:
        heard = complete(engine, sampling)
    assert heard.text == "aba"


def test_stop_tokens_and_ignored_end_tokens(tmp_path: Path) -> None:
    with running_engine(tmp_path, ScriptedRunner(lambda _: [*b"ab", END, *b"cd"])) as engine:
        stopped = complete(engine, SamplingParams(max_tokens=9, stop_token_ids=(ord("b"),)))
        through = complete(engine, SamplingParams(max_tokens=5, ignore_eos=True))
    assert (stopped.text, stopped.token_ids) == ("a", [*b"ab"])
    assert (through.text, through.token_ids) == ("abcd", [*b"ab", END, *b"cd"])


def test_a_request_for_which_no_token_is_allowed_ends_as_an_error(tmp_path: Path) -> None:
    def script(request: Request) -> Sequence[int]:
        return [*b"ab", NO_TOKEN] if request.request_id == "masked" else b"abcde"

    runner = ScriptedRunner(script, is_held=True)
    with running_engine(tmp_path, runner) as engine:
        masked, other = Listener(), Listener()
        engine.submit([1], LONG, masked, request_id="masked")
        engine.submit([2], LONG, other)
        runner.let_go()
        assert masked.wait().finish_reason is FinishReason.ERROR
        assert masked.end.error.startswith("no_token_allowed")
        assert masked.token_ids == [*b"ab"]
        assert masked.end.usage.num_completion_tokens == 2
        assert other.wait().finish_reason is FinishReason.STOP
        assert other.text == "abcde"


# ---------------------------------------------------------------------------- at the door


@pytest.mark.parametrize(
    ("prompt", "sampling", "param"),
    [
        ([], LONG, "prompt"),
        ([VOCAB_SIZE], LONG, "prompt"),
        ([-1], LONG, "prompt"),
        ([1], SamplingParams(max_tokens=3, min_tokens=4), "min_tokens"),
    ],
)
def test_what_can_never_work_is_refused_at_once(
    tmp_path: Path, prompt: list[int], sampling: SamplingParams, param: str
) -> None:
    with running_engine(tmp_path, says("")) as engine:
        with pytest.raises(InvalidRequest) as refused:
            engine.submit(prompt, sampling, Listener())
        assert refused.value.param == param
        with pytest.raises(InvalidRequest, match="shared prefix"):
            engine.submit([1], LONG, Listener(), num_shared_prefix_tokens=2)


def test_a_full_queue_refuses_until_somebody_leaves(tmp_path: Path) -> None:
    runner = held()
    with running_engine(tmp_path, runner, max_num_seqs=1, max_waiting=2) as engine:
        listeners = [Listener() for _ in range(3)]
        first, _, last = [
            engine.submit([1], LONG, one, request_id=f"r{n}") for n, one in enumerate(listeners)
        ]
        with pytest.raises(QueueFull) as refused:
            engine.submit([1], LONG, Listener())
        assert 1.0 <= refused.value.retry_after_s <= 60.0
        with pytest.raises(InvalidRequest, match="already"):
            engine.submit([1], LONG, Listener(), request_id=first)
        runner.wait_for_step()
        assert (engine.stats().num_running, engine.stats().num_waiting) == (1, 2)
        engine.abort(last)
        runner.allow()
        listeners[2].wait()
        engine.submit([1], LONG, Listener(), request_id=last)  # its place and its name are free


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


# ---------------------------------------------------------------------------- closing


@pytest.mark.parametrize("drain", [False, True])
def test_closing_ends_every_request(tmp_path: Path, drain: bool) -> None:
    runner = held()
    with running_engine(tmp_path, runner, max_num_seqs=1) as engine:
        listeners = [Listener() for _ in range(3)]
        for one in listeners:
            engine.submit([1], SamplingParams(max_tokens=3), one)
        runner.wait_for_step()
        closing = threading.Thread(target=engine.close, kwargs={"drain": drain, "timeout_s": 30})
        closing.start()
        while engine.is_ready:
            pass
        with pytest.raises(EngineStopped, match="stopping"):
            engine.submit([1], LONG, Listener())
        runner.let_go()
        closing.join(30)
        wanted = FinishReason.LENGTH if drain else FinishReason.ABORT
        assert [one.end.finish_reason for one in listeners] == [wanted] * 3
        engine.close()  # once more
        engine.abort("whatever")


def test_an_engine_that_never_started_ends_what_was_submitted(tmp_path: Path) -> None:
    with running_engine(tmp_path, says("a"), is_started=False) as engine:
        listener = Listener()
        engine.submit([1], LONG, listener)
        assert not engine.is_ready
        engine.close(timeout_s=30)
        assert listener.end.finish_reason is FinishReason.ABORT


def test_a_callback_may_close_the_engine(tmp_path: Path) -> None:
    with running_engine(tmp_path, says("abc")) as engine:
        listener = Listener()

        def on_output(output: RequestOutput) -> None:
            listener(output)
            engine.close()

        engine.submit([1], LONG, on_output)
        assert listener.wait().finish_reason is FinishReason.ABORT


# ---------------------------------------------------------------------------- many at once


def fake_model(num_blocks: int) -> FakeRunner:
    return FakeRunner(num_blocks, 16, vocab_size=256)


def test_many_submitters_each_get_their_own_output(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Eight threads, a pool that is too small for what they ask at once, a shared prefix."""
    system = [*range(40)]
    told: dict[int, Listener] = {}
    options: dict[str, Any] = {"max_num_seqs": 6, "max_num_batched_tokens": 24}
    with running_engine(tmp_path, fake_model(20), num_blocks=20, **options) as engine:

        def submitter(number: int) -> None:
            for turn in range(5):
                listener = told[number * 10 + turn] = Listener()
                engine.submit(_prompt(system, number, turn), _sampling(number), listener)
                if turn % 2:
                    listener.wait()

        in_threads(submitter, 8)
        for listener in told.values():
            listener.wait()
        stats = engine.stats()
        engine.close(timeout_s=30)
    for key, listener in told.items():
        number, turn = divmod(key, 10)
        prompt = _prompt(system, number, turn)
        wanted = continuation(prompt, _sampling(number).max_tokens or 0, 256)
        assert listener.token_ids == wanted
    assert len(told) == 40
    assert (stats.num_running, stats.num_waiting, stats.num_used_blocks) == (0, 0, 0)
    assert stats.num_preemptions > 0
    assert stats.prefix_cache_hits > 0
    assert max(stats.steps_by_tokens) <= 24
    assert caplog.records == []


def _prompt(system: list[int], number: int, turn: int) -> list[int]:
    return [*system, number, turn] if number % 2 else [number, turn, *range(number * 7)]


def _sampling(number: int) -> SamplingParams:
    return SamplingParams(max_tokens=20 + number * 9, ignore_eos=True)


def in_threads(target: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=target, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_submits_aborts_and_a_close_from_many_threads_end_each_request_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    told: list[Listener] = []
    options: dict[str, Any] = {
        "max_num_seqs": 4,
        "max_num_batched_tokens": 16,
        "max_waiting": 10,
    }
    with running_engine(tmp_path, fake_model(20), num_blocks=20, **options) as engine:

        def submitter(number: int) -> None:
            for turn in range(12):
                listener = Listener()
                try:
                    request_id = engine.submit([number, turn], LONG, listener)
                except (QueueFull, EngineStopped):
                    continue
                told.append(listener)
                if turn % 3 == 0:
                    engine.abort(request_id)
                if number == 3 and turn == 9:
                    engine.close(drain=False, timeout_s=30)

        in_threads(submitter, 6)
        engine.close(timeout_s=30)
        reasons = {listener.wait().finish_reason for listener in told}
    assert FinishReason.ABORT in reasons
    assert FinishReason.ERROR not in reasons
    assert caplog.records == []
