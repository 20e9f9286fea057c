"""A plan as flat tensors."""

import torch

from engine.batch import build_batch
from engine.request import Request
from engine.sampling_params import SamplingParams
from engine.step import ScheduledSequence, StepPlan


def request(name: str, prompt: list[int], output: list[int], table: list[int]) -> Request:
    made = Request(name, prompt, SamplingParams())
    made.output_token_ids = output
    made.block_table = table
    return made


def test_lays_sequences_one_after_the_other() -> None:
    decode = request("decode", [10, 11, 12], [13, 14], [7, 3])
    middle = request("middle", [20, 21, 22, 23, 24, 25], [], [2, 9])
    last = request("last", [30, 31, 32], [33], [5])
    plan = StepPlan(
        (
            ScheduledSequence(decode, 4, 1),
            ScheduledSequence(middle, 2, 3),
            ScheduledSequence(last, 1, 3),  # recomputes part of the prompt, and its output
        )
    )
    batch = build_batch(plan, 4, torch.device("cpu"))
    assert batch.token_ids.tolist() == [14, 22, 23, 24, 31, 32, 33]
    assert batch.positions.tolist() == [4, 2, 3, 4, 1, 2, 3]
    assert batch.attention.slots.tolist() == [12, 10, 11, 36, 21, 22, 23]
    assert list(batch.attention.query_starts) == [0, 1, 4, 7]
    assert list(batch.attention.context_lens) == [5, 5, 4]
    assert list(batch.attention.block_tables) == [[7, 3], [2, 9], [5]]
    assert batch.sampled_rows == [0, 6]
    assert batch.sampling == [decode, last]


def test_nothing_samples_in_the_middle_of_a_prompt() -> None:
    plan = StepPlan((ScheduledSequence(request("one", [1, 2, 3], [], [1]), 0, 2),))
    batch = build_batch(plan, 4, torch.device("cpu"))
    assert batch.sampled_rows == []
    assert batch.sampling == []
