"""The catalog's counts as Prometheus text, so that /metrics and /v1/ops/ingest cannot disagree."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from core.domain.operations import IngestCounts


class _IngestCollector(Collector):
    def __init__(self, counts: IngestCounts) -> None:
        self._counts = counts

    def collect(self) -> list[GaugeMetricFamily]:
        counts = self._counts
        documents = GaugeMetricFamily(
            "pincite_ingest_documents", "Documents by derived status.", labels=["state"]
        )
        for status, count in counts.documents.items():
            documents.add_metric([status.value], count)
        parts = GaugeMetricFamily(
            "pincite_ingest_parts", "Unfinished and failed parts.", labels=["stage", "state"]
        )
        ages = GaugeMetricFamily(
            "pincite_ingest_oldest_age_seconds", "Age of the oldest part.", labels=["stage"]
        )
        pages = GaugeMetricFamily(
            "pincite_ingest_pages_waiting", "Pages waiting.", labels=["stage"]
        )
        for stage, numbers in counts.stages.items():
            parts.add_metric([stage.value, "waiting"], numbers.waiting)
            parts.add_metric([stage.value, "leased"], numbers.leased)
            parts.add_metric([stage.value, "failed"], numbers.failed)
            ages.add_metric([stage.value], numbers.oldest_age_s)
            pages.add_metric([stage.value], numbers.pages_waiting)
        return [
            documents,
            parts,
            ages,
            pages,
            _gauge("pincite_ingest_queue_depth", "Parts waiting or leased.", counts.queue_depth),
            _gauge("pincite_ingest_queue_oldest_seconds", "Oldest part.", counts.oldest_age_s),
            _gauge("pincite_ingest_outbox_pending", "Not yet announced.", counts.outbox_pending),
            _gauge("pincite_ingest_expired_leases", "Leases past expiry.", counts.expired_leases),
            _gauge("pincite_active_chunks", "Searchable chunks.", counts.num_chunks_active),
            _gauge("pincite_active_pages", "Searchable pages.", counts.num_pages_active),
        ]


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def render_metrics(counts: IngestCounts) -> bytes:
    """Prometheus text of one reading of the catalog, with nothing of earlier readings."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_IngestCollector(counts))
    return generate_latest(registry)
