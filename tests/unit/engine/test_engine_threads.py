"""Closing, and many callers at once: each request still ends once."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EngineStopped, QueueFull
from engine.outputs import RequestOutput
from engine.request import FinishReason
from engine.sampling_params import SamplingParams
from tests.fakes.engine_parts import (
    LONG,
    Listener,
    held,
    running_engine,
    says,
)
from tests.fakes.engine_runner import FakeRunner, continuation

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
