"""From botocore's exceptions to ours: the one place that knows S3's error codes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from core.errors import InvalidInput, NotFound, ObjectChanged, ObjectStoreUnavailable, PinciteError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MISSING = frozenset({"404", "NoSuchKey", "NoSuchBucket", "NotFound"})
_CHANGED = frozenset({"412", "PreconditionFailed"})
_UNUSABLE = frozenset({"InvalidRange", "416", "KeyTooLongError", "InvalidBucketName"})
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
            raise _from_code(code, bucket, key) from error
    except (BotoCoreError, HTTPError, OSError) as error:
        # The SDK's message may carry a signed address: only its type is told.
        raise ObjectStoreUnavailable(
            f"the object store did not answer ({type(error).__name__})", bucket=bucket, key=key
        ) from error


def _from_code(code: str, bucket: str, key: str) -> PinciteError:
    if code in _MISSING:
        return NotFound("there is no such object", bucket=bucket, key=key)
    if code in _CHANGED:
        return ObjectChanged("the object was replaced meanwhile", bucket=bucket, key=key)
    if code in _UNUSABLE:
        return InvalidInput(f"the object store refused the request ({code})", bucket=bucket)
    if code in _REFUSED:
        return ObjectStoreUnavailable(
            f"the object store refused our credentials ({code})",
            hint="check objects.access_key and objects.secret_key",
            bucket=bucket,
        )
    return ObjectStoreUnavailable(f"the object store failed ({code})", bucket=bucket, key=key)
