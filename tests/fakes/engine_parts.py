"""What an Engine is made of, without a model: a byte tokenizer, and runners that do as told."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models, pre_tokenizers

from engine.config import EngineConfig
from engine.engine import Engine
from engine.outputs import RequestOutput
from engine.request import Request
from engine.sampling_params import SamplingParams
from engine.step import Runner, StepOutput, StepPlan
from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from engine.loading import EngineParts

END = 256  # the end token; ids below are bytes
VOCAB_SIZE = 257
_END_TEXT = "<|end|>"


def byte_tokenizer(directory: Path) -> Tokenizer:
    """Token ids are bytes, and END; written in the layout of a model directory and loaded."""
    characters = _byte_characters()
    vocabulary = {character: byte for byte, character in enumerate(characters)} | {_END_TEXT: END}
    tokenizer = RustTokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([_END_TEXT])
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": _END_TEXT}))
    (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": END}))
    (directory / "config.json").write_text(json.dumps({"eos_token_id": END, "vocab_size": END + 1}))
    return Tokenizer.load(directory)


def _byte_characters() -> list[str]:
    """The character that byte-level BPE writes for each byte: itself if it prints, else one from
    U+0100 on (GPT-2's table)."""
    printing = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printing else next(others)) for byte in range(256)]


@dataclass
class FakeParts:
    """What an Engine reads of `engine.loading.EngineParts`."""

    runner: Runner
    tokenizer: Tokenizer
    num_blocks: int = 65
    max_model_len: int = 512
    fingerprint: str = "fake"
    dtype: str = "float32"

    @property
    def model_config(self) -> "FakeParts":
        return self

    @property
    def vocab_size(self) -> int:
        return VOCAB_SIZE


class ScriptedRunner:
    """Says for each request the token ids of `script(request)`, one a step, and END after them.

    While it is held, each step waits: `wait_for_step` for the owner thread to stand in one, `allow`
    to let so many through. `fail_next`: that many steps raise.
    """

    def __init__(
        self, script: Callable[[Request], Sequence[int]], *, is_held: bool = False
    ) -> None:
        self.fail_next = 0
        self.num_steps = 0
        self._script = script
        self._is_held = is_held
        self._arrivals: SimpleQueue[StepPlan] = SimpleQueue()
        self._permits = threading.Semaphore(0)

    def wait_for_step(self) -> StepPlan:
        return self._arrivals.get(timeout=30)

    def allow(self, num_steps: int = 1) -> None:
        self._permits.release(num_steps)

    def let_go(self) -> None:
        """Hold nothing any more."""
        self._is_held = False
        self._permits.release(1)

    def run(self, plan: StepPlan) -> StepOutput:
        self.num_steps += 1
        if self._is_held:
            self._arrivals.put(plan)
            assert self._permits.acquire(timeout=30), "the test let nobody through"
        if self.fail_next:
            self.fail_next -= 1
            raise ArithmeticError("the scripted step fails")
        return StepOutput(
            {
                one.request.request_id: self._next(one.request)
                for one in plan.sequences
                if one.samples
            }
        )

    def _next(self, request: Request) -> int:
        said, script = len(request.output_token_ids), self._script(request)
        return script[said] if said < len(script) else END


class Listener:
    """An `on_output` that keeps what it is told; `wait` gives the last piece."""

    def __init__(self) -> None:
        self.pieces: list[RequestOutput] = []
        self._has_ended = threading.Event()

    def __call__(self, output: RequestOutput) -> None:
        self.pieces.append(output)
        if output.finish_reason is not None:
            self._has_ended.set()

    def wait(self, timeout_s: float = 30.0) -> RequestOutput:
        assert self._has_ended.wait(timeout_s), "the request did not end"
        return self.end

    @property
    def end(self) -> RequestOutput:
        """The one last piece."""
        (end,) = [piece for piece in self.pieces if piece.finish_reason is not None]
        assert end is self.pieces[-1]
        return end

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def token_ids(self) -> list[int]:
        return [token_id for piece in self.pieces for token_id in piece.token_ids]


@contextmanager
def running_engine(
    tmp_path: Path,
    runner: Runner,
    *,
    num_blocks: int = 65,
    is_started: bool = True,
    clock: Callable[[], float] = time.monotonic,
    **options: Any,
) -> Iterator[Engine]:
    """An engine over fake parts, closed at the end. `num_blocks` counts the null block."""
    config = EngineConfig(model=tmp_path, **options)
    parts = FakeParts(runner, byte_tokenizer(tmp_path), num_blocks=num_blocks)
    engine = Engine(cast("EngineParts", parts), config, clock=clock)
    if is_started:
        engine.start()
    try:
        yield engine
    finally:
        if isinstance(runner, ScriptedRunner):
            runner.let_go()
        engine.close(timeout_s=30)


LONG = SamplingParams(max_tokens=200, temperature=0.0)


def says(text: str) -> ScriptedRunner:
    return ScriptedRunner(lambda _: text.encode())


def held() -> ScriptedRunner:
    """Talks for ever, one allowed step at a time."""
    return ScriptedRunner(lambda _: b"x" * 500, is_held=True)


def complete(engine: Engine, sampling: SamplingParams, prompt: Sequence[int] = b"ask") -> Listener:
    listener = Listener()
    engine.submit(list(prompt), sampling, listener)
    listener.wait()
    return listener
