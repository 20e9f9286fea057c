"""Prometheus metrics of ingestion, taken from the catalog when they are scraped.

Workers are many and short-lived processes that share no port, and a broker can lose messages; so
what is shown is what the catalog knows, by whichever process is scraped (the API).
`celery_queue_length` keeps celery-exporter's name, so that its dashboards work.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from prometheus_client.metrics_core import Metric

    from core.domain.operations import Heartbeat, IngestCounts


class IngestCollector(Collector):
    """Args: how to read the counts, the living processes and the broker's ready messages by queue.

    What cannot be read now is left out of the scrape; `pincite_scrape_errors` counts such sources.
    """

    def __init__(
        self,
        counts: Callable[[], IngestCounts],
        heartbeats: Callable[[], Sequence[Heartbeat]],
        ready: Callable[[], Mapping[str, int]],
    ) -> None:
        self._counts = counts
        self._heartbeats = heartbeats
        self._ready = ready

    def collect(self) -> Iterable[Metric]:
        num_errors = 0
        for source in (self._from_counts, self._from_heartbeats, self._from_broker):
            try:
                yield from list(source())
            except Exception:  # noqa: BLE001 - the edge: a scrape shows what there is
                num_errors += 1
        errors = GaugeMetricFamily("pincite_scrape_errors", "Sources that could not be read.")
        errors.add_metric([], num_errors)
        yield errors

    def _from_counts(self) -> Iterable[Metric]:
        counts = self._counts()
        documents = GaugeMetricFamily(
            "pincite_ingest_documents", "Documents by derived status.", labels=["state"]
        )
        for status, number in counts.documents.items():
            documents.add_metric([status.value], number)
        yield documents
        parts = GaugeMetricFamily(
            "pincite_ingest_parts", "Parts by stage and state.", labels=["stage", "state"]
        )
        oldest = GaugeMetricFamily(
            "pincite_ingest_oldest_age_seconds", "Oldest unfinished part.", labels=["stage"]
        )
        pages = GaugeMetricFamily(
            "pincite_ingest_pages_waiting", "Pages that wait for a stage.", labels=["stage"]
        )
        for stage, found in counts.stages.items():
            for state in ("waiting", "leased", "failed"):
                parts.add_metric([stage.value, state], getattr(found, state))
            oldest.add_metric([stage.value], found.oldest_age_s)
            pages.add_metric([stage.value], found.pages_waiting)
        yield from (parts, oldest, pages)
        for name, text, value in (
            ("queue_depth", "Parts waiting or leased.", counts.queue_depth),
            ("oldest_seconds", "Age of the oldest unfinished part.", counts.oldest_age_s),
            ("outbox_pending", "Announcements the broker has not taken.", counts.outbox_pending),
            ("leases_expired", "Leases that ran out unrenewed.", counts.expired_leases),
            ("chunks_active", "Chunks that can be found.", counts.num_chunks_active),
            ("pages_active", "Pages that can be found.", counts.num_pages_active),
        ):
            gauge = GaugeMetricFamily(f"pincite_ingest_{name}", text)
            gauge.add_metric([], value)
            yield gauge

    def _from_heartbeats(self) -> Iterable[Metric]:
        now = time.time()
        alive = GaugeMetricFamily(
            "pincite_process_heartbeat_age_seconds",
            "Since a process was last heard of.",
            labels=["process", "role"],
        )
        memory = GaugeMetricFamily(
            "pincite_process_resident_bytes", "Resident memory.", labels=["process", "role"]
        )
        for beat in self._heartbeats():
            labels = [beat.process, beat.role]
            alive.add_metric(labels, max(0.0, now - beat.seen_at.timestamp()))
            if beat.rss_bytes is not None:
                memory.add_metric(labels, beat.rss_bytes)
        yield from (alive, memory)

    def _from_broker(self) -> Iterable[Metric]:
        length = GaugeMetricFamily(
            "celery_queue_length", "Messages nobody has taken.", labels=["queue_name"]
        )
        for queue, number in self._ready().items():
            length.add_metric([str(queue)], number)
        yield length


def new_registry(*collectors: Collector) -> CollectorRegistry:
    """A registry of its own: two applications in one process (tests) do not meet in a global."""
    registry = CollectorRegistry(auto_describe=False)
    for collector in collectors:
        registry.register(collector)
    return registry
