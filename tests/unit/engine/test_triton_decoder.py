"""A decoder runs on the Triton kernels (in the interpreter) as on the reference backend."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import LLM, SamplingParams
from engine.attention.base import KVLayout
from engine.models.decoder import Decoder
from engine.runner import ModelRunner
from tests.unit.engine.attention.triton_process import TritonProcess, triton_process
from tests.unit.engine.models.tiny_directory import model_directory
from tests.unit.engine.models.tiny_models import LLAMA, build_decoder
from tests.unit.engine.step_driver import BLOCK_SIZE, NUM_BLOCKS, StepDriver

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="triton is made for Linux only, and so is the backend"
)

ROOT = Path(__file__).resolve().parents[3]
NUM_OUTPUT = 3
PROMPTS = {
    "short": [7, 3, 9],
    "block": [(5 * at) % 199 for at in range(BLOCK_SIZE)],
    "two blocks": [(11 * at + 1) % 199 for at in range(BLOCK_SIZE + 3)],
}


@pytest.fixture(scope="module")
def interpreter() -> Iterator[TritonProcess]:
    with triton_process() as process:
        yield process


def on_triton(decoder: Decoder, interpreter: TritonProcess, seed: int) -> StepDriver:
    driver = StepDriver(decoder, seed=seed, backend="reference")
    config = decoder.config
    layout = KVLayout(
        config.num_layers,
        NUM_BLOCKS,
        BLOCK_SIZE,
        config.num_kv_heads,
        config.head_dim,
        decoder.dtype,
        decoder.device,
    )
    attention = interpreter.create(layout, config.num_query_heads, config.head_dim**-0.5, None)
    driver.runner = ModelRunner(decoder, attention, driver.sampler)
    return driver


def test_company_chunks_and_preemption_on_triton_as_alone_on_the_reference(
    interpreter: TritonProcess,
) -> None:
    """Random steps: decodes and chunks in one batch, blocks anywhere; two layers and the tiles
    that the backend itself chooses."""
    decoder = build_decoder(LLAMA | {"num_hidden_layers": 2})
    reference = StepDriver(decoder, backend="reference")
    expected = {name: reference.alone(name, prompt, NUM_OUTPUT) for name, prompt in PROMPTS.items()}

    driver = on_triton(decoder, interpreter, seed=3)
    requests = [driver.request(name, prompt) for name, prompt in PROMPTS.items()]
    driver.at_random(requests, NUM_OUTPUT, budget=24, num_preemptions=1)
    for name, logits in expected.items():
        actual = torch.stack(driver.sampler.logits[name])
        torch.testing.assert_close(actual, torch.stack(logits), rtol=0.0, atol=2e-4)
        assert actual.argmax(-1).tolist() == torch.stack(logits).argmax(-1).tolist()


def test_a_copied_tail_continues_alike(interpreter: TritonProcess) -> None:
    """Two requests over one prompt, the second on a copy of the block they would both write."""
    decoder = build_decoder(LLAMA | {"num_hidden_layers": 2})
    driver = on_triton(decoder, interpreter, seed=4)
    prompt = PROMPTS["two blocks"]
    first = driver.request("first", prompt)
    driver.step([(first, len(prompt))])
    second = driver.request("second", [*prompt, first.output_token_ids[0]])
    second.block_table = [first.block_table[0]]
    driver.make_room(second, len(prompt))
    second.num_computed_tokens = len(prompt)
    driver.step([(first, 1), (second, 1)], [(first.block_table[1], second.block_table[1])])
    driver.step([(second, 1), (first, 1)])
    continued = driver.sampler.logits
    assert second.block_table[1] != first.block_table[1]
    for one, other in zip(continued["first"][1:], continued["second"], strict=True):
        assert torch.equal(one, other)


def test_the_whole_engine_writes_alike(tmp_path: Path) -> None:
    """From a model directory, through the registry, in a process of its own."""
    model = model_directory(tmp_path / "model", LLAMA | {"num_hidden_layers": 2})
    prompts = ["What is the relief pressure?", "What is A", "B"]
    options: dict[str, Any] = {
        "device": "cpu",
        "dtype": "float32",
        "threads": 1,
        "max_num_batched_tokens": 24,
    }
    greedy: dict[str, Any] = {"max_tokens": 3, "temperature": 0.0, "ignore_eos": True}
    code = f"""
import json
from engine import LLM, SamplingParams
with LLM({str(model)!r}, attention_backend="triton", **{options}) as llm:
    written = llm.generate({prompts}, SamplingParams(**{greedy}))
print(json.dumps([one.token_ids for one in written]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
    )
    assert done.returncode == 0, done.stderr
    with LLM(model, attention_backend="reference", **options) as llm:
        expected = llm.generate(prompts, SamplingParams(**greedy))
    assert json.loads(done.stdout) == [list(one.token_ids) for one in expected]
