"""The engine's server as a process of its own: start to ready, and memory."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import httpx
import psutil

if TYPE_CHECKING:
    from pathlib import Path

_READY_TIMEOUT_S = 120.0


def measure_server(model: Path, threads: int) -> dict[str, float]:
    """Twice, so that the second start finds the converted weights."""
    _serve_once(model, threads)
    return _serve_once(model, threads)


def _serve_once(model: Path, threads: int) -> dict[str, float]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    key = secrets.token_hex(16)
    command = [sys.executable, "-m", "engine.server", "--model", str(model), "--port", str(port)]
    command += ["--host", "127.0.0.1", "--threads", str(threads)]
    started = time.perf_counter()
    server = subprocess.Popen(
        command,
        env={**os.environ, "PINCITE_ENGINE__API_KEY": key},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    headers = {"Authorization": f"Bearer {key}"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers) as client:
            _wait_ready(client, started)
            ready_s = time.perf_counter() - started
            process = psutil.Process(server.pid)
            ready_bytes = process.memory_info().rss
            ready_cpu_s = sum(process.cpu_times()[:2])
            body = {"prompt": "word " * 300, "max_tokens": 8, "model": _served_model(client)}
            client.post("/v1/completions", json=body, timeout=60).raise_for_status()
            used_bytes = process.memory_info().rss
    finally:
        server.terminate()
        server.wait(30)
    return {
        "start_to_ready_s": ready_s,
        "start_cpu_s": ready_cpu_s,
        "resident_mb": ready_bytes / 1e6,
        "resident_after_a_request_mb": used_bytes / 1e6,
    }


def _wait_ready(client: httpx.Client, started: float) -> None:
    while time.perf_counter() - started < _READY_TIMEOUT_S:
        try:
            if client.get("/readyz").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.02)
    raise SystemExit("the engine's server did not become ready")


def _served_model(client: httpx.Client) -> str:
    return str(client.get("/v1/models").raise_for_status().json()["data"][0]["id"])
