"""How much of each prompt of a conversation the engine has in its cache already.

The real prompt assembly and the engine's own blocks and hashes, over a tokenizer of words.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from core.domain.generation import ChatMessage
from core.settings import Settings
from engine.cache.blocks import BlockPool
from engine.cache.sequence_blocks import SequenceBlocks
from engine.request import Request
from engine.sampling_params import SamplingParams
from query.answers.writing.given import GivenPassage
from query.answers.writing.prompting import PREFIX, Prompt, assemble
from tests.fakes.generator import FakeGenerator, render, tokens

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "recorded_conversation.json").read_text("utf-8")
)["turns"]
# Of each turn's prompt, in percent, when the conversation was recorded.
FLOORS = (0, 56, 61, 65, 69, 73)
BLOCK_SIZE = 16


@dataclass
class Cache:
    """The engine's prefix cache, which computes nothing."""

    blocks: SequenceBlocks
    words: dict[str, int]

    @classmethod
    def empty(cls) -> "Cache":
        return cls(SequenceBlocks(BlockPool(512, BLOCK_SIZE)), {})

    def ids(self, messages: Sequence[ChatMessage]) -> list[int]:
        found = tokens(render(messages, opens_answer=True))
        return [self.words.setdefault(word, len(self.words)) for word in found]

    def run(self, messages: Sequence[ChatMessage], answer: str, salt: bytes = b"a") -> float:
        """Compute a prompt and its answer; the percentage of the prompt that was cached."""
        shared = len(tokens(render(PREFIX, opens_answer=False)))
        request = Request("r", self.ids(messages), SamplingParams(), salt, shared)
        assert self.blocks.admit(request)
        cached = request.num_computed_tokens
        request.output_token_ids = [
            self.words.setdefault(word, len(self.words)) for word in tokens(answer)
        ]
        self.blocks.grow(request)
        self.blocks.commit(request, request.num_tokens)
        self.blocks.free(request)
        return 100 * cached / request.num_prompt_tokens


def prompts() -> list[Prompt]:
    """The prompt of each turn, with the turns before it as history."""
    generator = FakeGenerator()
    history: list[ChatMessage] = []
    found: list[Prompt] = []
    for turn in RECORDED:
        given = [
            GivenPassage(number, label, text, ())
            for number, (label, text) in enumerate(turn["passages"], 1)
        ]
        found.append(assemble(turn["question"], given, history, generator, Settings()))
        history += [
            ChatMessage("user", turn["question"]),
            ChatMessage("assistant", turn["answer"]),
        ]
    return found


def shares(
    cache: Cache, conversation: Sequence[Sequence[ChatMessage]], salt: bytes = b"a"
) -> list[float]:
    return [
        cache.run(messages, turn["answer"], salt)
        for messages, turn in zip(conversation, RECORDED, strict=True)
    ]


@pytest.fixture
def conversation() -> list[tuple[ChatMessage, ...]]:
    return [prompt.request.messages for prompt in prompts()]


def test_the_hit_rate_of_the_recorded_conversation_does_not_drop(
    conversation: list[tuple[ChatMessage, ...]],
) -> None:
    found = shares(Cache.empty(), conversation)
    assert len(found) == len(FLOORS) == 6
    assert all(share >= floor for share, floor in zip(found, FLOORS, strict=True)), found


def test_nothing_of_it_was_dropped_to_fit(
    conversation: list[tuple[ChatMessage, ...]],
) -> None:
    for number, messages in enumerate(conversation):
        assert len(messages) == len(PREFIX) + 2 * number + 1


def test_what_changes_with_every_turn_would_be_noticed(
    conversation: list[tuple[ChatMessage, ...]],
) -> None:
    """A date in the constant prefix, or passages before the history, fall below the floors."""
    dated = [
        (replace(PREFIX[0], content=f"Turn {number}. {PREFIX[0].content}"), *messages[1:])
        for number, messages in enumerate(conversation)
    ]
    early = [
        (*PREFIX, messages[-1], *messages[len(PREFIX) : -1], ChatMessage("user", "Question"))
        for messages in conversation
    ]
    for worse in (dated, early):
        found = shares(Cache.empty(), worse)
        assert any(share < floor for share, floor in zip(found, FLOORS, strict=True)), found


def test_another_tenant_shares_the_constant_prefix_and_no_more(
    conversation: list[tuple[ChatMessage, ...]],
) -> None:
    cache = Cache.empty()
    shares(cache, conversation)
    prefix = len(tokens(render(PREFIX, opens_answer=False)))
    found = cache.run(conversation[-1], "", salt=b"b")
    num_cached = round(found * len(cache.ids(conversation[-1])) / 100)
    assert prefix - BLOCK_SIZE < num_cached <= prefix
