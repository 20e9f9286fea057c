"""Payloads of bucket events -> which objects to look at. Pure; nothing in a payload is trusted.

An event is a hint: it names a bucket and a key, and whoever acts on it asks the store what lies
there. So sizes, etags, event kinds and their order are not even read. Known shapes:

- S3 `Records` (AWS through SQS, SNS or a webhook; MinIO, Ceph, moto), event version 2.x. Keys are
  form encoded there and only there.
- AWS EventBridge (`detail.bucket.name`, `detail.object.key`).
- SeaweedFS's webhook (`key` is the filer's path `/buckets/<bucket>/<key>`).
- Cloudflare R2 (`bucket`, `object.key`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from core.errors import InvalidInput

_FILER_ROOT = "/buckets/"
_UPLOADS = ".uploads/"  # SeaweedFS keeps the parts of unfinished multipart uploads there


class ObjectReference(NamedTuple):
    bucket: str
    key: str


def parse_object_events(payload: object) -> list[ObjectReference]:
    """The objects that a decoded JSON payload speaks of, each once, in order.

    Empty for what needs no action (S3's test event, directories, parts of unfinished uploads).
    Raises InvalidInput for a shape that is none of the known ones.
    """
    if not isinstance(payload, Mapping):
        raise InvalidInput("an object event must be a JSON object")
    try:
        found = _references(payload)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"this object event lacks a field ({error})") from error
    return list(dict.fromkeys(ref for ref in found if ref.key and not ref.key.endswith("/")))


def _references(payload: Mapping[str, Any]) -> list[ObjectReference]:
    if "Records" in payload:
        return [_from_record(record) for record in payload["Records"]]
    if payload.get("Event") == "s3:TestEvent":
        return []
    if payload.get("Type") == "Notification" and isinstance(payload.get("Message"), str):
        return parse_object_events(_decoded(payload["Message"]))  # SNS wraps the S3 shape
    if "detail" in payload and payload.get("source") == "aws.s3":
        detail = payload["detail"]
        return [ObjectReference(_text(detail["bucket"]["name"]), _text(detail["object"]["key"]))]
    if "event_type" in payload and "message" in payload:
        return _from_filer(payload)
    if "action" in payload and "object" in payload:
        return [ObjectReference(_text(payload["bucket"]), _text(payload["object"]["key"]))]
    raise InvalidInput(
        "this is no object event we know",
        hint="send S3 Records, EventBridge, SeaweedFS webhook or R2 events",
    )


def _from_record(record: Mapping[str, Any]) -> ObjectReference:
    version = str(record.get("eventVersion", "2.0"))
    if not version.startswith("2."):
        raise InvalidInput(f"S3 events of version {version!r} are not known")
    described = record["s3"]
    return ObjectReference(
        _text(described["bucket"]["name"]), unquote_plus(_text(described["object"]["key"]))
    )


def _from_filer(payload: Mapping[str, Any]) -> list[ObjectReference]:
    message = payload["message"]
    new_entry, old_entry = message.get("new_entry"), message.get("old_entry")
    entry = new_entry or old_entry or {}
    if entry.get("is_directory"):
        return []
    paths = [_text(payload["key"])]
    if new_entry and message.get("new_parent_path"):  # a rename ends somewhere else
        paths.append(f"{_text(message['new_parent_path']).rstrip('/')}/{_text(new_entry['name'])}")
    found = []
    for path in paths:
        bucket, _, key = path.removeprefix(_FILER_ROOT).partition("/")
        if path.startswith(_FILER_ROOT) and not key.startswith(_UPLOADS):
            found.append(ObjectReference(bucket, key))
    return found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is not text")
    return value


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput("the wrapped message is not JSON") from error
