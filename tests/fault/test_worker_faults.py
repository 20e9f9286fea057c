"""Workers killed, stopped, doubled and cut off from their servers while they work.

After each fault everything that was put is ready, with exactly its points, and no process is left.
"""

import os
import signal
from collections.abc import Callable

import psutil
import pytest

from core.domain.documents import Queue, Stage
from tests.deployment import Deployment
from tests.invariants import violations
from tests.sample_pdfs import report_pdf
from tests.stack import Server, wait_until

pytestmark = pytest.mark.slow

KEYS = [f"reports/{number}.pdf" for number in range(3)]


def put_all(deployment: Deployment, *, num_pages: int = 3) -> None:
    for number, key in enumerate(KEYS):
        deployment.put(key, report_pdf(number, num_pages=num_pages))


def leased(deployment: Deployment, stage: Stage | None = None) -> bool:
    """Whether a worker is in the middle of a part (of that stage)."""
    stages = deployment.adapters.catalog.operations.counts().stages
    return any(counts.leased for found, counts in stages.items() if stage is None or found is stage)


def wait_for_work(deployment: Deployment, stage: Stage | None = None) -> None:
    wait_until(
        lambda: leased(deployment, stage), timeout_s=40, what=f"a worker inside {stage or 'a part'}"
    )


def family(process: Server) -> list[psutil.Process]:
    """The process and everything below it."""
    top = psutil.Process(process.pid)
    return [top, *top.children(recursive=True)]


def is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def assert_all_ready(deployment: Deployment, *keys: str) -> None:
    deployment.wait_for_ready(*(keys or KEYS), timeout_s=90)
    adapters = deployment.adapters
    assert violations(adapters.catalog, adapters.vector_index, deployment.principal) == []


@pytest.mark.parametrize("stage", [Stage.PARSE, Stage.EMBED])
def test_a_killed_worker_is_replaced_by_another(
    deployment: Deployment, slow_models: Callable[[float], None], stage: Stage
) -> None:
    slow_models(0.5)
    deployment.start_sweeper()
    worker = deployment.start_worker()
    put_all(deployment, num_pages=8)
    wait_for_work(deployment, stage)
    processes = family(worker)
    os.kill(worker.pid, signal.SIGKILL)  # the main process alone: nobody tells its children
    wait_until(
        lambda: all(is_gone(process) for process in processes),
        timeout_s=15,
        what="the end of the killed worker's children, parser included",
    )
    slow_models(0.0)
    deployment.start_worker("second")
    assert_all_ready(deployment)


def test_a_killed_child_is_replaced_inside_its_worker(
    deployment: Deployment, slow_models: Callable[[float], None]
) -> None:
    slow_models(0.5)
    deployment.start_sweeper()
    worker = deployment.start_worker()
    put_all(deployment)
    wait_for_work(deployment, Stage.EMBED)
    (child,) = psutil.Process(worker.pid).children()
    child.kill()
    slow_models(0.0)
    assert_all_ready(deployment)
    assert worker.is_running


def test_sigterm_hands_the_part_back_at_once(
    deployment: Deployment, slow_models: Callable[[float], None]
) -> None:
    """Celery alone would wait 25 s; the lease would hold the part for as long again."""
    slow_models(0.3)
    deployment.start_sweeper()
    worker = deployment.start_worker()
    put_all(deployment, num_pages=8)
    wait_for_work(deployment, Stage.EMBED)
    processes = family(worker)
    os.kill(worker.pid, signal.SIGTERM)
    wait_until(
        lambda: all(is_gone(process) for process in processes),
        timeout_s=15,
        what="the stopped worker's end",
    )
    assert not leased(deployment), "the part was not handed back"
    slow_models(0.0)
    deployment.start_worker("second")
    assert_all_ready(deployment)
    outcomes = {event.get("outcome") for event in deployment.events(worker)} - {None}
    assert "failed" not in outcomes, "being stopped counted as a failure"


def test_a_frozen_worker_is_overtaken_and_fenced(
    deployment: Deployment, slow_models: Callable[[float], None]
) -> None:
    slow_models(0.3)
    deployment.start_sweeper()
    worker = deployment.start_worker()
    put_all(deployment)
    wait_for_work(deployment, Stage.EMBED)
    processes = family(worker)
    for process in processes:
        process.suspend()
    slow_models(0.0)
    deployment.start_worker("second")
    assert_all_ready(deployment)
    for process in reversed(processes):
        process.resume()
    wait_until(
        lambda: any(event.get("outcome") == "lease_lost" for event in deployment.events(worker)),
        timeout_s=20,
        what="the late worker to see that its lease is lost",
    )
    assert_all_ready(deployment)


def test_a_part_delivered_five_times_is_done_once(deployment: Deployment) -> None:
    put_all(deployment)
    deployment.start_sweeper()
    wait_until(
        lambda: sum(deployment.adapters.job_queue.depth().ready.values()) == len(KEYS),
        timeout_s=20,
        what="the announcements",
    )
    parts = {event["part_id"] for event in queued(deployment)}
    for part_id in parts:
        for _ in range(4):
            deployment.adapters.job_queue.publish(Queue.BULK, part_id)
    workers = [deployment.start_worker(name) for name in ("first", "second")]
    assert_all_ready(deployment)
    done = [
        event["part_id"]
        for worker in workers
        for event in deployment.events(worker)
        if event["event"] == "part.ended"
    ]
    assert len(done) == len(set(done))
    assert parts <= set(done)


def queued(deployment: Deployment) -> list[dict[str, str]]:
    """The part ids of what waits in the broker."""
    import base64
    import json

    import redis

    url = deployment.settings.broker.url.get_secret_value()
    with redis.Redis.from_url(url) as client:
        raw = [
            message for queue in Queue for message in client.lrange(f"pincite:{queue.value}", 0, -1)
        ]
    bodies = [json.loads(base64.b64decode(json.loads(message)["body"])) for message in raw]
    return [{"part_id": body[0][0]} for body in bodies]


def test_a_broker_that_forgets_everything_delays_only(deployment: Deployment) -> None:
    import redis

    put_all(deployment)
    deployment.start_sweeper()
    wait_until(lambda: len(queued(deployment)) == len(KEYS), timeout_s=20, what="announcements")
    with redis.Redis.from_url(deployment.settings.broker.url.get_secret_value()) as client:
        client.flushdb()
    assert queued(deployment) == []
    deployment.start_worker()
    assert_all_ready(deployment)


def test_servers_fail_one_after_the_other_and_come_back(
    deployment: Deployment, slow_models: Callable[[float], None]
) -> None:
    """Index, objects, models and broker: the work waits, is not blamed, and goes on."""
    slow_models(0.1)
    deployment.start_sweeper()
    worker = deployment.start_worker()
    faults: dict[str, Callable[[], Callable[[], None]]] = {
        "index": lambda: killed(deployment.servers.index.server),
        "objects": lambda: killed(deployment.servers.objects.server),
        "models": lambda: refusing(deployment),
    }
    done: list[str] = []
    for number, (name, strike) in enumerate(faults.items()):
        key = f"reports/{name}.pdf"
        deployment.put(key, report_pdf(number, num_pages=3))
        wait_for_work(deployment)
        num_failed = count_failed(deployment, worker)
        restore = strike()
        wait_until(
            lambda num_failed=num_failed: count_failed(deployment, worker) > num_failed,  # type: ignore[misc]
            timeout_s=40,
            what=f"the worker to notice that {name} is gone",
        )
        restore()
        done.append(key)
        assert_all_ready(deployment, *done)

    broker = deployment.servers.broker.server
    deployment.put("reports/broker.pdf", report_pdf(8, num_pages=3))
    wait_for_work(deployment)
    broker.kill()
    deployment.put("reports/late.pdf", report_pdf(9, num_pages=2))
    wait_until(
        lambda: "reports/late.pdf" in deployment.records(),
        timeout_s=20,
        what="an object accepted without a broker",
    )
    broker.start()
    assert_all_ready(deployment, *done, "reports/broker.pdf", "reports/late.pdf")
    outcomes = {event.get("outcome") for event in deployment.events(worker)}
    assert "failed" not in outcomes, "waiting for a server counted as a failed attempt"


def killed(server: Server) -> Callable[[], None]:
    server.kill()
    return server.start


def refusing(deployment: Deployment) -> Callable[[], None]:
    models = deployment.servers.models
    models.status = 503

    def restore() -> None:
        models.status = 200

    return restore


def count_failed(deployment: Deployment, worker: Server) -> int:
    return sum(event["event"] == "part.failed" for event in deployment.events(worker))


def test_a_document_deleted_while_it_is_worked_on_stays_deleted(
    deployment: Deployment, slow_models: Callable[[float], None]
) -> None:
    slow_models(0.5)
    deployment.start_sweeper()
    deployment.start_worker()
    put_all(deployment, num_pages=8)
    wait_for_work(deployment, Stage.EMBED)
    doomed, *others = KEYS
    deployment.remove(doomed)
    wait_until(lambda: doomed not in deployment.records(), timeout_s=20, what="the deletion")
    slow_models(0.0)
    assert_all_ready(deployment, *others)
