"""An engine without weights: scripted replies, one token (a UTF-8 byte) a step, in its own thread.

It keeps the public face and the rules that the server relies on: a queue with a cap, chunked
prefill, blocks that come and go, a prefix cache with salts, abort between steps, each request told
its end exactly once. A test may hold it at any step.
"""

from __future__ import annotations

import codecs
import itertools
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.errors import EngineStopped, InvalidRequest, PromptTooLong, QueueFull
from engine.outputs import EngineStats, RequestOutput, RequestTimings, RequestUsage
from engine.request import FinishReason
from engine.sampling_params import SamplingParams
from engine.server.loaded import LoadedEngine

BLOCK_SIZE = 16
MAX_MODEL_LEN = 2_048
FINGERPRINT = "sha256:0123456789abcdef"
VOCAB_SIZE = 258
BOS = 256

Reply = Callable[[str], str]


def echo(prompt: str) -> str:
    """The default script."""
    return f"you said {prompt.strip().splitlines()[-1]}"


class ByteTokenizer:
    """A token is a byte; the one special token begins a text."""

    vocab_size = VOCAB_SIZE

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return [BOS] * add_special_tokens + list(text.encode())


class PlainTemplate:
    """`role: content` lines, then the opened answer. Refuses what a test asks it to."""

    def render(self, messages: list[dict[str, Any]], *, add_generation_prompt: bool) -> str:
        if any(message["content"] == "refuse me" for message in messages):
            raise InvalidRequest("the template refuses this conversation", param="messages")
        lines = [f"{message['role']}: {message['content']}\n" for message in messages]
        return "".join(lines) + "assistant:\n" * add_generation_prompt


def last_user_words(prompt: str) -> str:
    """What the last user line of a `PlainTemplate` prompt says."""
    return [line for line in prompt.splitlines() if line.startswith("user: ")][-1][6:]


def echo_user(prompt: str) -> str:
    """A script for conversations."""
    return echo(last_user_words(prompt)) if "user: " in prompt else echo(prompt)


@dataclass(eq=False)
class FakeRequest:
    """One submitted request; tests look at what came through."""

    request_id: str
    prompt_token_ids: list[int]
    sampling: SamplingParams
    salt: bytes
    num_shared_prefix_tokens: int
    on_output: Callable[[RequestOutput], None]
    script: list[int]
    script_reason: FinishReason
    output_token_ids: list[int] = field(default_factory=list)
    num_computed_tokens: int = 0
    num_cached_tokens: int = 0
    decoder: Any = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))

    @property
    def num_tokens(self) -> int:
        return len(self.prompt_token_ids) + len(self.output_token_ids)

    @property
    def num_blocks(self) -> int:
        return -(-self.num_computed_tokens // BLOCK_SIZE)

    @property
    def usage(self) -> RequestUsage:
        return RequestUsage(
            len(self.prompt_token_ids), self.num_cached_tokens, len(self.output_token_ids)
        )


class FakeEngine:
    """
    Args:
        reply: from the prompt's text to the whole output.
        max_num_seqs, max_waiting: as in EngineConfig.
        chunk: prompt tokens computed in one step.
    """

    def __init__(
        self,
        reply: Reply = echo_user,
        *,
        max_num_seqs: int = 2,
        max_waiting: int = 8,
        chunk: int = 64,
    ) -> None:
        self.submitted: list[FakeRequest] = []
        self.is_closed = False
        self._reply = reply
        self._max_num_seqs, self._max_waiting, self._chunk = max_num_seqs, max_waiting, chunk
        self._waiting: deque[FakeRequest] = deque()
        self._running: list[FakeRequest] = []
        self._aborted: set[str] = set()
        self._cache: set[tuple[bytes, tuple[int, ...]]] = set()
        self._changed = threading.Condition()
        self._steps_allowed: float = float("inf")
        self._fails_next = False
        self._is_dead = False
        self._counts: Counter[str] = Counter()
        self._steps_by_tokens: Counter[int] = Counter()
        self._ids = itertools.count(1)
        self._thread = threading.Thread(target=self._own, daemon=True)

    # ------------------------------------------------------------------- as the real one

    @property
    def is_ready(self) -> bool:
        return not self._is_dead and not self.is_closed

    def start(self) -> None:
        self._thread.start()

    def submit(
        self,
        prompt_token_ids: Sequence[int],
        sampling: SamplingParams,
        on_output: Callable[[RequestOutput], None],
        *,
        salt: bytes = b"",
        num_shared_prefix_tokens: int = 0,
    ) -> str:
        if not prompt_token_ids:
            raise InvalidRequest("the prompt has no tokens", param="prompt")
        if max(prompt_token_ids) >= VOCAB_SIZE:
            raise InvalidRequest("a prompt token is out of the vocabulary", param="prompt")
        if len(prompt_token_ids) >= MAX_MODEL_LEN:
            raise PromptTooLong("the prompt is too long", param="prompt")
        with self._changed:
            if not self.is_ready:
                raise EngineStopped("the engine has ended")
            if len(self._waiting) + len(self._running) >= self._max_waiting + self._max_num_seqs:
                raise QueueFull("too many requests wait", retry_after_s=1.5)
            ids = list(prompt_token_ids)
            script, reason = self._script(ids, sampling)
            request = FakeRequest(
                f"fake-{next(self._ids)}",
                ids,
                sampling,
                salt,
                num_shared_prefix_tokens,
                on_output,
                script,
                reason,
            )
            self.submitted.append(request)
            self._waiting.append(request)
            self._changed.notify_all()
        return request.request_id

    def abort(self, request_id: str) -> None:
        with self._changed:
            self._aborted.add(request_id)
            self._changed.notify_all()

    def stats(self) -> EngineStats:
        with self._changed:
            return EngineStats(
                num_running=len(self._running),
                num_waiting=len(self._waiting),
                num_blocks=256,
                num_used_blocks=sum(request.num_blocks for request in self._running),
                num_preemptions=0,
                prefix_cache_queries=self._counts["queries"],
                prefix_cache_hits=self._counts["hits"],
                steps_by_tokens=dict(self._steps_by_tokens),
            )

    def close(self) -> None:
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()
        self._thread.join(10)

    # ------------------------------------------------------------------- for tests

    def hold(self, after_steps: int = 0) -> None:
        """Run so many more steps, then none until `release`; aborts are still taken."""
        with self._changed:
            self._steps_allowed = after_steps
            self._changed.notify_all()

    def release(self) -> None:
        with self._changed:
            self._steps_allowed = float("inf")
            self._changed.notify_all()

    def fail_next_step(self) -> None:
        """The requests of the next step end as errors, with a text that must not get out."""
        self._fails_next = True

    def die(self) -> None:
        """The thread ends, as after a bug; everybody is told."""
        with self._changed:
            self._is_dead = True
            self._changed.notify_all()

    # ------------------------------------------------------------------- the thread

    def _own(self) -> None:
        while True:
            with self._changed:
                self._drop_aborted()
                if not self.is_ready:
                    break
                if not (self._waiting or self._running) or self._steps_allowed <= 0:
                    self._changed.wait()
                    continue
                self._steps_allowed -= 1
            self._step()
        reason = FinishReason.ABORT if self.is_closed else FinishReason.ERROR
        for request in [*self._running, *self._waiting]:
            self._tell(request, "", (), reason)
        self._running.clear()
        self._waiting.clear()

    def _step(self) -> None:
        with self._changed:
            while self._waiting and len(self._running) < self._max_num_seqs:
                self._admit(self._waiting.popleft())
            planned = list(self._running)
        if self._fails_next:
            self._fails_next = False
            for request in planned:
                self._end(request, "", (), FinishReason.ERROR)
            return
        self._steps_by_tokens[sum(self._compute(request) for request in planned)] += 1

    def _admit(self, request: FakeRequest) -> None:
        keys = self._block_keys(request)
        found = list(itertools.takewhile(lambda key: key in self._cache, keys))
        cached = min(len(found) * BLOCK_SIZE, len(request.prompt_token_ids) - 1)
        request.num_cached_tokens = cached // BLOCK_SIZE * BLOCK_SIZE
        request.num_computed_tokens = request.num_cached_tokens
        self._counts["queries"] += len(request.prompt_token_ids)
        self._counts["hits"] += request.num_cached_tokens
        self._running.append(request)

    def _compute(self, request: FakeRequest) -> int:
        num_tokens = min(self._chunk, request.num_tokens - request.num_computed_tokens)
        request.num_computed_tokens += num_tokens
        if request.num_computed_tokens == request.num_tokens:
            self._sample(request)
        return num_tokens

    def _sample(self, request: FakeRequest) -> None:
        if not request.output_token_ids:
            self._cache.update(self._block_keys(request))
        token = request.script[len(request.output_token_ids)]
        request.output_token_ids.append(token)
        is_last = len(request.output_token_ids) == len(request.script)
        is_end_token = token >= BOS
        text = request.decoder.decode(b"" if is_end_token else bytes([token]), is_last)
        if is_last:
            self._end(request, text, (token,), request.script_reason)
        else:
            self._tell(request, text, (token,), None)

    def _script(
        self, prompt: list[int], sampling: SamplingParams
    ) -> tuple[list[int], FinishReason]:
        text = self._reply(bytes(token for token in prompt if token < BOS).decode())
        cuts = [text.find(stop) for stop in sampling.stop if stop in text]
        tokens = list(text[: min(cuts)].encode()) if cuts else [*text.encode(), BOS + 1]
        room = MAX_MODEL_LEN - len(prompt)
        limit = min(sampling.max_tokens or room, room)
        if len(tokens) > limit:
            return tokens[:limit], FinishReason.LENGTH
        return tokens or [BOS + 1], FinishReason.STOP

    def _block_keys(self, request: FakeRequest) -> list[tuple[bytes, tuple[int, ...]]]:
        """What each full block of the prompt is found by."""
        prompt, shared = request.prompt_token_ids, request.num_shared_prefix_tokens
        ends = range(BLOCK_SIZE, len(prompt) + 1, BLOCK_SIZE)
        return [(b"" if end <= shared else request.salt, tuple(prompt[:end])) for end in ends]

    def _drop_aborted(self) -> None:
        for request in [*self._running, *self._waiting]:
            if request.request_id in self._aborted:
                self._end(request, "", (), FinishReason.ABORT)
        self._aborted.clear()

    def _end(
        self, request: FakeRequest, text: str, tokens: tuple[int, ...], reason: FinishReason
    ) -> None:
        with self._changed:
            if request in self._running:
                self._running.remove(request)
            else:
                self._waiting.remove(request)
        self._tell(request, text, tokens, reason)

    def _tell(
        self,
        request: FakeRequest,
        text: str,
        tokens: tuple[int, ...],
        reason: FinishReason | None,
    ) -> None:
        intervals = (0.25,) * max(0, len(request.output_token_ids) - 1)
        timings = RequestTimings(0.5, 1.5 if request.output_token_ids else None, 3.5, intervals)
        request.on_output(
            RequestOutput(
                request.request_id,
                text,
                tokens,
                request.usage,
                reason,
                "secret words of an exception" if reason is FinishReason.ERROR else "",
                None if reason is None else timings,
            )
        )


def loaded_fake(engine: FakeEngine) -> LoadedEngine:
    """What the server loads, around a started fake."""
    engine.start()
    return LoadedEngine(
        engine=engine,
        tokenizer=ByteTokenizer(),
        chat_template=PlainTemplate(),
        fingerprint=FINGERPRINT,
        max_model_len=MAX_MODEL_LEN,
        cache_config={"block_size": BLOCK_SIZE, "num_gpu_blocks": 256},
    )
