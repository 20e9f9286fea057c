"""Buckets against the catalog: the rules of workers/watch.py, one by one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.domain.access import Principal
from core.domain.documents import DocumentStatus, KnownObject, ObjectStat, Queue
from core.errors import InvalidInput, ObjectStoreUnavailable
from tests.fakes.job_queue import FakeJobQueue
from tests.pipeline_harness import BUCKET, Pipeline, make_pipeline
from workers.outbox import relay
from workers.watch import BULK_FROM, MAX_DELETED, BucketWatch


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    made = make_pipeline(tmp_path)
    yield made
    made.catalog.close()


@pytest.fixture
def watch(pipeline: Pipeline) -> BucketWatch:
    return BucketWatch(
        object_store=pipeline.store,
        catalog=pipeline.catalog.intake,
        intake=pipeline.intake,
        tenant_ids={BUCKET: pipeline.principal.tenant_id},
    )


def put(pipeline: Pipeline, key: str, text: str = "text") -> None:
    pipeline.store.put(pipeline.principal, BUCKET, key, text.encode())


def remove(pipeline: Pipeline, key: str) -> None:
    pipeline.store.delete(pipeline.principal, BUCKET, key)


def known(pipeline: Pipeline) -> dict[str, KnownObject]:
    return {
        found.key: found
        for found in pipeline.catalog.intake.known_objects(pipeline.principal, BUCKET)
    }


def living(pipeline: Pipeline) -> set[str]:
    return {key for key, found in known(pipeline).items() if not found.is_deleted}


def queues(pipeline: Pipeline) -> list[Queue]:
    queue = FakeJobQueue()
    relay(pipeline.catalog.parts, queue)
    return [name for name, _ in queue.published]


def test_a_put_by_any_client_is_found_once(pipeline: Pipeline, watch: BucketWatch) -> None:
    put(pipeline, "handbook/a.pdf")
    assert watch.reconcile(BUCKET).num_accepted == 1
    assert watch.reconcile(BUCKET).num_accepted == 0
    assert living(pipeline) == {"handbook/a.pdf"}
    pipeline.run()
    assert pipeline.status(known(pipeline)["handbook/a.pdf"].document_id) is DocumentStatus.READY


def test_directory_markers_are_no_documents(pipeline: Pipeline, watch: BucketWatch) -> None:
    put(pipeline, "folder/", "")
    assert watch.reconcile(BUCKET).num_objects == 0
    assert living(pipeline) == set()


def test_changed_bytes_are_a_new_version_of_the_same_document(
    pipeline: Pipeline, watch: BucketWatch
) -> None:
    put(pipeline, "a.pdf", "old")
    watch.reconcile(BUCKET)
    before = known(pipeline)["a.pdf"]
    put(pipeline, "a.pdf", "new")
    assert watch.reconcile(BUCKET).num_accepted == 1
    after = known(pipeline)["a.pdf"]
    assert after.document_id == before.document_id
    assert after.etag != before.etag
    assert pipeline.record(after.document_id).version_seq == 2


def test_single_objects_are_interactive_and_many_are_bulk(
    pipeline: Pipeline, watch: BucketWatch
) -> None:
    for number in range(BULK_FROM - 1):
        put(pipeline, f"few/{number}.pdf")
    watch.reconcile(BUCKET)
    assert set(queues(pipeline)) == {Queue.INTERACTIVE}
    for number in range(BULK_FROM):
        put(pipeline, f"many/{number}.pdf")
    watch.reconcile(BUCKET)
    assert set(queues(pipeline)) == {Queue.BULK}


def test_a_missing_object_goes_after_two_listings_that_agree(
    pipeline: Pipeline, watch: BucketWatch
) -> None:
    put(pipeline, "a.pdf")
    watch.reconcile(BUCKET)
    remove(pipeline, "a.pdf")
    first = watch.reconcile(BUCKET)
    assert (first.num_deleted, first.num_unconfirmed) == (0, 1)
    assert living(pipeline) == {"a.pdf"}
    assert watch.reconcile(BUCKET).num_deleted == 1
    assert living(pipeline) == set()


def test_an_object_that_comes_back_between_the_listings_stays(
    pipeline: Pipeline, watch: BucketWatch
) -> None:
    put(pipeline, "a.pdf")
    watch.reconcile(BUCKET)
    for _ in range(3):
        remove(pipeline, "a.pdf")
        watch.reconcile(BUCKET)
        put(pipeline, "a.pdf")
        watch.reconcile(BUCKET)
    assert living(pipeline) == {"a.pdf"}


def test_an_object_put_after_both_listings_is_not_deleted(
    pipeline: Pipeline, watch: BucketWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both listings missed it, and yet it is there when it would be deleted."""
    put(pipeline, "a.pdf")
    watch.reconcile(BUCKET)
    with monkeypatch.context() as patched:
        patched.setattr(pipeline.store, "list", lambda *_args: iter(()))
        watch.reconcile(BUCKET)
        assert watch.reconcile(BUCKET).num_deleted == 0
    assert living(pipeline) == {"a.pdf"}


def test_a_listing_that_breaks_off_decides_nothing(pipeline: Pipeline, watch: BucketWatch) -> None:
    for number in range(6):
        put(pipeline, f"{number}.pdf")
    watch.reconcile(BUCKET)
    put(pipeline, "0-new.pdf")
    pipeline.store.fail_list_after = 3
    for _ in range(3):
        with pytest.raises(ObjectStoreUnavailable):
            watch.reconcile(BUCKET)
    assert living(pipeline) == {f"{number}.pdf" for number in range(6)}
    pipeline.store.fail_list_after = None
    assert watch.reconcile(BUCKET).num_accepted == 1


def test_a_broken_listing_is_no_second_opinion(pipeline: Pipeline, watch: BucketWatch) -> None:
    put(pipeline, "a.pdf")
    put(pipeline, "b.pdf")
    watch.reconcile(BUCKET)
    remove(pipeline, "a.pdf")
    watch.reconcile(BUCKET)
    put(pipeline, "a.pdf")
    pipeline.store.fail_list_after = 0
    with pytest.raises(ObjectStoreUnavailable):
        watch.reconcile(BUCKET)
    pipeline.store.fail_list_after = None
    assert watch.reconcile(BUCKET).num_deleted == 0
    assert living(pipeline) == {"a.pdf", "b.pdf"}


@pytest.mark.parametrize(
    ("num_documents", "num_gone", "is_held_back"),
    [
        (60, 20, False),  # a third, but few
        (60, 21, True),
        (104, 21, True),
        (105, 21, False),  # exactly a fifth
        (MAX_DELETED, MAX_DELETED, False),  # all of them, but few
        (MAX_DELETED + 1, MAX_DELETED + 1, True),
    ],
)
def test_a_mass_deletion_stops_with_an_alert(
    pipeline: Pipeline, watch: BucketWatch, num_documents: int, num_gone: int, is_held_back: bool
) -> None:
    for number in range(num_documents):
        put(pipeline, f"{number:03d}.pdf", str(number))
    watch.reconcile(BUCKET)
    for number in range(num_gone):
        remove(pipeline, f"{number:03d}.pdf")
    watch.reconcile(BUCKET)
    found = watch.reconcile(BUCKET)
    assert found.num_held_back == (num_gone if is_held_back else 0)
    assert found.num_deleted == (0 if is_held_back else num_gone)
    watch.accept_deletes = True
    watch.reconcile(BUCKET)
    assert len(living(pipeline)) == num_documents - num_gone


def test_a_held_back_deletion_does_not_stop_what_is_new(
    pipeline: Pipeline, watch: BucketWatch
) -> None:
    for number in range(30):
        put(pipeline, f"{number}.pdf", str(number))
    watch.reconcile(BUCKET)
    for number in range(30):
        remove(pipeline, f"{number}.pdf")
    put(pipeline, "new.pdf")
    watch.reconcile(BUCKET)
    assert watch.reconcile(BUCKET).num_held_back == 30
    assert "new.pdf" in living(pipeline)


def test_delete_then_put_of_the_same_key_is_a_new_version(
    pipeline: Pipeline, watch: BucketWatch
) -> None:
    put(pipeline, "a.pdf", "text")
    watch.reconcile(BUCKET)
    document_id = known(pipeline)["a.pdf"].document_id
    remove(pipeline, "a.pdf")
    watch.reconcile(BUCKET)
    watch.reconcile(BUCKET)
    put(pipeline, "a.pdf", "text")
    watch.reconcile(BUCKET)
    watch.reconcile(BUCKET)
    found = known(pipeline)["a.pdf"]
    assert (found.document_id, found.is_deleted) == (document_id, False)
    assert pipeline.record(document_id).version_seq == 2


def test_a_listing_that_is_older_than_a_delete_resurrects_nothing(
    pipeline: Pipeline, watch: BucketWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API removes the object and then the document; the listing saw the object before."""
    put(pipeline, "a.pdf")
    watch.reconcile(BUCKET)
    document_id = known(pipeline)["a.pdf"].document_id
    stale = list(pipeline.store.list(pipeline.principal, BUCKET))
    remove(pipeline, "a.pdf")
    pipeline.catalog.intake.delete(pipeline.principal, document_id, tombstone=False)
    with monkeypatch.context() as patched:
        patched.setattr(pipeline.store, "list", lambda *_args: iter(stale))
        for _ in range(3):
            watch.reconcile(BUCKET)
    assert living(pipeline) == set()


def test_a_tombstone_keeps_a_read_only_object_away_until_it_changes(
    pipeline: Pipeline, watch: BucketWatch
) -> None:
    put(pipeline, "a.pdf", "old")
    watch.reconcile(BUCKET)
    document_id = known(pipeline)["a.pdf"].document_id
    pipeline.catalog.intake.delete(pipeline.principal, document_id, tombstone=True)
    for _ in range(3):
        assert watch.reconcile(BUCKET).num_accepted == 0
    assert living(pipeline) == set()
    put(pipeline, "a.pdf", "new")
    watch.reconcile(BUCKET)
    assert living(pipeline) == {"a.pdf"}


def test_a_hint_is_checked_on_the_object(pipeline: Pipeline, watch: BucketWatch) -> None:
    assert not watch.look_at(BUCKET, "never-put.pdf")
    put(pipeline, "a.pdf")
    assert watch.look_at(BUCKET, "a.pdf")
    assert watch.look_at(BUCKET, "a.pdf")  # twice is once
    assert watch.look_at("somebody-elses", "a.pdf")  # nothing to do, and nothing to list
    assert living(pipeline) == {"a.pdf"}
    assert queues(pipeline) == [Queue.INTERACTIVE]


def test_a_hint_in_a_read_only_bucket_is_left_to_the_listing(
    pipeline: Pipeline, watch: BucketWatch
) -> None:
    watch.read_only = frozenset({BUCKET})
    put(pipeline, "a.pdf")
    assert not watch.look_at(BUCKET, "a.pdf")
    assert living(pipeline) == set()


def test_an_object_that_nobody_can_ask_for_hides_no_other(
    pipeline: Pipeline, watch: BucketWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("a.pdf", "bad.pdf", "c.pdf"):
        put(pipeline, key)
    head = pipeline.store.head

    def refuse(principal: Principal, bucket: str, key: str) -> ObjectStat | None:
        if key == "bad.pdf":
            raise InvalidInput("the object store refused the request")
        return head(principal, bucket, key)

    monkeypatch.setattr(pipeline.store, "head", refuse)
    assert watch.reconcile(BUCKET).num_accepted == 2
    assert living(pipeline) == {"a.pdf", "c.pdf"}


def test_a_lost_leadership_ends_the_round(pipeline: Pipeline, watch: BucketWatch) -> None:
    for number in range(5):
        put(pipeline, f"{number}.pdf")
    answers = iter([True, True, False])
    watch.may_go_on = lambda: next(answers, False)
    assert watch.reconcile(BUCKET).num_accepted == 2
