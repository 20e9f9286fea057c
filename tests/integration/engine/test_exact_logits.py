"""The real model's logits, bit for bit, whatever is computed beside them and in whatever pieces.

`test_identical_outputs` compares tokens through the whole engine; here each of twenty cases (four
prompts, five random courses) compares every logit.
"""

import pytest
import torch

from engine.loading import EngineParts
from tests.unit.engine.step_driver import StepDriver

pytestmark = pytest.mark.slow

NUM_OUTPUT = 4
BUDGET = 128
TEXT = (
    "The relief valve of pump PX-200 opens at 3.5 bar and has to be checked once a year by a "
    "qualified person. Employees in the probation period may give notice of two weeks. "
)
LENGTHS = {"short": 3, "blocks": 32, "medium": 61, "long": 150}


@pytest.fixture(scope="module")
def prompts(parts: EngineParts) -> dict[str, list[int]]:
    text = parts.tokenizer.encode(TEXT * 6, add_special_tokens=False)
    return {name: text[10 : 10 + length] for name, length in LENGTHS.items()}


@pytest.fixture(scope="module")
def alone(parts: EngineParts, prompts: dict[str, list[int]]) -> dict[str, list[torch.Tensor]]:
    driver = StepDriver(parts.runner.decoder)
    return {name: driver.alone(name, prompt, NUM_OUTPUT) for name, prompt in prompts.items()}


@pytest.mark.parametrize("seed", range(5))
def test_logits_do_not_depend_on_the_course(
    parts: EngineParts,
    prompts: dict[str, list[int]],
    alone: dict[str, list[torch.Tensor]],
    seed: int,
) -> None:
    assert parts.is_exact
    driver = StepDriver(parts.runner.decoder, seed=seed)
    requests = [driver.request(name, prompt) for name, prompt in prompts.items()]
    driver.at_random(requests, NUM_OUTPUT, BUDGET, num_preemptions=1)
    for name, expected in alone.items():
        for actual, wanted in zip(driver.sampler.logits[name], expected, strict=True):
            assert torch.equal(actual, wanted), name
