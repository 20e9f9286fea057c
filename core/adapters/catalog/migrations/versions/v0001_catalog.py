"""The first schema: all tables of the catalog.

Revision 0001, of nothing before it. There is no way down: a release reads its own schema or a later
one restored from a backup.
"""

import sqlalchemy as sa
from alembic import op

from core.adapters.catalog.tables.columns import JsonText, Serial, UtcDateTime, Words

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_access()
    _create_documents()
    _create_work()
    _create_answers()
    _create_operations()


def _create_access() -> None:
    op.create_table(
        "tenants",
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("name", Words, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_tenants"),
        sa.UniqueConstraint("name", name="uq_tenants_name"),
    )
    op.create_table(
        "users",
        sa.Column("user_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("subject", Words, nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_users_tenant_id"),
        sa.PrimaryKeyConstraint("user_id", name="pk_users"),
        sa.UniqueConstraint("tenant_id", "subject", name="uq_users_tenant_id_subject"),
    )
    op.create_table(
        "keys",
        sa.Column("key_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("user_id", Words, nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("secret_sha256", Words, nullable=False),
        sa.Column("scopes", JsonText, nullable=False),
        sa.Column("collections", JsonText, nullable=True),
        sa.Column("is_single_use", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=True),
        sa.Column("revoked_at", UtcDateTime, nullable=True),
        sa.Column("used_at", UtcDateTime, nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_keys_tenant_id"),
        sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name="fk_keys_user_id"),
        sa.PrimaryKeyConstraint("key_id", name="pk_keys"),
        sa.UniqueConstraint("secret_sha256", name="uq_keys_secret_sha256"),
    )
    op.create_index("ix_keys_tenant_id", "keys", ["tenant_id"])
    op.create_table(
        "collections",
        sa.Column("collection_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("name", Words, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="fk_collections_tenant_id"
        ),
        sa.PrimaryKeyConstraint("collection_id", name="pk_collections"),
        sa.UniqueConstraint("tenant_id", "name", name="uq_collections_tenant_id_name"),
    )
    op.create_table(
        "memberships",
        sa.Column("collection_id", Words, nullable=False),
        sa.Column("user_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("role", Words, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collections.collection_id"], name="fk_memberships_collection_id"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="fk_memberships_tenant_id"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name="fk_memberships_user_id"),
        sa.PrimaryKeyConstraint("collection_id", "user_id", name="pk_memberships"),
    )


def _create_documents() -> None:
    op.create_table(
        "documents",
        sa.Column("document_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("bucket", Words, nullable=False),
        sa.Column("key", Words, nullable=False),
        sa.Column("collection", Words, nullable=False),
        sa.Column("newest_seq", sa.Integer(), nullable=False),
        sa.Column("shown_generation_id", Words, nullable=True),
        sa.Column("active_generation_id", Words, nullable=True),
        sa.Column("tombstone_etag", Words, nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("deleted_at", UtcDateTime, nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "collection"],
            ["collections.tenant_id", "collections.name"],
            name="fk_documents_tenant_id_collection",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="fk_documents_tenant_id"
        ),
        sa.PrimaryKeyConstraint("document_id", name="pk_documents"),
        sa.UniqueConstraint("tenant_id", "bucket", "key", name="uq_documents_tenant_id_bucket_key"),
    )
    op.create_index("ix_documents_active_generation_id", "documents", ["active_generation_id"])
    op.create_index("ix_documents_deleted_at", "documents", ["deleted_at"])
    op.create_index("ix_documents_tenant_id_document_id", "documents", ["tenant_id", "document_id"])
    op.create_table(
        "versions",
        sa.Column("document_id", Words, nullable=False),
        sa.Column("version_seq", sa.Integer(), nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("generation_id", Words, nullable=False),
        sa.Column("closed_as", Words, nullable=True),
        sa.Column("etag", Words, nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", Words, nullable=True),
        sa.Column("content_type", sa.Text(), nullable=True),
        sa.Column("last_modified", UtcDateTime, nullable=True),
        sa.Column("accepted_at", UtcDateTime, nullable=False),
        sa.Column("superseded_at", UtcDateTime, nullable=True),
        sa.Column("deleted_at", UtcDateTime, nullable=True),
        sa.Column("bytes_gone_at", UtcDateTime, nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.document_id"], name="fk_versions_document_id"
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_versions_tenant_id"),
        sa.PrimaryKeyConstraint("document_id", "version_seq", name="pk_versions"),
    )
    op.create_index("ix_versions_tenant_id_sha256", "versions", ["tenant_id", "sha256"])
    op.create_table(
        "contents",
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("sha256", Words, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("purging_since", UtcDateTime, nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_contents_tenant_id"),
        sa.PrimaryKeyConstraint("tenant_id", "sha256", name="pk_contents"),
    )
    op.create_table(
        "generations",
        sa.Column("generation_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("document_id", Words, nullable=False),
        sa.Column("version_seq", sa.Integer(), nullable=False),
        sa.Column("pipeline_fingerprint", Words, nullable=False),
        sa.Column("parser_fingerprint", Words, nullable=True),
        sa.Column("stage", Words, nullable=False),
        sa.Column("num_open", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("language", Words, nullable=True),
        sa.Column("page_count", sa.Integer(), nullable=True),
        sa.Column("pages_done", sa.Integer(), nullable=False),
        sa.Column("num_failed_pages", sa.Integer(), nullable=False),
        sa.Column("failed_pages", JsonText, nullable=False),
        sa.Column("warnings", JsonText, nullable=False),
        sa.Column("num_chunks", sa.Integer(), nullable=True),
        sa.Column("num_terms", sa.BigInteger(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("activated_at", UtcDateTime, nullable=True),
        sa.Column("failed_at", UtcDateTime, nullable=True),
        sa.Column("superseded_at", UtcDateTime, nullable=True),
        sa.Column("purge_claimed_at", UtcDateTime, nullable=True),
        sa.Column("purged_at", UtcDateTime, nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id", "version_seq"],
            ["versions.document_id", "versions.version_seq"],
            name="fk_generations_document_id_version_seq",
        ),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.document_id"], name="fk_generations_document_id"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="fk_generations_tenant_id"
        ),
        sa.PrimaryKeyConstraint("generation_id", name="pk_generations"),
    )
    op.create_index("ix_generations_document_id", "generations", ["document_id"])
    op.create_index(
        "ix_generations_purged_at_superseded_at", "generations", ["purged_at", "superseded_at"]
    )


def _create_work() -> None:
    op.create_table(
        "jobs",
        sa.Column("job_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("document_id", Words, nullable=False),
        sa.Column("version_seq", sa.Integer(), nullable=False),
        sa.Column("generation_id", Words, nullable=False),
        sa.Column("queue", Words, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("finished_at", UtcDateTime, nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.document_id"], name="fk_jobs_document_id"
        ),
        sa.ForeignKeyConstraint(
            ["generation_id"], ["generations.generation_id"], name="fk_jobs_generation_id"
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_jobs_tenant_id"),
        sa.PrimaryKeyConstraint("job_id", name="pk_jobs"),
        sa.UniqueConstraint("generation_id", name="uq_jobs_generation_id"),
    )
    op.create_index("ix_jobs_tenant_id_job_id", "jobs", ["tenant_id", "job_id"])
    op.create_table(
        "parts",
        sa.Column("part_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("document_id", Words, nullable=False),
        sa.Column("generation_id", Words, nullable=False),
        sa.Column("stage", Words, nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
        sa.Column("queue", Words, nullable=False),
        sa.Column("state", Words, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("owner", Words, nullable=True),
        sa.Column("failure", Words, nullable=True),
        sa.Column("error_code", Words, nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("error_hint", sa.Text(), nullable=True),
        sa.Column("num_terms", sa.BigInteger(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("not_before", UtcDateTime, nullable=True),
        sa.Column("leased_at", UtcDateTime, nullable=True),
        sa.Column("expires_at", UtcDateTime, nullable=True),
        sa.Column("finished_at", UtcDateTime, nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.document_id"], name="fk_parts_document_id"
        ),
        sa.ForeignKeyConstraint(
            ["generation_id"], ["generations.generation_id"], name="fk_parts_generation_id"
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_parts_tenant_id"),
        sa.PrimaryKeyConstraint("part_id", name="pk_parts"),
        sa.UniqueConstraint(
            "generation_id", "stage", "first", name="uq_parts_generation_id_stage_first"
        ),
    )
    op.create_index("ix_parts_generation_id_state", "parts", ["generation_id", "state"])
    op.create_index("ix_parts_state_expires_at", "parts", ["state", "expires_at"])
    op.create_table(
        "outbox",
        sa.Column("message_id", Serial, autoincrement=True, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("part_id", Words, nullable=False),
        sa.Column("generation_id", Words, nullable=False),
        sa.Column("queue", Words, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("claimed_at", UtcDateTime, nullable=True),
        sa.Column("sent_at", UtcDateTime, nullable=True),
        sa.ForeignKeyConstraint(["part_id"], ["parts.part_id"], name="fk_outbox_part_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_outbox_tenant_id"),
        sa.PrimaryKeyConstraint("message_id", name="pk_outbox"),
        sa.UniqueConstraint("part_id", name="uq_outbox_part_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_generation_id", "outbox", ["generation_id"])
    op.create_index("ix_outbox_sent_at_message_id", "outbox", ["sent_at", "message_id"])
    op.create_table(
        "hints",
        sa.Column("hint_id", Serial, autoincrement=True, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("bucket", Words, nullable=False),
        sa.Column("key", Words, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_hints_tenant_id"),
        sa.PrimaryKeyConstraint("hint_id", name="pk_hints"),
        sa.UniqueConstraint("tenant_id", "bucket", "key", name="uq_hints_tenant_id_bucket_key"),
        sqlite_autoincrement=True,
    )


def _create_answers() -> None:
    op.create_table(
        "conversations",
        sa.Column("conversation_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("subject", Words, nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="fk_conversations_tenant_id"
        ),
        sa.PrimaryKeyConstraint("conversation_id", name="pk_conversations"),
    )
    op.create_index("ix_conversations_tenant_id_subject", "conversations", ["tenant_id", "subject"])
    op.create_table(
        "answers",
        sa.Column("answer_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("subject", Words, nullable=False),
        sa.Column("conversation_id", Words, nullable=True),
        sa.Column("answer_status", Words, nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("answer", JsonText, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("redacted_at", UtcDateTime, nullable=True),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.conversation_id"],
            name="fk_answers_conversation_id",
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_answers_tenant_id"),
        sa.PrimaryKeyConstraint("answer_id", name="pk_answers"),
    )
    op.create_index(
        "ix_answers_tenant_id_subject_answer_id", "answers", ["tenant_id", "subject", "answer_id"]
    )
    op.create_table(
        "answer_events",
        sa.Column("answer_id", Words, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("event", JsonText, nullable=False),
        sa.ForeignKeyConstraint(
            ["answer_id"], ["answers.answer_id"], name="fk_answer_events_answer_id"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="fk_answer_events_tenant_id"
        ),
        sa.PrimaryKeyConstraint("answer_id", "seq", name="pk_answer_events"),
    )
    op.create_table(
        "answer_documents",
        sa.Column("answer_id", Words, nullable=False),
        sa.Column("document_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.ForeignKeyConstraint(
            ["answer_id"], ["answers.answer_id"], name="fk_answer_documents_answer_id"
        ),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.document_id"], name="fk_answer_documents_document_id"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="fk_answer_documents_tenant_id"
        ),
        sa.PrimaryKeyConstraint("answer_id", "document_id", name="pk_answer_documents"),
    )
    op.create_index("ix_answer_documents_document_id", "answer_documents", ["document_id"])
    op.create_table(
        "usage",
        sa.Column("answer_id", Words, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("subject", Words, nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("draft_tokens", sa.BigInteger(), nullable=False),
        sa.Column("accepted_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.Float(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(["answer_id"], ["answers.answer_id"], name="fk_usage_answer_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_usage_tenant_id"),
        sa.PrimaryKeyConstraint("answer_id", name="pk_usage"),
    )
    op.create_index("ix_usage_tenant_id_created_at", "usage", ["tenant_id", "created_at"])
    op.create_table(
        "feedback",
        sa.Column("feedback_id", Serial, autoincrement=True, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("answer_id", Words, nullable=False),
        sa.Column("subject", Words, nullable=False),
        sa.Column("rating", sa.Integer(), nullable=False),
        sa.Column("reason", Words, nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(["answer_id"], ["answers.answer_id"], name="fk_feedback_answer_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_feedback_tenant_id"),
        sa.PrimaryKeyConstraint("feedback_id", name="pk_feedback"),
    )
    op.create_index("ix_feedback_answer_id", "feedback", ["answer_id"])


def _create_operations() -> None:
    op.create_table(
        "audit",
        sa.Column("audit_id", Serial, autoincrement=True, nullable=False),
        sa.Column("tenant_id", Words, nullable=False),
        sa.Column("subject", Words, nullable=False),
        sa.Column("key_id", Words, nullable=True),
        sa.Column("action", Words, nullable=False),
        sa.Column("target", Words, nullable=False),
        sa.Column("request_id", Words, nullable=False),
        sa.Column("outcome", Words, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_audit_tenant_id"),
        sa.PrimaryKeyConstraint("audit_id", name="pk_audit"),
    )
    op.create_index("ix_audit_tenant_id_created_at", "audit", ["tenant_id", "created_at"])
    op.create_table(
        "heartbeats",
        sa.Column("process", Words, nullable=False),
        sa.Column("role", Words, nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("host", Words, nullable=False),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("seen_at", UtcDateTime, nullable=False),
        sa.Column("doing", Words, nullable=True),
        sa.Column("rss_bytes", sa.BigInteger(), nullable=True),
        sa.Column("version", Words, nullable=False),
        sa.PrimaryKeyConstraint("process", name="pk_heartbeats"),
    )
    op.create_table(
        "leaders",
        sa.Column("name", Words, nullable=False),
        sa.Column("owner", Words, nullable=False),
        sa.Column("granted_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leaders"),
    )
