"""From botocore's exceptions to ours: the one place that knows S3's error codes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from core.errors import InvalidInput, NotFound, ObjectChanged, ObjectStoreUnavailable, PinciteError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
_CHANGED = frozenset({"412", "PreconditionFailed"})
# 400s that are about the moment or the credentials, not about what was asked.
_PASSING = frozenset({"RequestTimeout", "SlowDown", "ExpiredToken", "RequestTimeTooSkewed"})
_UNUSABLE_STATUSES = frozenset({400, 414, 416})
_REFUSED = frozenset({"403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"})


@contextmanager
def translated(bucket: str, key: str, *, tolerated: tuple[str, ...] = ()) -> Iterator[None]:
    """Raises NotFound, ObjectChanged, InvalidInput or ObjectStoreUnavailable; nothing for a code
    that is `tolerated`."""
    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code not in tolerated:
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
            raise _from_code(code, status, bucket, key) from error
    except (BotoCoreError, HTTPError, OSError) as error:
        # The SDK's message may carry a signed address: only its type is told.
        raise ObjectStoreUnavailable(
            f"the object store did not answer ({type(error).__name__})", bucket=bucket, key=key
        ) from error


def _from_code(code: str, status: int, bucket: str, key: str) -> PinciteError:
    if code in _MISSING:
        return NotFound("there is no such object", bucket=bucket, key=key)
    if code == "NoSuchBucket":
        return ObjectStoreUnavailable(
            f"there is no bucket '{bucket}'",
            hint="create it, or change objects.buckets and objects.artifacts_bucket",
            bucket=bucket,
        )
    if code in _CHANGED:
        return ObjectChanged("the object was replaced meanwhile", bucket=bucket, key=key)
    if code in _REFUSED:
        return ObjectStoreUnavailable(
            f"the object store refused our credentials ({code})",
            hint="check objects.access_key and objects.secret_key",
            bucket=bucket,
        )
    if status in _UNUSABLE_STATUSES and code not in _PASSING:
        return InvalidInput(f"the object store refused the request ({code})", bucket=bucket)
    return ObjectStoreUnavailable(f"the object store failed ({code})", bucket=bucket, key=key)
