"""kill -9 of every process of the stack, one after another, while 20 files are ingested.

In the end all are ready, the index holds exactly the chunks that the catalog expects, no document
has points of two generations, and nothing is orphaned.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from core.errors import Unavailable
from tests.embedded_stack import EmbeddedStack, running_stack
from tests.sample_pdfs import report_pdf
from tests.stack import wait_until

NUM_FILES = 20
PAGES_EACH = 4
VICTIMS = ("worker", "index", "models", "engine", "objects", "broker", "api", "sweeper")
FAST_RECOVERY = {
    "PINCITE_WORKER__LEASE_S": "6",
    "PINCITE_WORKER__REPUBLISH_AFTER_S": "5",
    "PINCITE_WORKER__RETRY_BASE_S": "0.5",
    "PINCITE_SWEEPER__LEADERSHIP_S": "3",
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]


@pytest.fixture
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStack]:
    with running_stack(tmp_path_factory, FAST_RECOVERY) as running:
        yield running


def put_files(stack: EmbeddedStack, numbers: range) -> None:
    client = stack.s3()
    for number in numbers:
        client.put_object(
            Bucket="documents",
            Key=f"stations/report-{number:02d}.pdf",
            Body=report_pdf(number, num_pages=PAGES_EACH),
        )
    client.close()


def kill(stack: EmbeddedStack, name: str) -> None:
    """SIGKILL, then wait until the supervisor has put another one in its place."""
    wait_until(lambda: pid_of(stack, name) is not None, timeout_s=60, what=f"a running {name}")
    victim = stack.processes()[name]
    victim.kill()
    wait_until(lambda: not is_alive(victim), timeout_s=10, what=f"the end of {name}")
    wait_until(
        lambda: pid_of(stack, name) not in (None, victim.pid), timeout_s=60, what=f"another {name}"
    )


def pid_of(stack: EmbeddedStack, name: str) -> int | None:
    process = stack.processes().get(name)
    return None if process is None else process.pid


def has_work(stack: EmbeddedStack) -> bool:
    """Whether parts wait or are worked on; not known while the API restarts."""
    with stack.client() as client, suppress(Unavailable):
        return bool(client.ingest_state()["queue_depth"] > 0)
    return False


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_every_process_killed_once_during_an_ingest(stack: EmbeddedStack, tmp_path: Path) -> None:
    per_victim = NUM_FILES // (len(VICTIMS) + 1)
    put = 0
    for name in VICTIMS:
        put_files(stack, range(put, put + per_victim))
        put += per_victim
        wait_until(lambda: has_work(stack), timeout_s=60, what="work in progress")
        kill(stack, name)
    stack_processes = stack.processes()
    put_files(stack, range(put, NUM_FILES))
    stack.kill_supervisor()
    wait_until(
        lambda: not any(is_alive(process) for process in stack_processes.values()),
        timeout_s=15,
        what="the children of a killed supervisor to end",
    )
    stack.up()

    documents = stack.wait_final(NUM_FILES, timeout_s=240)
    assert len(documents) == NUM_FILES
    assert {document["status"] for document in documents} == {"ready"}, documents
    expected = {document["document_id"]: document["num_chunks"] for document in documents}
    points = stack.points_by_document()
    assert {document: len(found) for document, found in points.items()} == expected
    assert all(len(set(generations)) == 1 for generations in points.values())
    assert stack.count_points() == sum(expected.values())
    with stack.client() as client:
        answer = client.ask("How many litres were measured at pump P013 on sheet 2?")
    assert "93 litres" in answer["text"]
