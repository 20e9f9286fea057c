"""The series of one engine: names, aliases, what is read off, what is recorded."""

from engine.metrics import EngineMetrics, FinishedRequest
from engine.outputs import EngineStats, RequestTimings
from engine.request import FinishReason
from tests.engine_serving import metric

STATS = EngineStats(
    num_running=1,
    num_waiting=2,
    num_blocks=10,
    num_used_blocks=5,
    num_preemptions=3,
    prefix_cache_queries=100,
    prefix_cache_hits=50,
    steps_by_tokens={1: 4, 8: 2, 300: 1},
)


def test_stats_are_read_when_asked_for() -> None:
    readings = [None, STATS]
    metrics = EngineMetrics("m", lambda: readings[0])
    assert "num_requests_running" not in metrics.exposition().decode()
    readings.reverse()
    text = metrics.exposition().decode()
    assert metric(text, "pincite_engine_num_requests_running", model_name="m", engine="0") == 1
    assert metric(text, "pincite_engine_num_requests_waiting") == 2
    assert metric(text, "pincite_engine_kv_cache_usage_perc") == 0.5
    assert metric(text, "pincite_engine_num_preemptions_total") == 3
    assert metric(text, "pincite_engine_prefix_cache_queries_total") == 100
    assert metric(text, "pincite_engine_prefix_cache_hits_total") == 50


def test_steps_become_a_histogram() -> None:
    text = EngineMetrics("m", lambda: STATS).exposition().decode()
    name = "pincite_engine_iteration_tokens_total"
    found = [
        metric(text, f"{name}_bucket", le=le) for le in ("1.0", "8.0", "256.0", "512.0", "+Inf")
    ]
    assert found == [4, 6, 6, 7, 7]
    assert metric(text, f"{name}_sum") == 4 + 16 + 300
    assert metric(text, f"{name}_count") == 7


def test_aliases_are_the_same_series_once_more() -> None:
    metrics = EngineMetrics("m", lambda: STATS, has_aliases=True)
    metrics.record_first_token(0.5, 7)
    lines = metrics.exposition().decode().splitlines()
    ours = [line for line in lines if line.startswith("pincite_engine_")]
    theirs = [line for line in lines if line.startswith("vllm:")]
    assert [line.replace("vllm:", "pincite_engine_", 1) for line in theirs] == ours


def test_a_request_that_never_ran_has_no_times_of_running() -> None:
    metrics = EngineMetrics("m", lambda: STATS)
    metrics.record_end(FinishedRequest(FinishReason.ABORT, 7, 0, 1.0, RequestTimings(total_s=1.0)))
    metrics.record_end(FinishedRequest(FinishReason.ERROR, 7, 0, 1.0))
    text = metrics.exposition().decode()
    assert metric(text, "pincite_engine_request_queue_time_seconds_count") == 0
    assert metric(text, "pincite_engine_request_prefill_time_seconds_count") == 0
    assert metric(text, "pincite_engine_e2e_request_latency_seconds_count") == 2
    assert metric(text, "pincite_engine_request_success_total", finished_reason="abort") == 1


def test_two_engines_of_one_process_do_not_mix() -> None:
    first, second = EngineMetrics("a", lambda: STATS), EngineMetrics("b", lambda: STATS)
    first.record_rejection()
    name = "pincite_engine_admission_rejections_total"
    assert metric(first.exposition().decode(), name) == 1
    assert metric(second.exposition().decode(), name) == 0
