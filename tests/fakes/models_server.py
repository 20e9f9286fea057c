"""The model server's HTTP shape (TEI) over hashed vectors, in a thread: for tests of other
processes.

Real enough for `HttpEmbedder`: `/info`, `/embed`, refusals. `delay_s` makes each batch take time,
`status` refuses everything.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.models import hashed_vector

DIMENSION = 384
MAX_TOKENS = 256


class ModelsServer(ThreadingHTTPServer):
    """Listens on a free loopback port from its construction on."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.delay_s = 0.0
        self.status = 200
        self.num_texts = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelsServer

    def do_GET(self) -> None:
        self._answer(
            {
                "model_id": "fake",
                "max_input_length": MAX_TOKENS,
                "max_client_batch_size": 32,
                "pincite": {"fingerprint": "fake-embedder", "dimension": DIMENSION},
            }
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = body["inputs"]
        if self.server.delay_s:
            time.sleep(self.server.delay_s)
        with self.server.lock:
            self.server.num_texts += len(texts)
        self._answer([hashed_vector(text, DIMENSION) for text in texts])

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self, payload: object) -> None:
        status = self.server.status
        raw = json.dumps(payload if status == 200 else {"error": "told to refuse"}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


@contextmanager
def serving_models() -> Iterator[ModelsServer]:
    server = ModelsServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
