"""The whole stack: start, memory, put to searchable, answer time.

    python -m bench.stack [--json] [--data-dir DIR] [--repeat N]

Needs the weights in the data directory (`make setup`) and the `demo` extra (it makes PDFs). Starts
and ends its own `pincite up` in the data directory, which must not be in use.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from reportlab.pdfgen.canvas import Canvas

from core.domain.access import Principal
from core.factory import Adapters
from core.settings import load_settings
from pincite.client import Client
from pincite.supervisor.embedded import running_settings
from pincite.supervisor.run_state import find_process, read_run_state
from pincite.supervisor.secrets import read_secrets

_PAGES = 10
_POLL_S = 0.05
_PUT_TIMEOUT_S = 60.0


def main() -> None:
    options = _parse()
    environ = {**os.environ, "PINCITE_DATA_DIR": str(options.data_dir)}
    first, start_s = _start(environ)
    _stop(first)
    stack, second_start_s = _start(environ)  # the one that people feel
    try:
        figures: dict[str, Any] = {"start_s": start_s, "second_start_s": second_start_s}
        figures |= _measure(options.data_dir, options.repeat)
    finally:
        _stop(stack)
    _report(figures, as_json=options.json)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--data-dir", type=Path, default=Path(".pincite"))
    parser.add_argument("--repeat", type=int, default=5)
    return parser.parse_args()


def _start(environ: dict[str, str]) -> tuple[subprocess.Popen[str], float]:
    began = time.monotonic()
    command = [sys.executable, "-m", "pincite.cli", "up", "--quiet"]
    stack = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    assert stack.stdout is not None
    if not stack.stdout.readline().startswith("Pincite is ready"):
        raise SystemExit("the stack did not start")
    return stack, round(time.monotonic() - began, 2)


def _stop(stack: subprocess.Popen[str]) -> None:
    stack.send_signal(signal.SIGINT)
    stack.wait(60)


def _measure(data_dir: Path, repeat: int) -> dict[str, Any]:
    settings = running_settings(load_settings({"data_dir": data_dir}))
    adapters = Adapters(settings)
    bucket = next(iter(settings.objects.buckets))
    principal = Principal.system(adapters.tenant_ids[bucket], "bench")
    memory_idle = _memory_mb(data_dir)
    searchable_s, answer_s = [], []
    with Client(
        f"http://127.0.0.1:{settings.api.port}", read_secrets(data_dir).admin_key
    ) as client:
        for number in range(repeat):
            key = f"bench/report-{time.time_ns()}.pdf"
            body = _report_pdf(number)
            began = time.monotonic()
            adapters.object_store.put(principal, bucket, key, body)
            document_id = _wait_ready(client, key)
            searchable_s.append(time.monotonic() - began)
            began = time.monotonic()
            client.ask(f"How many litres did pump {number} move on sheet 3?")
            answer_s.append(time.monotonic() - began)
            client.delete_document(document_id)
    adapters.close()
    return {
        "memory_idle_mb": memory_idle,
        "memory_after_mb": _memory_mb(data_dir),
        "put_to_searchable_s": [round(one, 2) for one in searchable_s],
        "put_to_searchable_median_s": round(statistics.median(searchable_s), 2),
        "answer_median_s": round(statistics.median(answer_s), 3),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
    }


def _memory_mb(data_dir: Path) -> dict[str, dict[str, int]]:
    """Memory of each process with its children, in MB: `rss` as resident (what several share counts
    in each), on Linux also `pss` (what several share is divided among them)."""
    state = read_run_state(data_dir)
    assert state is not None
    families = {"supervisor": [psutil.Process(state.supervisor_pid)]}
    for recorded in state.processes:
        process = find_process(recorded)
        if process is not None:
            families[recorded.name] = [process, *process.children(recursive=True)]
    found: dict[str, dict[str, int]] = {}
    for name, family in families.items():
        memory = [one.memory_full_info() for one in family]
        found[name] = {
            kind: sum(getattr(one, kind) for one in memory) // 1_000_000
            for kind in ("rss", "pss")
            if hasattr(memory[0], kind)
        }
    found["all"] = {kind: sum(one[kind] for one in found.values()) for kind in found["supervisor"]}
    return found


def _wait_ready(client: Client, key: str) -> str:
    deadline = time.monotonic() + _PUT_TIMEOUT_S
    while time.monotonic() < deadline:
        for document in client.documents():
            if document["key"] == key and document["status"] == "ready":
                return str(document["document_id"])
        time.sleep(_POLL_S)
    raise SystemExit(f"{key} was not searchable in {_PUT_TIMEOUT_S:.0f} s")


def _report_pdf(number: int) -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    for page in range(1, _PAGES + 1):
        text = canvas.beginText(72, 770)
        for line in range(30):
            text.textLine(
                f"Pump {number} moved {number * 100 + page * 7 + line} litres on sheet {page} in"
                f" the hour after reading {line} of {time.time_ns()}."
            )
        canvas.drawText(text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _report(figures: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        if isinstance(value, dict):
            print(name)
            for process, memory in value.items():
                print(f"  {process:26} {', '.join(f'{k} {mb}' for k, mb in memory.items())}")
        else:
            print(f"{name:28} {value}")


if __name__ == "__main__":
    main()
