"""The whole product as a user runs it: `pincite up` in its own process and data directory."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import boto3
import psutil
import pytest
from botocore.config import Config
from mypy_boto3_s3.client import S3Client
from qdrant_client import QdrantClient, models

from core.errors import Unavailable
from pincite.client import Client
from tests.stack import ROOT, clean_environ, wait_until

READY_S = 120.0
UNFINISHED = {"queued", "processing", "deleting"}


def models_source() -> Path:
    """This checkout's weights (`make setup` fetches them); fails when they are missing."""
    directory = Path(os.environ.get("PINCITE_TEST_MODELS_DIR", ROOT / ".pincite" / "models"))
    if not all((directory / name).is_dir() for name in ("minilm", "smollm2")):
        pytest.fail(f"no weights in {directory}: run `make setup`", pytrace=False)
    return directory


@contextmanager
def running_stack(
    factory: pytest.TempPathFactory, environ: Mapping[str, str] | None = None
) -> Iterator[EmbeddedStack]:
    """A stack that is ready; nothing of it is left afterwards, nor when it does not come up."""
    directory = factory.mktemp("stack")
    stack = EmbeddedStack(directory, environ)
    try:
        stack.up()
        yield stack
    finally:
        stack.end()
        shutil.rmtree(directory, ignore_errors=True)


class EmbeddedStack:
    """One data directory; `up` and `kill` may alternate."""

    def __init__(self, data_dir: Path, environ: Mapping[str, str] | None = None) -> None:
        self.data_dir = data_dir
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (data_dir / "models").exists():
            (data_dir / "models").symlink_to(models_source())
        self._environ = clean_environ() | {"PINCITE_DATA_DIR": str(data_dir)} | dict(environ or {})
        self._process: subprocess.Popen[str] | None = None
        self._lines: list[str] = []

    def start(self) -> None:
        """Start `pincite up` without waiting."""
        self._lines = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pincite.cli", "up"],
            cwd=self.data_dir,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def up(self) -> None:
        """Start and wait until it says that it is ready."""
        self.start()
        wait_until(
            lambda: self.login_url is not None or not self.is_running,
            timeout_s=READY_S,
            what=f"the stack:\n{self.output}",
        )
        assert self.is_running, self.output + self.logs()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.append(line)
        process.stdout.close()

    @property
    def output(self) -> str:
        return "".join(self._lines)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def login_url(self) -> str | None:
        marked = [line for line in self._lines if line.startswith("Pincite is ready: ")]
        return marked[0].removeprefix("Pincite is ready: ").strip() if marked else None

    def logs(self) -> str:
        """The ends of all logs, for a failed assertion."""
        files = sorted((self.data_dir / "logs").glob("*.log"))
        return "\n".join(f"== {file.name}\n{file.read_text()[-1500:]}" for file in files)

    def interrupt(self) -> int:
        """Ctrl-C; returns the exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(60)

    def kill_supervisor(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)

    def end(self) -> None:
        """Leave nothing behind, whatever happened."""
        children = list(self.processes().values())
        if self.is_running:
            with suppress(subprocess.TimeoutExpired):
                self.interrupt()
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
        for process in children:
            with suppress(psutil.Error):
                process.kill()

    def processes(self) -> dict[str, psutil.Process]:
        """The running processes of run.json by name."""
        file = self.data_dir / "run.json"
        if not file.exists():
            return {}
        found = {}
        for entry in json.loads(file.read_text())["processes"]:
            with suppress(psutil.NoSuchProcess):
                found[entry["name"]] = psutil.Process(entry["pid"])
        return found

    def secrets(self) -> dict[str, str]:
        return cast("dict[str, str]", json.loads((self.data_dir / "secrets.json").read_text()))

    def port(self, offset: int) -> int:
        return int(json.loads((self.data_dir / "run.json").read_text())["port_base"]) + offset

    def client(self) -> Client:
        return Client(f"http://127.0.0.1:{self.port(0)}", self.secrets()["admin_key"])

    def s3(self) -> S3Client:
        """A plain boto3 client, as any program would make one."""
        secrets = self.secrets()
        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port(1)}",
            aws_access_key_id=secrets["s3_access_key"],
            aws_secret_access_key=secrets["s3_secret_key"],
            region_name="us-east-1",
            config=Config(
                s3={"addressing_style": "path"}, retries={"max_attempts": 10, "mode": "standard"}
            ),
        )

    def index(self) -> QdrantClient:
        return QdrantClient(
            url=f"http://127.0.0.1:{self.port(7)}",
            headers={"api-key": self.secrets()["index_key"]},  # `api_key=` warns on plain HTTP
            check_compatibility=False,
            timeout=30,
        )

    def wait_final(self, num_documents: int, *, timeout_s: float) -> list[dict[str, Any]]:
        """All documents, once there are so many and none is queued or processing."""
        found: list[dict[str, Any]] = []

        def is_done() -> bool:
            nonlocal found
            with self.client() as client, suppress(Unavailable):
                found = list(client.documents())
            return len(found) >= num_documents and not any(
                document["status"] in UNFINISHED for document in found
            )

        try:
            wait_until(is_done, timeout_s=timeout_s, what=f"{num_documents} documents")
        except TimeoutError as error:
            states = [(d["key"], d["status"], d["problem"]) for d in found]
            raise AssertionError(f"{error}: {states}\n{self.logs()}") from error
        return found

    def points_by_document(self) -> dict[str, list[str]]:
        """document id -> generation id of each of its points, straight from the index."""
        client = self.index()
        points: dict[str, list[str]] = {}
        offset: Any = None
        try:
            while True:
                page, offset = client.scroll(
                    "pincite", limit=1000, offset=offset, with_payload=True, with_vectors=False
                )
                for point in page:
                    payload = point.payload or {}
                    points.setdefault(payload["document"], []).append(payload["generation"])
                if offset is None:
                    return points
        finally:
            client.close()

    def count_points(self) -> int:
        client = self.index()
        try:
            return client.count("pincite", count_filter=models.Filter(), exact=True).count
        finally:
            client.close()
