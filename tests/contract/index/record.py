"""Record what an unmodified client sends for every step. Run: python -m tests.contract.index.record

No server is needed: a transport inside the client keeps each request and answers with the least
that the client accepts. The files are committed; a test records again and compares.
"""

import json
from pathlib import Path
from typing import Any

import httpx
from qdrant_client import QdrantClient

from tests.contract.index.steps import STEPS

FOLDER = Path(__file__).parent / "recorded"
Recorded = dict[str, Any]

_COLLECTION = {
    "status": "green",
    "optimizer_status": "ok",
    "segments_count": 1,
    "config": {
        "params": {},
        "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
        "optimizer_config": {"default_segment_number": 0, "flush_interval_sec": 5},
    },
    "payload_schema": {},
}
_UPDATED = {"operation_id": 0, "status": "completed"}
# By the end of the path; the first that fits.
_ANSWERS: list[tuple[str, str, Any]] = [
    ("GET", "/exists", {"exists": True}),
    ("GET", "/aliases", {"aliases": []}),
    ("GET", "/collections", {"collections": []}),
    ("GET", "", _COLLECTION),
    ("POST", "/collections/aliases", True),
    ("POST", "/points/query", {"points": []}),
    ("POST", "/points/query/batch", []),
    ("POST", "/points/scroll", {"points": [], "next_page_offset": None}),
    ("POST", "/points/count", {"count": 0}),
    ("POST", "/facet", {"hits": []}),
    ("POST", "/points", []),
    ("PUT", "/index", _UPDATED),
    ("PUT", "/points", _UPDATED),
    ("PUT", "/points/payload", _UPDATED),
    ("PUT", "/points/vectors", _UPDATED),
    ("PUT", "", True),
    ("PATCH", "", True),
    ("POST", "", _UPDATED),
]


def _answer(method: str, path: str) -> Any:
    if method == "DELETE":
        return _UPDATED if "/index/" in path else True
    return next(
        result for verb, ending, result in _ANSWERS if verb == method and path.endswith(ending)
    )


class Recorder:
    """A transport handler that keeps the last request."""

    def __init__(self) -> None:
        self._last: Recorded | None = None

    def take(self) -> Recorded:
        """The request since the last time. Raises RuntimeError when there was none."""
        taken, self._last = self._last, None
        if taken is None:
            raise RuntimeError("nothing was sent")
        return taken

    def __call__(self, request: httpx.Request) -> httpx.Response:
        content = request.read()
        self._last = {
            "method": request.method,
            "path": request.url.path,
            "parameters": dict(request.url.params),
            "body": json.loads(content) if content else None,
        }
        result = _answer(request.method, request.url.path)
        return httpx.Response(200, json={"result": result, "status": "ok", "time": 0.0})


def record() -> dict[str, list[Recorded]]:
    """The requests of all steps, by area, each with its step's name and place in the order."""
    recorder = Recorder()
    client = QdrantClient(
        url="http://index.invalid:6333",
        check_compatibility=False,
        transport=httpx.MockTransport(recorder),
    )
    areas: dict[str, list[Recorded]] = {}
    for position, step in enumerate(STEPS):
        step.call(client)
        areas.setdefault(step.area, []).append(
            {"position": position, "step": step.name, **recorder.take()}
        )
    client.close()
    return areas


def render(requests: list[Recorded]) -> str:
    """One request a line, so that a difference shows which."""
    lines = ",\n".join(json.dumps(request, sort_keys=False) for request in requests)
    return f"[\n{lines}\n]\n"


def write(folder: Path) -> None:
    """Replace the recorded files."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.json"):
        path.unlink()
    for area, requests in record().items():
        (folder / f"{area}.json").write_text(render(requests), "utf-8")


if __name__ == "__main__":
    write(FOLDER)
