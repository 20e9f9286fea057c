"""Counters and gauges of one model server, in a registry of its own."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from pincite.servers.models.queueing import BatchItem, Priority, WorkQueue

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_TEXTS = (1, 2, 4, 8, 16, 32, 64)


class _QueueCollector(Collector):
    def __init__(self, queue: WorkQueue) -> None:
        self._queue = queue

    def collect(self) -> Iterator[GaugeMetricFamily]:
        waiting = GaugeMetricFamily("pincite_models_waiting", "Texts that wait", labels=["level"])
        for level in Priority:
            waiting.add_metric([level.value], self._queue.depth(level))
        yield waiting


class ModelsMetrics:
    """What `/metrics` shows."""

    def __init__(self, queue: WorkQueue) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(_QueueCollector(queue))
        self._requests = Counter(
            "pincite_models_requests",
            "Requests by level and HTTP status",
            ["level", "status"],
            registry=self._registry,
        )
        self._request_seconds = Histogram(
            "pincite_models_request_seconds",
            "Time of an answered request, waiting included",
            ["level"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._batch_texts = Histogram(
            "pincite_models_batch_texts",
            "Texts that went through the model together",
            ["level"],
            buckets=_TEXTS,
            registry=self._registry,
        )
        self._batch_seconds = Histogram(
            "pincite_models_batch_seconds",
            "Time of a batch in the model",
            ["level"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._tokens = Counter(
            "pincite_models_tokens", "Tokens embedded", ["level"], registry=self._registry
        )

    def record_batch(self, batch: list[BatchItem], seconds: float) -> None:
        level = batch[0].job.priority.value
        self._batch_texts.labels(level).observe(len(batch))
        self._batch_seconds.labels(level).observe(seconds)
        self._tokens.labels(level).inc(sum(item.num_tokens for item in batch))

    def record_request(self, level: str, status: int, seconds: float) -> None:
        self._requests.labels(level, str(status)).inc()
        if status == 200:
            self._request_seconds.labels(level).observe(seconds)

    def exposition(self) -> bytes:
        """The Prometheus text format."""
        return generate_latest(self._registry)
