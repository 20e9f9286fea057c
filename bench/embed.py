"""The model server alone: start, memory, one question, passages a second.

    python -m bench.embed [--models DIR] [--threads N] [--precision fp32|bf16|auto] [--json]

Starts and ends its own server process on a loopback port.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import socket
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from pydantic import SecretStr

from core.adapters.embed_http import HttpEmbedder
from core.errors import ModelsUnavailable
from core.settings import ModelsSettings

if TYPE_CHECKING:
    from collections.abc import Callable

_QUESTION = "How long is the notice period for employees in the probation period?"
_SENTENCE = "The relief valve of pump PX-200 opens at 3.5 bar and has to be checked once a year."
_PASSAGE = (_SENTENCE + " ") * 8  # about 200 tokens
_START_TIMEOUT_S = 120.0


def main() -> None:
    options = _parse()
    port, key = _free_port(), secrets.token_hex(16)
    settings = ModelsSettings(url=f"http://127.0.0.1:{port}", api_key=SecretStr(key))
    started = time.perf_counter()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "pincite.servers.models"),
            *("--model-dir", str(options.models), "--port", str(port)),
        ],
        env={
            **os.environ,
            "PINCITE_MODELS__API_KEY": key,
            "PINCITE_MODELS__THREADS": str(options.threads),
            "PINCITE_MODELS__PRECISION": options.precision,
        },
    )
    try:
        embedder = HttpEmbedder(settings)
        _wait(embedder, started)
        figures: dict[str, Any] = {"start_s": time.perf_counter() - started}
        figures |= _measure(embedder, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(30)
    _report(figures, options)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=Path, default=Path(".pincite/models/minilm"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="auto", choices=["auto", "fp32", "bf16"])
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(embedder: HttpEmbedder, started: float) -> None:
    while time.perf_counter() - started < _START_TIMEOUT_S:
        with suppress(ModelsUnavailable):
            embedder.info()
            return
    raise SystemExit("the model server did not start")


def _measure(embedder: HttpEmbedder, process: psutil.Process) -> dict[str, Any]:
    idle_bytes = process.memory_info().rss
    passages = [f"{_PASSAGE}{n}" for n in range(32)]
    alone = _median_s(lambda: embedder.embed_questions([_QUESTION]), 21)
    cpu_before = sum(process.cpu_times()[:2])
    passages_s = _median_s(lambda: embedder.embed_passages(passages), 3)
    cpu_s = sum(process.cpu_times()[:2]) - cpu_before
    stream = threading.Thread(target=lambda: [embedder.embed_passages(passages) for _ in range(3)])
    stream.start()
    busy = []
    while stream.is_alive():
        busy.append(_median_s(lambda: embedder.embed_questions([_QUESTION]), 1))
    stream.join()
    return {
        "idle_mb": idle_bytes / 1e6,
        "busy_mb": process.memory_info().rss / 1e6,
        "question_ms": alone * 1e3,
        "passages_per_s": len(passages) / passages_s,
        "passages_per_cpu_s": 3 * len(passages) / cpu_s,
        "question_while_ingesting_ms": statistics.median(busy) * 1e3,
        "question_while_ingesting_max_ms": max(busy) * 1e3,
    }


def _median_s(call: Callable[[], object], repeat: int) -> float:
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def _report(figures: dict[str, Any], options: argparse.Namespace) -> None:
    facts = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": [round(value, 1) for value in os.getloadavg()],
        "threads": options.threads,
        "precision": options.precision,
    }
    if options.json:
        print(json.dumps({"facts": facts, "figures": figures}, indent=2))
        return
    print("  ".join(f"{name}={value}" for name, value in facts.items()))
    for name, value in figures.items():
        print(f"{name:34} {value:10.1f}")


if __name__ == "__main__":
    main()
