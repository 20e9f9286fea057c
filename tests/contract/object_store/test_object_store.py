"""What every `ObjectStore` promises (core/ports/object_store.py)."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from core.domain.access import Principal
from core.domain.documents import ObjectStat
from core.errors import DocumentTooLarge, InvalidInput, NotFound, NotPermitted, ObjectChanged
from core.ports.object_store import ObjectStore

BUCKET, OTHER_BUCKET, ARTIFACTS = "documents", "others", "pincite-artifacts"
AWKWARD_KEYS = [
    "plain.pdf",
    "folder/deep/er/file.pdf",
    "two words + plus % percent.pdf",
    "Maßnahmen/Übersicht – Prüfung.pdf",
    "日本語/資料.pdf",
    "quote'\"&<>.pdf",
]


def test_what_was_put_is_there_as_it_was(store: ObjectStore, owner: Principal) -> None:
    written = store.put(owner, BUCKET, "a.pdf", b"some bytes", content_type="application/pdf")
    found = store.head(owner, BUCKET, "a.pdf")
    assert found is not None
    assert (found.etag, found.size_bytes) == (written.etag, 10)
    assert found.content_type == written.content_type == "application/pdf"
    assert abs((found.last_modified - written.last_modified).total_seconds()) < 60
    assert store.read(owner, BUCKET, "a.pdf") == b"some bytes"


@pytest.mark.parametrize("key", AWKWARD_KEYS)
def test_keys_are_not_mangled(store: ObjectStore, owner: Principal, key: str) -> None:
    store.put(owner, BUCKET, key, key.encode())
    assert [stat.key for stat in store.list(owner, BUCKET)] == [key]
    assert store.read(owner, BUCKET, key) == key.encode()
    stat = store.head(owner, BUCKET, key)
    assert stat is not None
    store.copy(owner, stat, ARTIFACTS, f"ten_a/{key}")
    assert store.read(owner, ARTIFACTS, f"ten_a/{key}") == key.encode()


def test_an_empty_object_is_an_object(store: ObjectStore, owner: Principal) -> None:
    store.put(owner, BUCKET, "empty", b"")
    found = store.head(owner, BUCKET, "empty")
    assert found is not None
    assert found.size_bytes == 0
    assert store.read(owner, BUCKET, "empty") == b""


def test_a_large_stream_arrives_whole(
    store: ObjectStore, owner: Principal, target: Callable[[], Path]
) -> None:
    body = bytes(range(256)) * (20 * 4096) + b"the last odd bytes"  # 20 MiB: three parts
    written = store.put(owner, BUCKET, "large", BytesIO(body))
    assert written.size_bytes == len(body)
    stat = store.head(owner, BUCKET, "large")
    assert stat is not None
    assert stat.etag == written.etag
    done = store.download(owner, stat, target(), max_bytes=len(body))
    assert done.sha256 == hashlib.sha256(body).hexdigest()
    assert target().read_bytes() == body


def test_a_stream_that_fails_leaves_no_object(store: ObjectStore, owner: Principal) -> None:
    class Broken(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 9 * 1024 * 1024:
                raise ValueError("the sender went away")
            return super().read(size)

    with pytest.raises(ValueError, match="went away"):
        store.put(owner, BUCKET, "partial", Broken(bytes(20 * 1024 * 1024)))
    assert store.head(owner, BUCKET, "partial") is None
    assert list(store.list(owner, BUCKET)) == []


def test_ranges_are_inclusive_and_tell_the_whole_size(store: ObjectStore, owner: Principal) -> None:
    store.put(owner, BUCKET, "a", b"0123456789")
    for byte_range, expected in (((0, 0), b"0"), ((2, 5), b"2345"), ((7, 99), b"789")):
        with store.open(owner, BUCKET, "a", byte_range=byte_range) as stream:
            assert b"".join(stream.chunks) == expected
            assert stream.total_bytes == stream.stat.size_bytes == 10
    with (
        pytest.raises(InvalidInput),
        store.open(owner, BUCKET, "a", byte_range=(10, 12)) as stream,
    ):
        list(stream.chunks)


def test_a_replaced_object_is_not_mistaken_for_the_announced_one(
    store: ObjectStore, owner: Principal, target: Callable[[], Path]
) -> None:
    old = store.put(owner, BUCKET, "a", b"old")
    store.put(owner, BUCKET, "a", b"new")
    with pytest.raises(ObjectChanged):
        store.download(owner, old, target(), max_bytes=100)
    with pytest.raises(ObjectChanged):
        store.copy(owner, old, ARTIFACTS, "ten_a/copied")
    with pytest.raises(ObjectChanged), store.open(owner, BUCKET, "a", if_match=old.etag):
        pass
    assert store.head(owner, ARTIFACTS, "ten_a/copied") is None


def test_what_is_not_there_says_so(
    store: ObjectStore, owner: Principal, target: Callable[[], Path]
) -> None:
    gone = store.put(owner, BUCKET, "gone", b"x")
    store.delete(owner, BUCKET, "gone")
    store.delete(owner, BUCKET, "gone")  # a success as well
    assert store.head(owner, BUCKET, "gone") is None
    for attempt in (
        lambda: store.read(owner, BUCKET, "gone"),
        lambda: store.download(owner, gone, target(), max_bytes=100),
        lambda: store.copy(owner, gone, ARTIFACTS, "ten_a/copied"),
    ):
        with pytest.raises(NotFound):
            attempt()


def test_a_download_stops_at_its_limit(
    store: ObjectStore, owner: Principal, target: Callable[[], Path]
) -> None:
    stat = store.put(owner, BUCKET, "a", b"0123456789")
    with pytest.raises(DocumentTooLarge):
        store.download(owner, stat, target(), max_bytes=9)
    assert store.download(owner, stat, target(), max_bytes=10).stat.etag == stat.etag


def test_a_prefix_is_listed_and_deleted_alone(store: ObjectStore, owner: Principal) -> None:
    for key in ("ten_a/one/x", "ten_a/one/y", "ten_a/one/y/z", "ten_a/onerous", "ten_a/two/x"):
        store.put(owner, ARTIFACTS, key, b"x")
    assert {stat.key for stat in store.list(owner, ARTIFACTS, "ten_a/one/")} == {
        "ten_a/one/x",
        "ten_a/one/y",
        "ten_a/one/y/z",
    }
    assert store.delete_prefix(owner, ARTIFACTS, "ten_a/one/") == 3
    assert {stat.key for stat in store.list(owner, ARTIFACTS, "ten_a/")} == {
        "ten_a/onerous",
        "ten_a/two/x",
    }
    assert store.delete_prefix(owner, ARTIFACTS, "ten_a/one/") == 0


def test_a_long_listing_has_every_object_once(store: ObjectStore, owner: Principal) -> None:
    """More than one page, with names that order differently by path segment and by key."""
    keys = {f"{'a/' if number % 3 else 'a-'}{number:04d}.pdf" for number in range(1_100)}
    keys |= {"a", "a.pdf", "a/b/c.pdf", "b.pdf"}
    for key in keys:
        store.put(owner, BUCKET, key, b"x")
    listed = [stat.key for stat in store.list(owner, BUCKET)]
    assert len(listed) == len(set(listed))
    assert set(listed) == keys
    assert store.delete_prefix(owner, BUCKET, "") == len(keys)


def test_a_bucket_can_be_ensured_twice(store: ObjectStore, owner: Principal) -> None:
    store.put(owner, BUCKET, "kept", b"x")
    store.ensure_bucket(BUCKET)
    store.ensure_bucket(BUCKET)
    assert store.head(owner, BUCKET, "kept") is not None


def test_another_tenant_sees_and_changes_nothing(
    store: ObjectStore, owner: Principal, stranger: Principal, target: Callable[[], Path]
) -> None:
    document = store.put(owner, BUCKET, "a", b"x")
    artifact = store.put(owner, ARTIFACTS, "ten_a/x", b"x")
    theirs = store.put(stranger, OTHER_BUCKET, "b", b"x")
    attempts: list[Callable[[ObjectStat], object]] = [
        lambda stat: store.head(stranger, stat.bucket, stat.key),
        lambda stat: store.read(stranger, stat.bucket, stat.key),
        lambda stat: store.open(stranger, stat.bucket, stat.key).__enter__(),
        lambda stat: store.download(stranger, stat, target(), max_bytes=100),
        lambda stat: store.put(stranger, stat.bucket, stat.key, b"y"),
        lambda stat: store.delete(stranger, stat.bucket, stat.key),
        lambda stat: store.delete_prefix(stranger, stat.bucket, stat.key),
        lambda stat: list(store.list(stranger, stat.bucket, stat.key)),
        lambda stat: store.copy(stranger, stat, OTHER_BUCKET, "stolen"),
        lambda stat: store.copy(stranger, theirs, stat.bucket, stat.key),
    ]
    for stat in (document, artifact, replace(document, bucket="nobodys")):
        for attempt in attempts:
            with pytest.raises(NotPermitted):
                attempt(stat)
    with pytest.raises(NotPermitted):  # the whole artifacts bucket is nobody's to list
        list(store.list(owner, ARTIFACTS))
    assert store.read(owner, BUCKET, "a") == store.read(owner, ARTIFACTS, "ten_a/x") == b"x"
