"""The real model writes the same tokens whatever the cache, the chunks, the batch and the pool."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from engine.config import EngineConfig
from engine.engine import Engine
from engine.loading import EngineParts
from engine.outputs import EngineStats
from engine.request import FinishReason
from engine.sampling_params import SamplingParams
from tests.fakes.engine_parts import Listener

Case: TypeAlias = tuple[list[int], SamplingParams]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NUM_TOKENS = 6
NUM_LONG = 24  # more than two blocks: in a small pool they are in each other's way
PATIENCE_S = 600.0  # a busy machine is not a failure
TEXT = (
    "The relief valve of pump PX-200 opens at 3.5 bar and has to be checked once a year by a "
    "qualified person. Die Kündigungsfrist beträgt drei Monate zum Quartalsende. Employees in the "
    "probation period may give notice of two weeks. def area(radius): return 3.14159 * radius ** 2 "
    "Water boils at 100 degrees Celsius at sea level; on Mount Everest it boils at about 71. "
    "Le contrat prend effet le 1er janvier 2024 🙂. Each invoice is due within thirty days. "
)
QUESTIONS = (
    "What is the capital of Italy?",
    "Write a haiku about the sea.",
    "List three prime numbers.",
    "Explain how a bicycle stays upright.",
)


def cases(parts: EngineParts) -> list[Case]:
    """Twenty: chats, prompts that are prefixes of each other, among them whole numbers of blocks,
    and seeded sampling."""
    greedy = SamplingParams(max_tokens=NUM_TOKENS, temperature=0.0, ignore_eos=True)
    text = parts.tokenizer.encode(TEXT * 2, add_special_tokens=False)
    lengths = (1, 5, 15, 16, 17, 32, 48, 61, 96, 128, 150)
    long = replace(greedy, max_tokens=NUM_LONG)
    found = [(text[:length], long if length < 20 else greedy) for length in lengths]
    for question in QUESTIONS:
        chat = parts.chat_template.render(
            [{"role": "user", "content": question}], add_generation_prompt=True
        )
        found.append((parts.tokenizer.encode(chat, add_special_tokens=False), greedy))
    found.append((text[40:110], replace(greedy, repetition_penalty=1.2, frequency_penalty=0.3)))
    sampled = replace(greedy, temperature=0.9, seed=7)
    found += [(text[:48], sampled), (text[:48], replace(sampled, seed=8, top_k=40))]
    found += [(text[:20], replace(sampled, top_p=0.8)), (text[20:84], replace(sampled, min_p=0.1))]
    return found


def run(
    parts: EngineParts, chosen: Sequence[Case], *, is_alone: bool = False, **options: Any
) -> tuple[list[list[int]], EngineStats]:
    """Tokens of each case, one after the other or all at once, from an engine of their own."""
    num_blocks = options.pop("num_blocks", 400)
    config = EngineConfig(Path(), max_num_seqs=8, **options)
    engine = Engine(replace(parts, num_blocks=num_blocks + 1), config)
    listeners = [Listener() for _ in chosen]
    engine.start()
    try:
        for (prompt, sampling), listener in zip(chosen, listeners, strict=True):
            engine.submit(prompt, sampling, listener)
            if is_alone:
                listener.wait(PATIENCE_S)
        ends = [listener.wait(PATIENCE_S) for listener in listeners]
        assert {end.finish_reason for end in ends} == {FinishReason.LENGTH}
        return [listener.token_ids for listener in listeners], engine.stats()
    finally:
        engine.close()


@pytest.fixture(scope="module")
def chosen(parts: EngineParts) -> list[Case]:
    found = cases(parts)
    assert len(found) == 20
    return found


@pytest.fixture(scope="module")
def alone(parts: EngineParts, chosen: list[Case]) -> list[list[int]]:
    """What each case gives by itself, in one chunk, without a cache."""
    tokens, stats = run(parts, chosen, is_alone=True, enable_prefix_caching=False)
    assert stats.prefix_cache_hits == 0
    assert len({tuple(one) for one in tokens}) > 12  # they are no constants
    return tokens


def test_this_machine_has_an_exact_path(parts: EngineParts) -> None:
    assert parts.is_exact


def test_with_batch_mates(parts: EngineParts, chosen: list[Case], alone: list[list[int]]) -> None:
    tokens, _ = run(parts, chosen, enable_prefix_caching=False)
    assert tokens == alone


def test_with_the_prefix_cache(
    parts: EngineParts, chosen: list[Case], alone: list[list[int]]
) -> None:
    """Every case twice: the second finds all of its prompt, also where it is whole blocks."""
    tokens, stats = run(parts, [*chosen, *chosen])
    assert tokens == [*alone, *alone]
    num_whole = sum(len(prompt) // 16 * 16 - (len(prompt) % 16 == 0) for prompt, _ in chosen)
    assert stats.prefix_cache_hits >= num_whole


@pytest.mark.parametrize("budget", [16, 48, 256])
def test_in_chunks_of_any_size(
    parts: EngineParts, chosen: list[Case], alone: list[list[int]], budget: int
) -> None:
    tokens, stats = run(parts, chosen, max_num_batched_tokens=budget)
    assert tokens == alone
    assert budget // 2 < max(stats.steps_by_tokens) <= budget


def test_with_preemption(parts: EngineParts, chosen: list[Case], alone: list[list[int]]) -> None:
    """A pool that holds the longest case and little more; with the cache, what is computed again
    is partly found again."""
    for is_caching in (False, True):
        tokens, stats = run(
            parts,
            chosen,
            num_blocks=10,
            max_num_batched_tokens=64,
            enable_prefix_caching=is_caching,
        )
        assert tokens == alone
        assert stats.num_preemptions > 0
        assert stats.num_used_blocks == 0
