"""What the server needs of a loaded engine: its public face, no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.config import EngineConfig
    from engine.outputs import EngineStats, RequestOutput
    from engine.sampling_params import SamplingParams


class TextEngine(Protocol):
    """`engine.engine.Engine`, or a fake of it in tests. Any thread may call any method."""

    @property
    def is_ready(self) -> bool:
        """Started, and neither closed nor dead."""
        ...

    def submit(
        self,
        prompt_token_ids: Sequence[int],
        sampling: SamplingParams,
        on_output: Callable[[RequestOutput], None],
        *,
        salt: bytes = b"",
        num_shared_prefix_tokens: int = 0,
    ) -> str:
        """Queue a request; returns its id. Raises InvalidRequest, PromptTooLong, QueueFull,
        EngineStopped. `on_output` is called in the engine's thread and must not block."""
        ...

    def abort(self, request_id: str) -> None:
        """Forget a request; nothing happens when it is over already."""
        ...

    def stats(self) -> EngineStats:
        """Its state now."""
        ...

    def close(self) -> None:
        """Stop the engine's thread."""
        ...


class Tokenizer(Protocol):
    """`engine.text.tokenizer.Tokenizer`. Its methods are called in one thread."""

    @property
    def vocab_size(self) -> int:
        """Ids below it are tokens."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Token ids."""
        ...


class ChatTemplate(Protocol):
    """`engine.text.chat_template.ChatTemplate`."""

    def render(self, messages: list[dict[str, Any]], *, add_generation_prompt: bool) -> str:
        """The prompt of a conversation. Raises InvalidRequest."""
        ...


@dataclass(frozen=True, slots=True)
class LoadedEngine:
    """A running engine and what it was loaded from. `chat_template` is None for a model without
    one. `cache_config`: facts for the metrics."""

    engine: TextEngine
    tokenizer: Tokenizer
    chat_template: ChatTemplate | None
    fingerprint: str
    max_model_len: int
    cache_config: Mapping[str, object] = field(default_factory=dict)


def load_engine(config: EngineConfig) -> LoadedEngine:
    """Load the weights and start the engine's thread. Raises ModelLoadError, KernelUnavailable."""
    from engine.engine import Engine
    from engine.loading import load_engine_parts

    parts = load_engine_parts(config)
    engine = Engine(parts, config)
    engine.start()
    return LoadedEngine(
        engine=engine,
        tokenizer=parts.tokenizer,
        chat_template=parts.chat_template,
        fingerprint=parts.fingerprint,
        max_model_len=parts.max_model_len,
        cache_config={
            "block_size": config.block_size,
            "num_gpu_blocks": parts.num_blocks,  # vLLM's name, on a CPU, too
            "cache_dtype": str(parts.dtype).removeprefix("torch."),
            "enable_prefix_caching": config.enable_prefix_caching,
        },
    )
