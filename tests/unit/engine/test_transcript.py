"""What a caller is told of times and tokens."""

from pathlib import Path

import pytest

from engine.outputs import RequestUsage
from engine.request import FinishReason, Request
from engine.sampling_params import SamplingParams
from engine.transcript import Transcript
from tests.fakes.engine_parts import END, Listener, byte_tokenizer


def test_times_are_differences_of_stamps_of_one_clock(tmp_path: Path) -> None:
    request = Request("r", [1, 2], SamplingParams(), arrival_s=100.0, max_output_tokens=9)
    request.end_token_ids = frozenset({END})
    listener = Listener()
    transcript = Transcript(request, byte_tokenizer(tmp_path), listener)
    request.scheduled_s = 100.5
    for token_id, now in ((ord("a"), 102.0), (ord("b"), 102.25)):
        request.output_token_ids.append(token_id)
        assert transcript.add(token_id, now) == (chr(token_id), None)
        assert transcript.tell(chr(token_id), (token_id,))
    request.output_token_ids.append(END)
    assert transcript.add(END, 103.0) == ("", FinishReason.STOP)
    transcript.tell_end(FinishReason.STOP, now=103.5, token_ids=(END,))
    timings = listener.end.timings
    assert timings is not None
    assert (timings.queue_s, timings.first_token_s, timings.total_s) == (0.5, 2.0, 3.5)
    assert timings.inter_token_s == (0.25, 0.75)
    assert listener.end.usage == RequestUsage(2, 0, 3)
    assert all(piece.timings is None for piece in listener.pieces[:-1])


@pytest.mark.parametrize("was_scheduled", [False, True])
def test_what_did_not_happen_has_no_time(tmp_path: Path, was_scheduled: bool) -> None:
    request = Request("r", [1], SamplingParams(), arrival_s=5.0)
    request.scheduled_s = 6.0 if was_scheduled else None
    listener = Listener()
    Transcript(request, byte_tokenizer(tmp_path), listener).tell_end(FinishReason.ABORT, now=7.0)
    timings = listener.end.timings
    assert timings is not None
    assert timings.queue_s == (1.0 if was_scheduled else None)
    assert (timings.first_token_s, timings.total_s, timings.inter_token_s) == (None, 2.0, ())
