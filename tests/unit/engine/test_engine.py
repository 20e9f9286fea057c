"""The engine from outside: where outputs end, and what is refused at the door."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.errors import InvalidRequest, PromptTooLong, QueueFull
from engine.request import FinishReason, Request
from engine.sampling_params import SamplingParams
from engine.step import NO_TOKEN
from tests.fakes.engine_parts import (
    END,
    LONG,
    VOCAB_SIZE,
    Listener,
    ScriptedRunner,
    complete,
    held,
    running_engine,
    says,
)

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
