"""From a plain S3 put to points, with a worker and a sweeper as OS processes of their own."""

from collections.abc import Callable

from core.domain.documents import DocumentStatus
from tests.deployment import Deployment
from tests.invariants import violations
from tests.sample_pdfs import endless_pdf, report_pdf
from tests.stack import wait_until

NOT_A_PDF = b"Just some text, whatever its name says."


def assert_sound(deployment: Deployment) -> None:
    adapters = deployment.adapters
    assert violations(adapters.catalog, adapters.vector_index, deployment.principal) == []


def test_documents_are_put_repeated_replaced_and_deleted(
    deploy: Callable[..., Deployment],
) -> None:
    deployment = deploy()
    worker = deployment.start_worker()
    deployment.start_sweeper()

    deployment.put("reports/one.pdf", report_pdf(1, num_pages=10))
    deployment.put("reports/two.pdf", report_pdf(2, num_pages=3))
    found = deployment.wait_for_ready("reports/one.pdf", "reports/two.pdf")
    one = found["reports/one.pdf"]
    assert (one.collection, one.pages_done, one.pages_total) == ("reports", 10, 10)
    assert one.title == "Station report 1"
    assert_sound(deployment)

    # The same bytes again: nothing happens, though the object's time is new.
    jobs = num_jobs(deployment)
    deployment.put("reports/one.pdf", report_pdf(1, num_pages=10))
    deployment.put("reports/marker.pdf", report_pdf(3, num_pages=1))
    keys = ("reports/one.pdf", "reports/two.pdf", "reports/marker.pdf")
    found = deployment.wait_for_ready(*keys)
    assert found["reports/one.pdf"].version_seq == 1
    assert num_jobs(deployment) == jobs + 1

    # Other bytes under the same key: a new version of the same document.
    deployment.put("reports/one.pdf", report_pdf(1, num_pages=4, edition="second"))
    wait_until(
        lambda: deployment.records()["reports/one.pdf"].version_seq == 2,
        timeout_s=30,
        what="the new version",
    )
    found = deployment.wait_for_ready(*keys)
    replaced = found["reports/one.pdf"]
    assert replaced.document_id == one.document_id
    assert (replaced.active_version_seq, replaced.pages_total) == (2, 4)

    # Gone from the bucket: gone from the catalog, after two listings.
    deployment.remove("reports/two.pdf")
    deployment.wait_for_ready("reports/one.pdf", "reports/marker.pdf")
    assert_sound(deployment)
    assert not [event for event in deployment.events(worker) if event["level"] == "error"]


def num_jobs(deployment: Deployment) -> int:
    with deployment.adapters.catalog.snapshot(deployment.principal) as snapshot:
        return len(snapshot.jobs(limit=200)[0])


def test_bad_files_end_in_their_own_status_while_others_complete(
    deploy: Callable[..., Deployment],
) -> None:
    deployment = deploy(parser={"page_timeout_s": 1.0})
    deployment.start_worker()
    deployment.start_sweeper()
    good = {f"good/{number}.pdf": report_pdf(number, num_pages=2) for number in range(4)}
    expected = dict.fromkeys(good, DocumentStatus.READY)
    bad = {
        "bad/empty.pdf": (b"", DocumentStatus.CORRUPT),
        "bad/text.pdf": (NOT_A_PDF, DocumentStatus.UNSUPPORTED),
        "bad/endless.pdf": (endless_pdf(), DocumentStatus.QUARANTINED),
        "bad/cut.pdf": (b"%PDF-1.7\n1 0 obj\n<<", DocumentStatus.CORRUPT),
    }
    for key, (body, status) in bad.items():
        deployment.put(key, body)
        expected[key] = status
    for key, body in good.items():
        deployment.put(key, body)
    found = deployment.wait_for(expected, timeout_s=90)
    for key in bad:
        problem = found[key].problem
        assert problem is not None
        assert problem.message
    assert found["bad/endless.pdf"].problem.code == "parser_timed_out"  # type: ignore[union-attr]
    assert found["bad/endless.pdf"].attempts == 3
    assert_sound(deployment)

    # A person may try again: three more attempts, and the same end.
    deployment.retry("bad/endless.pdf")
    wait_until(
        lambda: not deployment.records()["bad/endless.pdf"].status.is_final,
        timeout_s=10,
        what="the retry to begin",
    )
    deployment.wait_for(expected, timeout_s=60)


def test_many_documents_and_two_workers(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy()
    keys = [f"many/{number}.pdf" for number in range(12)]
    for number, key in enumerate(keys):
        deployment.put(key, report_pdf(number, num_pages=1 + number % 3))
    deployment.start_sweeper()
    deployment.start_worker("worker1")
    deployment.start_worker("worker2")
    deployment.wait_for_ready(*keys, timeout_s=120)
    assert_sound(deployment)
    done = [
        {event["part_id"] for event in deployment.events(process) if event["event"] == "part.ended"}
        for process in deployment.processes
        if process.name.startswith("worker")
    ]
    assert all(done), "one worker did everything"
    assert not done[0] & done[1], "a part was done twice"
