"""Our decoder on the real SmolLM2 weights against transformers, which reads the same GGUF file by
its own code. In float32: what differs is the order of additions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from engine.attention.base import KVLayout
from engine.attention.registry import create_backend
from engine.batch import build_batch
from engine.models.assemble import assemble_weights
from engine.models.config import ModelConfig
from engine.models.decoder import Decoder
from engine.request import Request
from engine.runner import ModelRunner
from engine.sampling.sampler import Sampler
from engine.sampling_params import SamplingParams
from engine.step import ScheduledSequence, StepPlan
from engine.text.tokenizer import Tokenizer
from engine.weights.loading import open_checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NUM_STEPS = 64
TABLE = 24  # blocks of one request: room for the longest prompt and its output
MIN_COSINE = 0.9999
TIE = 1e-3  # of the two best logits: then either may come first
PROMPTS = (
    "The capital of France is",
    "def fibonacci(n):\n    ",
    "<|im_start|>user\nWhat is a relief valve?<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>system\nAnswer in one sentence.<|im_end|>\n<|im_start|>user\nWhy is the sky blue?"
    "<|im_end|>\n<|im_start|>assistant\n",
    "1, 2, 3, 4, 5, 6, 7,",
    "Die Kündigungsfrist beträgt drei Monate zum Quartalsende. Sie",
    "Pump PX-200 must be tested once a year. The test pressure is 3.5 bar. " * 12 + "The pump",
    '🙂 2024-01-01T00:00:00Z {"id": 17, "name": "',
)


@pytest.fixture(scope="module")
def gguf(smollm2: Path) -> Path:
    (found,) = smollm2.glob("*.gguf")
    return found


@pytest.fixture(scope="module")
def directory(gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Converted anew, in float32."""
    folder = tmp_path_factory.mktemp("converted")
    return Path(open_checkpoint(gguf, torch.float32, folder).directory)


@pytest.fixture(scope="module")
def prompts(directory: Path) -> list[list[int]]:
    tokenizer = Tokenizer.load(directory)
    return [tokenizer.encode(prompt, add_special_tokens=False) for prompt in PROMPTS]


@pytest.fixture(scope="module")
def runner(directory: Path) -> ModelRunner:
    checkpoint = open_checkpoint(directory, torch.float32)
    config = ModelConfig.from_hf(checkpoint.config)
    cpu = torch.device("cpu")
    decoder = Decoder(config, assemble_weights(config, checkpoint, cpu), 1024)
    layout = KVLayout(
        config.num_layers,
        1 + TABLE * len(PROMPTS),
        16,
        config.num_kv_heads,
        config.head_dim,
        torch.float32,
        cpu,
    )
    attention = create_backend("cpu", layout, config.num_query_heads, config.head_dim**-0.5)
    return ModelRunner(decoder, attention, Sampler(config.vocab_size, cpu))


@pytest.fixture(scope="module")
def oracle(gguf: Path) -> Any:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32
    )
    return model.eval()


@pytest.fixture(scope="module")
def outputs(runner: ModelRunner, prompts: list[list[int]]) -> list[list[int]]:
    """NUM_STEPS greedy tokens of every prompt: prefilled one by one, then decoded together."""
    requests = []
    for number, prompt in enumerate(prompts):
        request = Request(str(number), list(prompt), SamplingParams(temperature=0.0))
        request.block_table = list(range(1 + number * TABLE, 1 + (number + 1) * TABLE))
        run(runner, [ScheduledSequence(request, 0, len(prompt))])
        requests.append(request)
    for _ in range(NUM_STEPS - 1):
        run(runner, [ScheduledSequence(each, each.num_tokens - 1, 1) for each in requests])
    return [request.output_token_ids for request in requests]


def run(runner: ModelRunner, sequences: list[ScheduledSequence]) -> None:
    chosen = runner.run(StepPlan(tuple(sequences))).token_ids
    for sequence in sequences:
        sequence.request.output_token_ids.append(chosen[sequence.request.request_id])


def all_logits(runner: ModelRunner, prompt: list[int]) -> torch.Tensor:
    """[len(prompt), vocab_size]"""
    request = Request("request", list(prompt), SamplingParams(temperature=0.0))
    request.block_table = list(range(1, 1 + TABLE))
    plan = StepPlan((ScheduledSequence(request, 0, len(prompt)),))
    batch = build_batch(plan, 16, torch.device("cpu"))
    runner.attention.prepare(batch.attention)
    return runner.decoder.forward(
        batch.token_ids, batch.positions, runner.attention, range(len(prompt))
    )


def test_logits_at_every_position(
    runner: ModelRunner, oracle: Any, prompts: list[list[int]]
) -> None:
    lowest = 1.0
    for prompt in prompts:
        with torch.inference_mode():
            expected = oracle(torch.tensor([prompt])).logits[0]
        cosine = F.cosine_similarity(all_logits(runner, prompt), expected, dim=-1)
        assert cosine.shape == (len(prompt),)
        lowest = min(lowest, float(cosine.min()))
    assert lowest > MIN_COSINE


@pytest.mark.parametrize("number", range(len(PROMPTS)))
def test_greedy_tokens(
    outputs: list[list[int]], oracle: Any, prompts: list[list[int]], number: int
) -> None:
    """The oracle is fed our tokens; wherever it would have gone elsewhere, it was a tie, and there
    the comparison ends."""
    prompt, tokens = prompts[number], outputs[number]
    with torch.inference_mode():
        logits = oracle(torch.tensor([prompt + tokens[:-1]])).logits[0, len(prompt) - 1 :]
    assert logits.shape[0] == NUM_STEPS
    for step, (token, row) in enumerate(zip(tokens, logits, strict=True)):
        best = row.topk(2)
        if token != int(best.indices[0]):
            gap = float(best.values[0] - row[token])
            assert gap < TIE, f"step {step}: {token} instead of {int(best.indices[0])}, gap {gap}"
            return
