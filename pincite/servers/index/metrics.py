"""Counters and gauges of one index server, in a registry of its own."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from pincite.servers.index.errors import UnknownCollection
from pincite.servers.index.store import IndexStore

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class _StoreCollector(Collector):
    """Reads the gauges when they are scraped, so that they cannot go stale."""

    def __init__(self, store: IndexStore) -> None:
        self._store = store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        names = self._store.names
        yield GaugeMetricFamily("pincite_index_collections", "Collections", value=len(names))
        points = GaugeMetricFamily(
            "pincite_index_points", "Points in a collection", labels=["collection"]
        )
        for name in names:
            try:
                with self._store.use(name) as collection:
                    points.add_metric([name], collection.count())
            except UnknownCollection:
                continue  # deleted while we were looking
        yield points


class IndexMetrics:
    """What `/metrics` shows."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "pincite_index_requests",
            "Requests by operation and HTTP status",
            ["operation", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "pincite_index_operation_seconds",
            "Time of an operation, from the read body to the answer",
            ["kind"],
            buckets=_SECONDS,
            registry=self._registry,
        )

    def watch(self, store: IndexStore) -> None:
        """Show the collections and points of a store from now on."""
        self._registry.register(_StoreCollector(store))

    def record(self, operation: str, kind: str, status: int, seconds: float) -> None:
        """Count one request. `kind` is `update`, `read` or `other`."""
        self._requests.labels(operation, str(status)).inc()
        self._seconds.labels(kind).observe(seconds)

    def exposition(self) -> bytes:
        """The Prometheus text format."""
        return generate_latest(self._registry)
