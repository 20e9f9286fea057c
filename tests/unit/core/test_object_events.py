"""Every known shape of a bucket event names the object it is about; everything else is refused."""

import json

import pytest

from core.errors import InvalidInput
from core.object_events import parse_object_events


def s3_record(bucket: str, key: str, version: str = "2.1") -> dict[str, object]:
    return {
        "eventVersion": version,
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Put",
        "s3": {
            "s3SchemaVersion": "1.0",
            "bucket": {"name": bucket, "arn": f"arn:aws:s3:::{bucket}"},
            "object": {"key": key, "size": 1, "eTag": "x", "sequencer": "0055"},
        },
    }


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.4", "2.6"])
def test_s3_records_are_form_encoded(version: str) -> None:
    records = [
        s3_record("documents", "handbook/two+words+%2B+%25.pdf", version),
        s3_record("documents", "%C3%9Cbersicht%2Fa.pdf", version),
    ]
    assert parse_object_events({"Records": records}) == [
        ("documents", "handbook/two words + %.pdf"),
        ("documents", "Übersicht/a.pdf"),
    ]


def test_an_object_named_twice_is_looked_at_once() -> None:
    record = s3_record("documents", "a.pdf")
    assert parse_object_events({"Records": [record, record]}) == [("documents", "a.pdf")]


def test_the_test_event_needs_nothing() -> None:
    payload = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "documents"}
    assert parse_object_events(payload) == []


def test_sns_wraps_the_s3_shape() -> None:
    inner = {"Records": [s3_record("documents", "a+b.pdf")]}
    payload = {"Type": "Notification", "TopicArn": "x", "Message": json.dumps(inner)}
    assert parse_object_events(payload) == [("documents", "a b.pdf")]


def test_eventbridge_is_not_encoded() -> None:
    payload = {
        "version": "0",
        "source": "aws.s3",
        "detail-type": "Object Created",
        "detail": {"bucket": {"name": "documents"}, "object": {"key": "a+b %41.pdf", "size": 1}},
    }
    assert parse_object_events(payload) == [("documents", "a+b %41.pdf")]


def test_r2_is_not_encoded() -> None:
    payload = {
        "account": "x",
        "action": "PutObject",
        "bucket": "documents",
        "object": {"key": "a+b.pdf", "size": 1, "eTag": "x"},
        "eventTime": "2026-01-01T00:00:00Z",
    }
    assert parse_object_events(payload) == [("documents", "a+b.pdf")]


def seaweedfs(key: str, event_type: str = "create", **message: object) -> dict[str, object]:
    return {"key": key, "event_type": event_type, "message": message}


FILE = {"name": "a+b.pdf", "is_directory": False}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            seaweedfs("/buckets/documents/x/a+b.pdf", new_entry=FILE),
            [("documents", "x/a+b.pdf")],
        ),
        (
            seaweedfs("/buckets/documents/a+b.pdf", "update", old_entry=FILE, new_entry=FILE),
            [("documents", "a+b.pdf")],
        ),
        (
            seaweedfs("/buckets/documents/a+b.pdf", "delete", old_entry=FILE),
            [("documents", "a+b.pdf")],
        ),
        (
            seaweedfs(
                "/buckets/documents/old.pdf",
                "rename",
                old_entry={"name": "old.pdf"},
                new_entry={"name": "new.pdf"},
                new_parent_path="/buckets/documents/x",
            ),
            [("documents", "old.pdf"), ("documents", "x/new.pdf")],
        ),
        (seaweedfs("/buckets/documents/x", new_entry={"name": "x", "is_directory": True}), []),
        (seaweedfs("/buckets/documents/.uploads/1/0001.part", new_entry=FILE), []),
        (seaweedfs("/etc/iam/identity.json", new_entry=FILE), []),
        (seaweedfs("/buckets/documents", new_entry=FILE), []),
    ],
)
def test_seaweedfs_speaks_of_filer_paths(
    payload: dict[str, object], expected: list[tuple[str, str]]
) -> None:
    assert parse_object_events(payload) == expected


def test_directory_markers_are_no_documents() -> None:
    assert parse_object_events({"Records": [s3_record("documents", "folder%2F")]}) == []


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        "text",
        {},
        {"Records": [{"eventVersion": "2.1"}]},
        {"Records": "text"},
        {"Records": [s3_record("documents", "a", version="3.0")]},
        {"Records": [{"eventVersion": "2.1", "s3": {"bucket": {"name": 1}, "object": {"key": 2}}}]},
        {"Type": "Notification", "Message": "not json"},
        {"source": "aws.s3", "detail": {"bucket": "documents"}},
        {"action": "PutObject", "object": {}, "bucket": "documents"},
        {"event_type": "create", "message": None, "key": "/buckets/documents/a"},
    ],
)
def test_other_shapes_are_refused(payload: object) -> None:
    with pytest.raises(InvalidInput):
        parse_object_events(payload)
