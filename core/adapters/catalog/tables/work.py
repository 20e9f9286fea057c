"""Documents, their versions and generations, and the work that makes them searchable.

What happened to a generation is in its times: `activated_at` (it was flipped to), `failed_at` (a
part of it failed for good; cleared by a retry), `superseded_at` (nothing will ever show it
again), `purged_at` (its points are gone).
"""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from core.adapters.catalog.tables.columns import (
    JsonText,
    Serial,
    Words,
    at,
    document,
    metadata,
    tenant,
)

documents = Table(
    "documents",
    metadata,
    Column("document_id", Words, primary_key=True),
    tenant(),
    Column("bucket", Words, nullable=False),
    Column("key", Words, nullable=False),
    Column("collection", Words, nullable=False),
    Column("newest_seq", Integer, nullable=False),
    # decides how the newest version shows: its own, or the active one it was closed as
    Column("shown_generation_id", Words),
    Column("active_generation_id", Words),
    Column("tombstone_etag", Words),
    at("created_at"),
    at("updated_at"),
    at("deleted_at", nullable=True),
    UniqueConstraint("tenant_id", "bucket", "key"),
    ForeignKeyConstraint(
        ["tenant_id", "collection"], ["collections.tenant_id", "collections.name"]
    ),
    Index(None, "tenant_id", "document_id"),
    Index(None, "active_generation_id"),
    Index(None, "deleted_at"),
)

versions = Table(
    "versions",
    metadata,
    document(primary_key=True),
    Column("version_seq", Integer, primary_key=True),
    tenant(),
    Column("generation_id", Words, nullable=False),
    # the active generation that already had these very bytes, for a version that was a no-op
    Column("closed_as", Words),
    Column("etag", Words, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", Words),
    Column("content_type", Text),
    at("last_modified", nullable=True),
    at("accepted_at"),
    at("superseded_at", nullable=True),
    at("deleted_at", nullable=True),
    at("bytes_gone_at", nullable=True),
    Index(None, "tenant_id", "sha256"),
)

# One row for each content whose artifacts may exist. Locked by whoever writes or purges them.
contents = Table(
    "contents",
    metadata,
    Column("tenant_id", Words, ForeignKey("tenants.tenant_id"), primary_key=True),
    Column("sha256", Words, primary_key=True),
    at("created_at"),
    at("purging_since", nullable=True),
)

generations = Table(
    "generations",
    metadata,
    Column("generation_id", Words, primary_key=True),
    tenant(),
    document(),
    Column("version_seq", Integer, nullable=False),
    Column("pipeline_fingerprint", Words, nullable=False),
    Column("parser_fingerprint", Words),
    Column("stage", Words, nullable=False),
    Column("num_open", Integer, nullable=False),  # parts of the open stage that are not done
    Column("title", Text, nullable=False),
    Column("language", Words),
    Column("page_count", Integer),
    Column("pages_done", Integer, nullable=False),
    Column("num_failed_pages", Integer, nullable=False),
    Column("failed_pages", JsonText, nullable=False),
    Column("warnings", JsonText, nullable=False),
    Column("num_chunks", Integer),
    Column("num_terms", BigInteger, nullable=False),
    at("created_at"),
    at("activated_at", nullable=True),
    at("failed_at", nullable=True),
    at("superseded_at", nullable=True),
    at("purge_claimed_at", nullable=True),
    at("purged_at", nullable=True),
    ForeignKeyConstraint(
        ["document_id", "version_seq"], ["versions.document_id", "versions.version_seq"]
    ),
    Index(None, "document_id"),
    Index(None, "purged_at", "superseded_at"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Words, primary_key=True),
    tenant(),
    document(),
    Column("version_seq", Integer, nullable=False),
    Column(
        "generation_id",
        Words,
        ForeignKey("generations.generation_id"),
        nullable=False,
        unique=True,
    ),
    Column("queue", Words, nullable=False),
    at("created_at"),
    at("finished_at", nullable=True),
    Index(None, "tenant_id", "job_id"),
)

parts = Table(
    "parts",
    metadata,
    Column("part_id", Words, primary_key=True),
    tenant(),
    document(),
    Column("generation_id", Words, ForeignKey("generations.generation_id"), nullable=False),
    Column("stage", Words, nullable=False),
    Column("first", Integer, nullable=False),
    Column("last", Integer, nullable=False),
    Column("queue", Words, nullable=False),
    Column("state", Words, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("owner", Words),
    Column("failure", Words),  # why it failed for good; decides the document's status
    Column("error_code", Words),  # the last error, also while it waits for another attempt
    Column("error_message", Text),
    Column("error_hint", Text),
    Column("num_terms", BigInteger, nullable=False),
    at("created_at"),
    at("not_before", nullable=True),
    at("leased_at", nullable=True),
    at("expires_at", nullable=True),
    at("finished_at", nullable=True),
    UniqueConstraint("generation_id", "stage", "first"),
    Index(None, "generation_id", "state"),
    Index(None, "state", "expires_at"),
)

# At most one row a part: unsent, or sent and not leased yet.
outbox = Table(
    "outbox",
    metadata,
    Column("message_id", Serial, primary_key=True, autoincrement=True),
    tenant(),
    Column("part_id", Words, ForeignKey("parts.part_id"), nullable=False, unique=True),
    Column("generation_id", Words, nullable=False),
    Column("queue", Words, nullable=False),
    at("created_at"),
    at("claimed_at", nullable=True),
    at("sent_at", nullable=True),
    Index(None, "generation_id"),
    Index(None, "sent_at", "message_id"),
    sqlite_autoincrement=True,  # a late mark_sent must not hit another message
)

hints = Table(
    "hints",
    metadata,
    Column("hint_id", Serial, primary_key=True, autoincrement=True),
    tenant(),
    Column("bucket", Words, nullable=False),
    Column("key", Words, nullable=False),
    at("created_at"),
    UniqueConstraint("tenant_id", "bucket", "key"),
    sqlite_autoincrement=True,
)
