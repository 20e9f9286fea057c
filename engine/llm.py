"""LLM: the engine in a script.

from engine import LLM, SamplingParams

with LLM("path/to/model") as llm:
    for completion in llm.generate(["The capital of France is"], SamplingParams(max_tokens=8)):
        print(completion.text)
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import InvalidRequest
from engine.loading import load_engine_parts
from engine.sampling_params import SamplingParams

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from engine.outputs import EngineStats, RequestOutput, RequestTimings, RequestUsage
    from engine.request import FinishReason

Message: TypeAlias = "dict[str, Any]"  # {"role": ..., "content": ...}


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model wrote after one prompt. `error` says why when that is the finish reason."""

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    usage: RequestUsage
    timings: RequestTimings
    error: str = ""


class LLM:
    """Loads a model and keeps it until `close`; `options` are EngineConfig's.

    Raises ModelLoadError or KernelUnavailable.
    """

    def __init__(self, model: str | Path, **options: Any) -> None:
        config = EngineConfig(model=Path(model), **options)
        parts = load_engine_parts(config)
        self._tokenizer = parts.tokenizer
        self._chat_template = parts.chat_template
        self._max_requests = config.max_num_seqs + config.max_waiting
        self._engine = Engine(parts, config)
        self._engine.start()

    def generate(
        self,
        prompts: Sequence[str] | Sequence[Sequence[int]],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
    ) -> list[Completion]:
        """Continue each prompt (text, or token ids), in order; as many at once as fit. One set of
        parameters for all, or one for each.

        Raises InvalidRequest, PromptTooLong or EngineStopped; other requests are aborted then.
        """
        if isinstance(prompts, str):
            raise InvalidRequest("prompts is a list; one prompt is [prompt]", param="prompt")
        token_ids = [
            self.encode(prompt) if isinstance(prompt, str) else list(prompt) for prompt in prompts
        ]
        return self._run(token_ids, params)

    def chat(
        self,
        conversations: Sequence[Message] | Sequence[Sequence[Message]],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
    ) -> list[Completion]:
        """The assistant's next message in a conversation, or in each of several.

        Raises as `generate`, and InvalidRequest when the chat template refuses the messages.
        """
        rendered = [
            self._chat_template.render(messages, add_generation_prompt=True)
            for messages in _each(conversations)
        ]
        prompts = [self._tokenizer.encode(text, add_special_tokens=False) for text in rendered]
        return self._run(prompts, params)

    def encode(self, text: str) -> list[int]:
        """The token ids of a prompt, with those that the model wants around a text."""
        return self._tokenizer.encode(text, add_special_tokens=True)

    def stats(self) -> EngineStats:
        return self._engine.stats()

    def close(self) -> None:
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(
        self, prompts: list[list[int]], params: SamplingParams | Sequence[SamplingParams] | None
    ) -> list[Completion]:
        if params is None or isinstance(params, SamplingParams):
            params = [params or SamplingParams()] * len(prompts)
        if len(params) != len(prompts):
            raise InvalidRequest(f"{len(prompts)} prompts, {len(params)} sampling parameters")
        heard: SimpleQueue[RequestOutput] = SimpleQueue()
        waiting = deque(enumerate(zip(prompts, params, strict=True)))
        running: dict[str, tuple[int, list[RequestOutput]]] = {}
        done: dict[int, Completion] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._max_requests:
                    index, (prompt, sampling) = waiting.popleft()
                    running[self._engine.submit(prompt, sampling, heard.put)] = (index, [])
                output = heard.get()
                index, pieces = running[output.request_id]
                pieces.append(output)
                if output.finish_reason is not None:
                    done[index] = _completion(pieces)
                    del running[output.request_id]
        finally:
            for request_id in running:
                self._engine.abort(request_id)
        return [done[index] for index in range(len(prompts))]


def _each(
    conversations: Sequence[Message] | Sequence[Sequence[Message]],
) -> list[list[Message]]:
    """One conversation is a list of messages, several are a list of such lists."""
    messages: list[Message] = []
    several: list[list[Message]] = []
    for item in conversations:
        if isinstance(item, dict):
            messages.append(item)
        else:
            several.append(list(item))
    if messages and several:
        raise InvalidRequest("messages and conversations are mixed", param="messages")
    return [messages] if messages else several


def _completion(pieces: list[RequestOutput]) -> Completion:
    end = pieces[-1]
    assert end.finish_reason is not None
    assert end.timings is not None
    return Completion(
        text="".join(piece.text for piece in pieces),
        token_ids=tuple(token_id for piece in pieces for token_id in piece.token_ids),
        finish_reason=end.finish_reason,
        usage=end.usage,
        timings=end.timings,
        error=end.error,
    )
