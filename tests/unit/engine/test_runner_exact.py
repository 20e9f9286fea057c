"""A request's logits are the same bits whatever is computed beside it, in whatever pieces."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.models.decoder import Decoder
from tests.unit.engine.models.tiny_models import LLAMA, LLAMA3, QWEN2, build_decoder
from tests.unit.engine.step_driver import BLOCK_SIZE, StepDriver

BUDGET = 64
NUM_OUTPUT = 6
MODELS = {"llama": LLAMA, "llama3": LLAMA3, "qwen2": QWEN2}
PROMPTS = {
    "short": [7, 3, 9],
    "block": [(5 * at) % 199 for at in range(BLOCK_SIZE)],
    "two blocks and one": [(11 * at + 1) % 199 for at in range(2 * BLOCK_SIZE + 1)],
    "long": [(3 * at + 2) % 199 for at in range(60)],
}


@pytest.fixture(scope="module", params=["llama-float32", "llama-bfloat16", "llama3-bfloat16",
                                        "qwen2-float32"])  # fmt: skip
def decoder(request: pytest.FixtureRequest) -> Decoder:
    name, dtype = request.param.split("-")
    decoder = build_decoder(MODELS[name], dtype=getattr(torch, dtype))
    assert decoder.make_exact(BUDGET, 8)
    return decoder


@pytest.fixture(scope="module")
def alone(decoder: Decoder) -> dict[str, list[torch.Tensor]]:
    driver = StepDriver(decoder, seed=99)
    return {name: driver.alone(name, prompt, NUM_OUTPUT) for name, prompt in PROMPTS.items()}


def assert_same(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert len(actual) == len(expected)
    for position, (one, other) in enumerate(zip(actual, expected, strict=True)):
        assert torch.equal(one, other), f"output token {position}: {(one - other).abs().max()}"


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32))
def test_chunks_company_preemption_and_places_do_not_matter(
    decoder: Decoder, alone: dict[str, list[torch.Tensor]], seed: int
) -> None:
    driver = StepDriver(decoder, seed=seed)
    requests = [driver.request(name, prompt) for name, prompt in PROMPTS.items()]
    driver.at_random(requests, NUM_OUTPUT, BUDGET, num_preemptions=2)
    for name, expected in alone.items():
        assert_same(driver.sampler.logits[name], expected)


@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 59, 60])
def test_any_chunk_size(decoder: Decoder, alone: dict[str, list[torch.Tensor]], chunk: int) -> None:
    driver = StepDriver(decoder)
    request = driver.request("long", PROMPTS["long"])
    while len(request.output_token_ids) < NUM_OUTPUT:
        driver.step([(request, min(chunk, request.num_uncomputed_tokens))])
    assert_same(driver.sampler.logits["long"], alone["long"])


@pytest.mark.parametrize("num_cached", [16, 32, 48])
def test_blocks_of_another_request_serve_as_well(
    decoder: Decoder, alone: dict[str, list[torch.Tensor]], num_cached: int
) -> None:
    """A prefix-cache hit: the first blocks were computed for somebody else, in company."""
    driver = StepDriver(decoder)
    first = driver.request("first", [*PROMPTS["long"][:50], 1, 2, 3])
    mate = driver.request("mate", PROMPTS["block"])
    driver.step([(first, 13), (mate, 16)])
    driver.step([(mate, 1), (first, 40)])
    request = driver.request("long", PROMPTS["long"])
    request.block_table = first.block_table[: num_cached // BLOCK_SIZE]
    request.num_computed_tokens = num_cached
    driver.at_random([request], NUM_OUTPUT, BUDGET)
    assert_same(driver.sampler.logits["long"], alone["long"])


def test_a_full_hit_recomputes_the_last_token_in_a_copy(
    decoder: Decoder, alone: dict[str, list[torch.Tensor]]
) -> None:
    """A prompt of whole blocks that are all cached: the last block is copied, its last token
    computed again, and the original stays as it was."""
    driver = StepDriver(decoder)
    first = driver.request("first", PROMPTS["block"])
    driver.step([(first, BLOCK_SIZE)])
    before = driver.runner.attention.gather(0, first.block_table)
    request = driver.request("block", PROMPTS["block"])
    driver.make_room(request, BLOCK_SIZE)
    request.num_computed_tokens = BLOCK_SIZE - 1
    driver.step([(request, 1)], copies=[(first.block_table[0], request.block_table[0])])
    driver.at_random([request], NUM_OUTPUT, BUDGET)
    assert_same(driver.sampler.logits["block"], alone["block"])
    after = driver.runner.attention.gather(0, first.block_table)
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_the_reference_backend_agrees_up_to_rounding(decoder: Decoder) -> None:
    driver = StepDriver(decoder, backend="reference")
    expected = StepDriver(decoder).alone("long", PROMPTS["long"], 1)[0]
    actual = driver.alone("long", PROMPTS["long"], 1)[0]
    tolerance = 1e-4 if decoder.dtype is torch.float32 else 0.25
    torch.testing.assert_close(actual, expected, rtol=0.0, atol=tolerance)


def test_without_padding_the_bits_do_depend_on_the_company() -> None:
    """These tests can fail: on this model a decode alone differs from one among forty rows unless
    rows are padded. (Only that some padding was found necessary is asserted, since on some
    processors none is.)"""
    plain = build_decoder(LLAMA)
    padded = build_decoder(LLAMA)
    padded.make_exact(BUDGET, 8)
    driver = StepDriver(plain)
    request = driver.request("long", PROMPTS["long"])
    while len(request.output_token_ids) < NUM_OUTPUT:
        driver.step([(request, 1)])
    one_by_one = driver.sampler.logits["long"]
    whole = StepDriver(plain).alone("long", PROMPTS["long"], NUM_OUTPUT)
    differs = any(not torch.equal(one, other) for one, other in zip(one_by_one, whole, strict=True))
    assert differs == (padded.row_padding.sizes[0] > 1)
