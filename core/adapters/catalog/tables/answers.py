"""Conversations and answers, with what they cost and how they were liked."""

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, Table, Text

from core.adapters.catalog.tables.columns import (
    JsonText,
    Serial,
    Words,
    at,
    document,
    metadata,
    tenant,
)

conversations = Table(
    "conversations",
    metadata,
    Column("conversation_id", Words, primary_key=True),
    tenant(),
    Column("subject", Words, nullable=False),
    Column("title", Text, nullable=False),
    at("created_at"),
    Index(None, "tenant_id", "subject"),
)

answers = Table(
    "answers",
    metadata,
    Column("answer_id", Words, primary_key=True),
    tenant(),
    Column("subject", Words, nullable=False),
    Column("conversation_id", Words, ForeignKey("conversations.conversation_id")),
    Column("answer_status", Words, nullable=False),
    Column("schema_version", Integer, nullable=False),
    Column("answer", JsonText, nullable=False),
    at("created_at"),
    at("redacted_at", nullable=True),
    Index(None, "tenant_id", "subject", "answer_id"),
)

answer_events = Table(
    "answer_events",
    metadata,
    Column("answer_id", Words, ForeignKey("answers.answer_id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    tenant(),
    Column("event", JsonText, nullable=False),
)

answer_documents = Table(
    "answer_documents",
    metadata,
    Column("answer_id", Words, ForeignKey("answers.answer_id"), primary_key=True),
    document(primary_key=True),
    tenant(),
    Index(None, "document_id"),
)

usage = Table(
    "usage",
    metadata,
    Column("answer_id", Words, ForeignKey("answers.answer_id"), primary_key=True),
    tenant(),
    Column("subject", Words, nullable=False),
    Column("model", Text),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("draft_tokens", BigInteger, nullable=False),
    Column("accepted_tokens", BigInteger, nullable=False),
    Column("cost", Float, nullable=False),
    at("created_at"),
    Index(None, "tenant_id", "created_at"),
)

feedback = Table(
    "feedback",
    metadata,
    Column("feedback_id", Serial, primary_key=True, autoincrement=True),
    tenant(),
    Column("answer_id", Words, ForeignKey("answers.answer_id"), nullable=False),
    Column("subject", Words, nullable=False),
    Column("rating", Integer, nullable=False),
    Column("reason", Words),
    Column("comment", Text),
    at("created_at"),
    Index(None, "answer_id"),
)
