"""The engine alone: throughput by batch cap, continuous against static batching, first tokens with
a cold and a warm prefix, start and memory of its server.

    python -m bench.engine [--model DIR] [--threads N] [--quick] [--json]

Token ids are random and outputs as long as asked for, so the figures do not depend on what the
model says. Shares are of a floor computed from rates that are measured in the same run
(`bench.machine_limits`). A few minutes; `--quick` less than one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import torch

from bench.engine_process import measure_server
from bench.machine_limits import Floors, measure_floors
from engine.config import EngineConfig
from engine.engine import Engine
from engine.loading import load_engine_parts
from engine.request import FinishReason
from engine.sampling_params import SamplingParams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.loading import EngineParts
    from engine.outputs import RequestOutput

_BATCH_CAPS = (1, 2, 4, 8, 16)
_SYSTEM_TOKENS = 300
_QUESTION_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured. Tokens of prompts and outputs in the table of batch caps; rounds of
    everything that is compared or repeated."""

    num_requests: int
    num_prompt_tokens: int
    num_output_tokens: int
    rounds: int


_FULL = Size(num_requests=16, num_prompt_tokens=48, num_output_tokens=32, rounds=3)
_QUICK = Size(num_requests=16, num_prompt_tokens=16, num_output_tokens=6, rounds=1)


def main() -> None:
    options = _parse()
    size = _QUICK if options.quick else _FULL
    figures: dict[str, Any] = {"server": measure_server(options.model, options.threads)}
    config = EngineConfig(options.model, threads=options.threads)
    parts = load_engine_parts(config)
    floors = measure_floors(parts)
    bench = Bench(parts, config, size)
    figures["limits"] = {
        "read_gb_per_s": floors.read_bytes_per_s / 1e9,
        "matrix_gflops": floors.flops_per_s / 1e9,
        "weights_mb": floors.weight_bytes / 1e6,
    }
    figures["batch_caps"] = [bench.batch_cap(cap, floors) for cap in _BATCH_CAPS]
    figures["batching"] = bench.batching()
    figures["first_token"] = bench.first_token(floors)
    facts = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": [round(one, 1) for one in os.getloadavg()],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": config.num_threads,
        "device": str(parts.device),
        "dtype": str(parts.dtype).removeprefix("torch."),
        "is_exact": parts.is_exact,
    }
    _report({"facts": facts, "figures": figures}, as_json=options.json)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=Path(".pincite/models/smollm2"))
    parser.add_argument("--threads", type=int, default=0, help="0: what the engine chooses")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


# -------------------------------------------------------------------- the engine in this process


class Bench:
    """Engines of different settings over one model. Prompts are never repeated by accident."""

    def __init__(self, parts: EngineParts, config: EngineConfig, size: Size) -> None:
        self._parts = parts
        self._config = config
        self._size = size
        self._random = random.Random(20)

    def batch_cap(self, cap: int, floors: Floors) -> dict[str, float]:
        """Sixteen equal requests at once, `cap` of which run."""
        size = self._size
        prompts = [self._prompt(size.num_prompt_tokens) for _ in range(size.num_requests)]
        cpu_before = time.process_time()
        ends, seconds = self._run(
            replace(self._config, max_num_seqs=cap),
            prompts,
            [size.num_output_tokens] * len(prompts),
        )
        cpu_s = time.process_time() - cpu_before
        num_tokens = len(prompts) * size.num_output_tokens
        gaps = [gap for end in ends if end.timings for gap in end.timings.inter_token_s]
        floor_s = floors.decode_s(cap, size.num_prompt_tokens + size.num_output_tokens / 2)
        return {
            "batch_cap": cap,
            "tokens_per_s": num_tokens / seconds,
            "tokens_per_cpu_s": num_tokens / cpu_s,
            "inter_token_p50_ms": statistics.median(gaps) * 1e3,
            "inter_token_p95_ms": statistics.quantiles(gaps, n=20)[-1] * 1e3,
            "floor_ms": floor_s * 1e3,
            "share_of_floor": floor_s / statistics.median(gaps),
        }

    def batching(self) -> dict[str, Any]:
        """The same requests, of outputs from short to long, with continuous and static batching in
        turn; how much faster the former is, by pairs."""
        size = self._size
        lengths = [
            max(1, round(size.num_output_tokens * self._random.lognormvariate(-0.3, 0.8)))
            for _ in range(size.num_requests)
        ]
        prompts = [self._prompt(size.num_prompt_tokens) for _ in lengths]
        config = replace(self._config, max_num_seqs=4, enable_prefix_caching=False)
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(size.rounds):
            for continuous in (True, False):
                seconds[continuous].append(
                    self._run(config, prompts, lengths, continuous=continuous)[1]
                )
        ratios = [slow / fast for fast, slow in zip(seconds[True], seconds[False], strict=True)]
        return {
            "batch_cap": config.max_num_seqs,
            "output_tokens": sorted(lengths),
            "continuous_s": seconds[True],
            "static_s": seconds[False],
            "median_speedup": statistics.median(ratios),
        }

    def first_token(self, floors: Floors) -> dict[str, float]:
        """Two questions after the same system prompt, which is another one in each round."""
        engine = Engine(self._parts, self._config)
        engine.start()
        cold: list[float] = []
        warm: list[float] = []
        cached: list[int] = []
        for _ in range(max(2, self._size.rounds)):
            system = self._prompt(_SYSTEM_TOKENS)
            for seconds, hits in ((cold, []), (warm, cached)):
                prompt = system + self._prompt(_QUESTION_TOKENS)
                (end,), _ = _complete(engine, [prompt], [2])
                if end.timings and end.timings.first_token_s:
                    seconds.append(end.timings.first_token_s)
                hits.append(end.usage.num_cached_tokens)
        engine.close()
        floor_s = floors.prefill_s(_SYSTEM_TOKENS + _QUESTION_TOKENS)
        return {
            "cold_ms": statistics.median(cold) * 1e3,
            "warm_ms": statistics.median(warm) * 1e3,
            "prompt_tokens": _SYSTEM_TOKENS + _QUESTION_TOKENS,
            "cached_tokens": min(cached),
            "cold_floor_ms": floor_s * 1e3,
            "cold_share_of_floor": floor_s / statistics.median(cold),
        }

    def _run(
        self,
        config: EngineConfig,
        prompts: Sequence[list[int]],
        lengths: Sequence[int],
        *,
        continuous: bool = True,
    ) -> tuple[list[RequestOutput], float]:
        engine = Engine(self._parts, config, continuous=continuous)
        engine.start()
        try:
            return _complete(engine, prompts, lengths)
        finally:
            engine.close()

    def _prompt(self, num_tokens: int) -> list[int]:
        size = self._parts.tokenizer.vocab_size
        return [self._random.randrange(256, size) for _ in range(num_tokens)]


def _complete(
    engine: Engine, prompts: Sequence[list[int]], lengths: Sequence[int]
) -> tuple[list[RequestOutput], float]:
    """The last output of each, and the seconds until all were there."""
    heard: SimpleQueue[RequestOutput] = SimpleQueue()
    started = time.perf_counter()
    for prompt, length in zip(prompts, lengths, strict=True):
        sampling = SamplingParams(max_tokens=length, temperature=0.0, ignore_eos=True)
        engine.submit(prompt, sampling, heard.put)
    ends: list[RequestOutput] = []
    while len(ends) < len(prompts):
        output = heard.get()
        if output.finish_reason is not None:
            ends.append(output)
    seconds = time.perf_counter() - started
    if any(end.finish_reason is not FinishReason.LENGTH for end in ends):
        raise SystemExit(f"a request failed: {ends}")
    return ends, seconds


# ------------------------------------------------------------------------------- the report


def _report(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_rounded(result), indent=2))
        return
    print("  ".join(f"{name}={value}" for name, value in result["facts"].items()))
    figures = _rounded(result["figures"])
    for section in ("limits", "server", "first_token", "batching"):
        print(f"\n{section}")
        for name, value in figures[section].items():
            print(f"  {name:30} {value}")
    rows = figures["batch_caps"]
    print("\n" + "".join(f"{name:>20}" for name in rows[0]))
    for row in rows:
        print("".join(f"{value:>20}" for value in row.values()))


def _rounded(value: Any) -> Any:
    """Three digits say all that a measurement knows."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
