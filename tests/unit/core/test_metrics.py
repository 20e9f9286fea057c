"""What a scrape shows is what the catalog says, and a source that is down hides only itself."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from prometheus_client import generate_latest

from core.domain.documents import DocumentStatus, Queue, Stage
from core.domain.operations import Heartbeat, IngestCounts, StageCounts
from core.errors import BrokerUnavailable
from core.metrics import IngestCollector, new_registry

COUNTS = IngestCounts(
    documents={DocumentStatus.READY: 7, DocumentStatus.QUARANTINED: 1},
    stages={Stage.PARSE: StageCounts(3, 1, 2, pages_waiting=90, oldest_age_s=12.5)},
    queue_depth=4,
    oldest_age_s=12.5,
    outbox_pending=2,
    expired_leases=1,
    num_chunks_active=70,
    num_pages_active=20,
)


def samples(
    counts: IngestCounts = COUNTS,
    heartbeats: Sequence[Heartbeat] = (),
    ready: Mapping[str, int] | None = None,
) -> dict[str, float]:
    def depth() -> Mapping[str, int]:
        if ready is None:
            raise BrokerUnavailable("down")
        return ready

    registry = new_registry(IngestCollector(lambda: counts, lambda: heartbeats, depth))
    text = generate_latest(registry).decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_counts_are_shown_as_they_are() -> None:
    found = samples(ready={Queue.BULK: 3, Queue.INTERACTIVE: 0})
    assert found['pincite_ingest_documents{state="ready"}'] == 7
    assert found['pincite_ingest_documents{state="quarantined"}'] == 1
    assert found['pincite_ingest_parts{stage="parse",state="waiting"}'] == 3
    assert found['pincite_ingest_parts{stage="parse",state="leased"}'] == 1
    assert found['pincite_ingest_parts{stage="parse",state="failed"}'] == 2
    assert found['pincite_ingest_pages_waiting{stage="parse"}'] == 90
    assert found['pincite_ingest_oldest_age_seconds{stage="parse"}'] == 12.5
    assert found["pincite_ingest_queue_depth"] == 4
    assert found["pincite_ingest_chunks_active"] == 70
    assert found["pincite_ingest_pages_active"] == 20
    assert found['celery_queue_length{queue_name="bulk"}'] == 3
    assert found["pincite_scrape_errors"] == 0


def test_a_broker_that_is_down_hides_only_its_queue_length() -> None:
    found = samples(ready=None)
    assert found["pincite_ingest_queue_depth"] == 4
    assert not [name for name in found if name.startswith("celery_")]
    assert found["pincite_scrape_errors"] == 1


def test_processes_are_shown_with_their_age_and_memory() -> None:
    now = datetime.now(UTC)
    beat = Heartbeat("host:1:worker", "worker", 1, "host", now, now, rss_bytes=1000)
    found = samples(heartbeats=[beat], ready={})
    labels = '{process="host:1:worker",role="worker"}'
    assert 0 <= found[f"pincite_process_heartbeat_age_seconds{labels}"] < 600
    assert found[f"pincite_process_resident_bytes{labels}"] == 1000
