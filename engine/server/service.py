"""The server's state: which engine there is, who is being answered, whether it is stopping."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from engine.errors import EngineError
from engine.metrics import EngineMetrics
from engine.server.errors import ApiError, invalid, loading, stopping

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.outputs import EngineStats
    from engine.server.loaded import LoadedEngine

_CLOSE_S: Final = 3.0
_CHECK_S: Final = 0.5
log = logging.getLogger(__name__)


class State(StrEnum):
    LOADING = "loading"
    READY = "ready"
    STOPPING = "stopping"
    FAILED = "failed"


class Stoppable(Protocol):
    """A request that is being answered; `engine.server.running.RunningRequest`."""

    def fail(self, error: ApiError) -> None:
        """Let it end with this error."""
        ...


class Service:
    """Lives in the event loop; only loading and tokenizing happen elsewhere.

    Args:
        model_name: the name that requests ask for.
        load: makes the engine; called once, in a thread of its own.
        has_aliases: metrics once more under vLLM's names.
    """

    def __init__(
        self, model_name: str, load: Callable[[], LoadedEngine], *, has_aliases: bool = False
    ) -> None:
        self.model_name = model_name
        self.created_s = int(time.time())
        self.state = State.LOADING
        self.failure: BaseException | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self.metrics = EngineMetrics(model_name, self._stats, has_aliases=has_aliases)
        self.running: set[Stoppable] = set()
        self._load = load
        self._loaded: LoadedEngine | None = None
        # One thread: the tokenizer is not meant for more, and one keeps up with the engine.
        self._tokenizing = ThreadPoolExecutor(1, thread_name_prefix="tokenize")

    @property
    def was_loaded(self) -> bool:
        """Whether there has been an engine."""
        return self._loaded is not None

    def start(self) -> None:
        """Begin to load; call in the event loop."""
        loop = asyncio.get_running_loop()

        def load() -> None:
            try:
                loaded = self._load()
            except BaseException as error:  # noqa: BLE001 - told to whoever runs the server
                _tell(loop, self._fail, error)
            else:
                _tell(loop, self._accept, loaded)

        threading.Thread(target=load, name="load-engine", daemon=True).start()

    def require(self) -> LoadedEngine:
        """The engine. Raises ApiError 503 while it loads, when it failed and when it stops."""
        self.check_engine()
        if self._loaded is None and self.state is State.LOADING:
            raise loading()
        if self._loaded is None or self.state is not State.READY:
            raise stopping()
        return self._loaded

    def check_model(self, name: str) -> None:
        """Raises ApiError 404 for another model than ours."""
        if name != self.model_name:
            raise ApiError(
                404,
                f"The model '{name[:200]}' does not exist; this server has '{self.model_name}'",
                code="model_not_found",
                param="model",
            )

    async def encode_chat(
        self, messages: list[dict[str, Any]], *, add_generation_prompt: bool
    ) -> list[int]:
        """Token ids of a conversation. Raises InvalidRequest, ApiError."""
        loaded = self.require()
        template = loaded.chat_template
        if template is None:
            raise invalid("this model has no chat template; use /v1/completions", "messages")

        def encode() -> list[int]:
            text = template.render(messages, add_generation_prompt=add_generation_prompt)
            # a template writes the special tokens itself
            return loaded.tokenizer.encode(text, add_special_tokens=False)

        return await self._in_tokenizing_thread(encode)

    async def encode_text(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Token ids of a text."""
        loaded = self.require()
        return await self._in_tokenizing_thread(
            lambda: loaded.tokenizer.encode(text, add_special_tokens=add_special_tokens)
        )

    def check_engine(self) -> None:
        """Fail when the engine's thread has ended by itself: this process is of no use any more,
        and whoever watches it starts another one."""
        if self.state is State.READY and self._loaded and not self._loaded.engine.is_ready:
            self._fail(EngineError("the engine's thread has ended"))

    def begin_stop(self, grace_s: float) -> None:
        """Take nothing new; what still runs after `grace_s` ends with an error."""
        if self.state in (State.READY, State.LOADING):
            self.state = State.STOPPING
        asyncio.get_running_loop().call_later(grace_s, self._end_running)

    async def close(self) -> None:
        """Stop the engine; call when nobody is answered any more."""
        self._end_running()
        self._tokenizing.shutdown(wait=False, cancel_futures=True)
        if self._loaded is not None:
            closing = threading.Thread(target=self._loaded.engine.close, daemon=True)
            closing.start()
            await asyncio.to_thread(closing.join, _CLOSE_S)

    async def watch(self) -> None:
        """Check the engine until cancelled; a dead one may never be asked again."""
        while True:
            await asyncio.sleep(_CHECK_S)
            self.check_engine()

    async def _in_tokenizing_thread(self, work: Callable[[], list[int]]) -> list[int]:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._tokenizing, work)
        except RuntimeError as error:
            if self.state is State.READY:
                raise
            raise stopping() from error

    def _accept(self, loaded: LoadedEngine) -> None:
        self._loaded = loaded
        self.metrics.set_cache_config(loaded.cache_config)
        if self.state is State.LOADING:
            self.state = State.READY
            log.info("engine.ready", extra={"facts": {"model": self.model_name}})

    def _fail(self, error: BaseException) -> None:
        self.state = State.FAILED
        self.failure = error
        self.on_failure()

    def _end_running(self) -> None:
        for running in list(self.running):
            running.fail(stopping())

    def _stats(self) -> EngineStats | None:
        return None if self._loaded is None else self._loaded.engine.stats()


def _tell(loop: asyncio.AbstractEventLoop, told: Callable[[Any], None], value: Any) -> None:
    try:
        loop.call_soon_threadsafe(told, value)
    except RuntimeError:  # the server stopped while the model was loading
        log.info("engine.loaded_too_late")
