"""The pieces of a worker process, without starting Celery."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.operations import Heartbeat
from core.errors import CatalogUnavailable, NotFound
from core.ports.catalog import OperationsCatalog
from core.settings import Settings
from tests.fakes.clock import FakeClock
from tests.stack import ROOT, wait_until
from workers.app import TASK_NAME, create_app
from workers.heartbeat import HeartbeatThread, touch
from workers.lifecycle import check_apart
from workers.shutdown import SharedFlags


def test_the_task_takes_an_id_and_nothing_else(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"data_dir": tmp_path, "broker": {"url": "redis://localhost:1/0"}}
    )
    seen: list[str] = []
    app = create_app(settings, seen.append)
    ours = [name for name in app.tasks if not name.startswith("celery.")]
    assert ours == [TASK_NAME]
    app.tasks[TASK_NAME]("part_1")
    assert seen == ["part_1"]
    with pytest.raises(TypeError):
        app.tasks[TASK_NAME]("part_1", "more")


def test_the_publisher_and_the_worker_mean_the_same_task() -> None:
    from core.adapters import queue_celery

    assert queue_celery.TASK_NAME == TASK_NAME


def test_flags_cross_a_fork_in_both_directions() -> None:
    flags = SharedFlags(2)
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        flags.set_busy(1, is_busy=True)
        os.write(writable, b"busy")
        while not flags.must_stop:  # what the parent writes
            time.sleep(0.001)
        flags.set_busy(1, is_busy=False)
        os._exit(0)
    assert os.read(readable, 4) == b"busy"
    was_busy = flags.is_any_busy
    flags.request_stop()
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert (was_busy, flags.is_any_busy) == (True, False)
    os.close(readable)
    os.close(writable)


ORPHAN = """
import os, sys, time
from workers.orphans import die_with_parent
parent = os.getpid()
child = os.fork()
if child == 0:
    die_with_parent(parent)
    print(os.getpid(), flush=True)
    time.sleep(600)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal exists on Linux only")
def test_a_child_dies_with_a_killed_parent() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHAN],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait(10)
    wait_until(lambda: not _exists(child), timeout_s=10, what="the orphan's end")
    parent.stdout.close()


def _exists(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    found = SqlCatalog(f"sqlite:///{tmp_path / 'catalog.sqlite3'}", clock=FakeClock())
    found.migrate()
    yield found
    found.close()


def test_a_heartbeat_says_who_lives_and_what_it_does(catalog: SqlCatalog) -> None:
    clock = FakeClock()
    beats = threading.Event()
    thread = HeartbeatThread(
        catalog.operations,
        clock,
        role="worker",
        doing=lambda: "doc_1",
        on_beat=beats.set,
        version="1.2",
    )
    thread.start()
    assert beats.wait(10)
    thread.stop()
    (beat,) = catalog.operations.heartbeats(max_age_s=60)
    assert (beat.role, beat.pid, beat.doing) == ("worker", os.getpid(), "doc_1")
    assert beat.version == "1.2"
    assert beat.rss_bytes is not None
    assert beat.rss_bytes > 1_000_000
    assert beat.seen_at == clock.now()


class Down:
    """A catalog that does not answer, as far as a heartbeat sees it."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def beat(self, _heartbeat: Heartbeat) -> None:
        self.asked.set()
        raise CatalogUnavailable("down")


def test_a_catalog_that_is_down_ends_no_heartbeat(tmp_path: Path) -> None:
    down = Down()
    touched = tmp_path / "alive"
    operations: OperationsCatalog = down  # type: ignore[assignment]
    thread = HeartbeatThread(
        operations, FakeClock(), role="x", doing=lambda: None, on_beat=lambda: touch(touched)
    )
    thread.start()
    assert down.asked.wait(10)
    assert touched.exists()
    assert thread._thread.is_alive()
    thread.stop()
    assert not thread._thread.is_alive()


def test_a_liveness_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    touch(tmp_path / "no" / "such" / "folder")


def test_a_worker_that_cannot_work_says_why(tmp_path: Path) -> None:
    settings = Settings.model_validate({"data_dir": tmp_path, "models": {"embedder": "not there"}})
    with pytest.raises(NotFound, match="no tokenizer") as caught:
        check_apart(settings)
    assert caught.value.hint is not None


def test_what_the_check_loads_does_not_stay(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from core.errors import NotFound\n"
        "from core.settings import Settings; from workers.lifecycle import check_apart\n"
        "settings = Settings.model_validate({'data_dir': Path(sys.argv[1]),"
        " 'models': {'embedder': 'not there'}})\n"
        "try: check_apart(settings)\n"
        "except NotFound: print(sorted({'sqlalchemy', 'alembic'} & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip().endswith("[]")
