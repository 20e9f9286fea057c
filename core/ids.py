"""Ids: prefixed uuid7 for things that happen, uuid5 for things that must be idempotent.

A generation id depends on (document, version_seq, pipeline fingerprint) and a point id on
(generation, ordinal), so that writing the same work twice writes the same rows, and two generations
never share a point, even when a document goes back to earlier bytes.
"""

from __future__ import annotations

import re
import secrets
import uuid

import uuid_utils

_GENERATION_SPACE = uuid.UUID("5b1f1f64-6b0e-5d53-9c35-0f6a0b6c7f11")
_ANSWER_SPACE = uuid.UUID("0f0c5c0e-5a0f-5a7b-8b0d-6a4f2f6d9a3e")
_LOGIN_CODE_PREFIX = "pcl_"
_LOGIN_CODE_BYTES = 18
_PREFIXES = ("doc", "job", "part", "ans", "conv", "key", "ten", "usr", "col", "req")
_PATTERN = re.compile(r"(?P<prefix>[a-z]+)_[0-9a-f]{32}")


def _new(prefix: str) -> str:
    return f"{prefix}_{uuid_utils.uuid7().hex}"


def new_document_id() -> str:
    return _new("doc")


def new_job_id() -> str:
    return _new("job")


def new_part_id() -> str:
    return _new("part")


def new_answer_id() -> str:
    return _new("ans")


def repeatable_answer_id(
    tenant_id: str, subject: str, idempotency_key: str, attempt: int = 0
) -> str:
    """The id of the answer to a request with an `Idempotency-Key`: the same caller and key, the
    same answer. `attempt` counts those that ended in an error. Lengths stand before the parts, so
    that no two callers' names run together."""
    parts = (tenant_id, subject, idempotency_key, str(attempt))
    name = "".join(f"{len(part)}:{part}" for part in parts)
    return f"ans_{uuid.uuid5(_ANSWER_SPACE, name).hex}"


def new_login_code() -> str:
    """A single-use code for the browser, told apart from keys by its prefix."""
    return _LOGIN_CODE_PREFIX + secrets.token_urlsafe(_LOGIN_CODE_BYTES)


def is_login_code(value: str) -> bool:
    return value.startswith(_LOGIN_CODE_PREFIX)


def new_conversation_id() -> str:
    return _new("conv")


def new_key_id() -> str:
    return _new("key")


def new_tenant_id() -> str:
    return _new("ten")


def new_user_id() -> str:
    return _new("usr")


def new_collection_id() -> str:
    return _new("col")


def new_request_id() -> str:
    return _new("req")


def is_id(value: str, prefix: str) -> bool:
    """Whether `value` is a well-formed id of that kind (`prefix` without the underscore)."""
    match = _PATTERN.fullmatch(value)
    return prefix in _PREFIXES and match is not None and match["prefix"] == prefix


def generation_id(document_id: str, version_seq: int, pipeline_fingerprint: str) -> str:
    """uuid5(document_id, version_seq, pipeline fingerprint), as a canonical uuid string."""
    return str(
        uuid.uuid5(_GENERATION_SPACE, f"{document_id}\x1f{version_seq}\x1f{pipeline_fingerprint}")
    )


def point_id(generation: str, ordinal: int) -> str:
    """uuid5(generation_id, ordinal of the chunk from 0), as a canonical uuid string."""
    return str(uuid.uuid5(uuid.UUID(generation), str(ordinal)))
