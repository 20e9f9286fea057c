"""What was committed is announced; a broker that fails half way loses nothing."""

from pathlib import Path

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal
from core.domain.documents import NewPart, ObservedObject, Queue, Stage
from core.errors import BrokerUnavailable
from tests.fakes.clock import FakeClock
from tests.fakes.job_queue import FakeJobQueue
from workers.outbox import relay

NUM_DOCUMENTS = 5


class FailingJobQueue(FakeJobQueue):
    """Takes some messages, then the broker is gone."""

    def __init__(self, num_taken: int) -> None:
        super().__init__()
        self._num_taken = num_taken

    def publish(self, queue: Queue, part_id: str) -> None:
        self.is_down = len(self.published) >= self._num_taken
        super().publish(queue, part_id)


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    clock = FakeClock()
    found = SqlCatalog(f"sqlite:///{tmp_path / 'catalog.sqlite3'}", clock=clock)
    found.migrate()
    principal = Principal.system(found.access.ensure_tenant("default"), "test")
    for number in range(NUM_DOCUMENTS):
        found.intake.accept(
            principal,
            ObservedObject("documents", f"{number}.pdf", f"etag{number}", 10),
            pipeline_fingerprint="p.c.e.a.1",
            first_part=NewPart(Stage.PARSE, 1, 32),
            queue=Queue.BULK if number else Queue.INTERACTIVE,
        )
    return found


def test_each_message_goes_to_its_queue_once(catalog: SqlCatalog) -> None:
    queue = FakeJobQueue()
    assert relay(catalog.parts, queue) == NUM_DOCUMENTS
    assert relay(catalog.parts, queue) == 0
    assert len(set(queue.published)) == NUM_DOCUMENTS
    assert [found for found, _ in queue.published].count(Queue.INTERACTIVE) == 1


def test_no_more_than_asked_for_at_once(catalog: SqlCatalog) -> None:
    queue = FakeJobQueue()
    assert [relay(catalog.parts, queue, limit=2) for _ in range(4)] == [2, 2, 1, 0]


def test_a_broker_that_fails_half_way_gets_the_rest_later(catalog: SqlCatalog) -> None:
    failing = FailingJobQueue(num_taken=2)
    with pytest.raises(BrokerUnavailable):
        relay(catalog.parts, failing)
    assert len(failing.published) == 2
    healthy = FakeJobQueue()
    clock = catalog.parts._clock
    assert isinstance(clock, FakeClock)
    clock.advance(60)  # the claims run out
    relay(catalog.parts, healthy)
    announced = {part_id for _, part_id in failing.published + healthy.published}
    assert len(announced) == NUM_DOCUMENTS
    assert not set(failing.published) & set(healthy.published)
