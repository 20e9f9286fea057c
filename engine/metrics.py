"""What Prometheus reads of an engine: vLLM's suffixes and meaning under `pincite_engine_`, and on
request the same series again under `vllm:`, so that dashboards made for vLLM work.

Recorded by whoever stands between the engine and its clients (the server), never in the step loop.
Counts that only the engine knows are read off its stats when somebody asks. Intervals come from
monotonic stamps of this one process. Labels: `model_name` and `engine` (always "0") only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from engine.request import FinishReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from engine.outputs import EngineStats, RequestTimings

PREFIX: Final = "pincite_engine_"
ALIAS_PREFIX: Final = "vllm:"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LABELS: Final = ("model_name", "engine")
_ENGINE: Final = "0"

# fmt: off
_FIRST_TOKEN_S: Final = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)
_BETWEEN_TOKENS_S: Final = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
)
_REQUEST_S: Final = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
)
_TOKENS: Final = (
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
)
_STEP_TOKENS: Final = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
# fmt: on


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """One request's end. `seconds` counts from when the API was called; `timings` are the engine's
    own, None for a request that was given up."""

    reason: FinishReason
    num_prompt_tokens: int
    num_generation_tokens: int
    seconds: float
    timings: RequestTimings | None = None


class EngineMetrics:
    """The series of one engine in a registry of their own.

    Args:
        model_name: the label of every series.
        stats: the engine's stats now, or None while there is no engine yet.
        has_aliases: everything once more under vLLM's prefix.
    """

    def __init__(
        self, model_name: str, stats: Callable[[], EngineStats | None], *, has_aliases: bool = False
    ) -> None:
        self._values = (model_name, _ENGINE)
        self._counted = CollectorRegistry()
        self._read_off = _ReadOff(self._values, stats)
        self._counted.register(self._read_off)
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(_Prefixed(self._counted, PREFIX))
        if has_aliases:
            self._registry.register(_Prefixed(self._counted, ALIAS_PREFIX))

        self._rejections = self._counter(
            "admission_rejections", "Requests refused since too many waited"
        )
        self._prompt_tokens = self._counter("prompt_tokens", "Prompt tokens processed")
        self._generation_tokens = self._counter("generation_tokens", "Tokens generated")
        self._finished = Counter(
            "request_success",
            "Requests that ended, by reason",
            [*_LABELS, "finished_reason"],
            registry=self._counted,
        )
        for reason in FinishReason:  # a series that is there from the start needs no `or vector(0)`
            self._finished.labels(*self._values, reason.value)
        self._first_token = self._histogram(
            "time_to_first_token_seconds", "From the call of the API", _FIRST_TOKEN_S
        )
        self._between_tokens = self._histogram(
            "inter_token_latency_seconds", "Between two tokens of a request", _BETWEEN_TOKENS_S
        )
        self._request_seconds = {
            name: self._histogram(f"{name}_seconds", text, _REQUEST_S)
            for name, text in (
                ("e2e_request_latency", "From the call of the API to the last token"),
                ("request_queue_time", "Waiting for admission"),
                ("request_prefill_time", "From admission to the first token"),
                ("request_decode_time", "From the first token to the last"),
                ("request_inference_time", "From admission to the last token"),
            )
        }
        self._request_prompt_tokens = self._histogram(
            "request_prompt_tokens", "Prompt tokens of a request", _TOKENS
        )
        self._request_generation_tokens = self._histogram(
            "request_generation_tokens", "Tokens generated for a request", _TOKENS
        )

    def set_cache_config(self, facts: Mapping[str, object]) -> None:
        """What `cache_config_info` tells, once it is known."""
        self._read_off.cache_config = {name: str(value) for name, value in facts.items()}

    def record_rejection(self) -> None:
        """A request that the full queue refused."""
        self._rejections.inc()

    def record_first_token(self, seconds: float, num_prompt_tokens: int) -> None:
        """The prompt is computed; `seconds` since the API was called."""
        self._first_token.observe(seconds)
        self._prompt_tokens.inc(num_prompt_tokens)

    def record_tokens(self, num_tokens: int) -> None:
        """Tokens that were generated."""
        self._generation_tokens.inc(num_tokens)

    def record_end(self, finished: FinishedRequest) -> None:
        """A request ended, for whatever reason."""
        self._finished.labels(*self._values, finished.reason.value).inc()
        self._request_prompt_tokens.observe(finished.num_prompt_tokens)
        self._request_generation_tokens.observe(finished.num_generation_tokens)
        self._request_seconds["e2e_request_latency"].observe(finished.seconds)
        if finished.timings is not None:
            self._record_timings(finished.timings)

    def exposition(self) -> bytes:
        """The Prometheus text format."""
        return generate_latest(self._registry)

    def _record_timings(self, timings: RequestTimings) -> None:
        if timings.queue_s is None:
            return
        for interval_s in timings.inter_token_s:
            self._between_tokens.observe(interval_s)
        seconds = self._request_seconds
        seconds["request_queue_time"].observe(timings.queue_s)
        seconds["request_inference_time"].observe(max(0.0, timings.total_s - timings.queue_s))
        if timings.first_token_s is not None:
            prefill_s = max(0.0, timings.first_token_s - timings.queue_s)
            seconds["request_prefill_time"].observe(prefill_s)
            decode_s = max(0.0, timings.total_s - timings.first_token_s)
            seconds["request_decode_time"].observe(decode_s)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, _LABELS, registry=self._counted).labels(*self._values)

    def _histogram(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        found = Histogram(name, text, _LABELS, buckets=buckets, registry=self._counted)
        return found.labels(*self._values)


class _ReadOff(Collector):
    """What is read off the engine when it is asked for."""

    def __init__(self, values: tuple[str, str], stats: Callable[[], EngineStats | None]) -> None:
        self.cache_config: dict[str, str] = {}
        self._values = values
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        stats = self._stats()
        if stats is None:
            return
        usage = stats.num_used_blocks / stats.num_blocks if stats.num_blocks else 0.0
        for name, text, value in (
            ("num_requests_running", "Requests in the batch", stats.num_running),
            ("num_requests_waiting", "Requests that wait", stats.num_waiting),
            ("kv_cache_usage_perc", "Share of the KV blocks in use, 0 to 1", usage),
        ):
            gauge = GaugeMetricFamily(name, text, labels=_LABELS)
            gauge.add_metric(self._values, value)
            yield gauge
        for name, text, value in (
            ("num_preemptions", "Requests put back to wait", stats.num_preemptions),
            ("prefix_cache_queries", "Prompt tokens looked up", stats.prefix_cache_queries),
            ("prefix_cache_hits", "Prompt tokens found", stats.prefix_cache_hits),
        ):
            counter = CounterMetricFamily(name, text, labels=_LABELS)
            counter.add_metric(self._values, value)
            yield counter
        yield self._steps(stats.steps_by_tokens)
        if self.cache_config:
            info = GaugeMetricFamily(
                "cache_config_info", "How the cache is made", labels=[*_LABELS, *self.cache_config]
            )
            info.add_metric([*self._values, *self.cache_config.values()], 1.0)
            yield info

    def _steps(self, steps_by_tokens: Mapping[int, int]) -> HistogramMetricFamily:
        steps = dict(steps_by_tokens)
        buckets = [
            (str(float(bound)), float(sum(n for size, n in steps.items() if size <= bound)))
            for bound in _STEP_TOKENS
        ]
        buckets.append(("+Inf", float(sum(steps.values()))))
        family = HistogramMetricFamily(
            "iteration_tokens_total", "Tokens computed in a step", labels=_LABELS
        )
        total = float(sum(size * count for size, count in steps.items()))
        family.add_metric(self._values, buckets=buckets, sum_value=total)
        return family


class _Prefixed(Collector):
    """Another registry's metrics under names with a prefix, without the times of creation."""

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        self._registry = registry
        self._prefix = prefix

    def collect(self) -> Iterable[Metric]:
        for metric in self._registry.collect():
            renamed = Metric(self._prefix + metric.name, metric.documentation, metric.type)
            renamed.samples = [
                Sample(self._prefix + sample.name, *sample[1:])
                for sample in metric.samples
                if not sample.name.endswith("_created")
            ]
            yield renamed
