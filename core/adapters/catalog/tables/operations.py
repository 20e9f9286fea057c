"""What operators look back on, and which processes live."""

from sqlalchemy import BigInteger, Column, Index, Integer, Table

from core.adapters.catalog.tables.columns import Serial, Words, at, metadata, tenant

audit = Table(
    "audit",
    metadata,
    Column("audit_id", Serial, primary_key=True, autoincrement=True),
    tenant(),
    Column("subject", Words, nullable=False),
    Column("key_id", Words),
    Column("action", Words, nullable=False),
    Column("target", Words, nullable=False),
    Column("request_id", Words, nullable=False),
    Column("outcome", Words, nullable=False),
    at("created_at"),
    Index(None, "tenant_id", "created_at"),
)

heartbeats = Table(
    "heartbeats",
    metadata,
    Column("process", Words, primary_key=True),
    Column("role", Words, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("host", Words, nullable=False),
    at("started_at"),
    at("seen_at"),
    Column("doing", Words),
    Column("rss_bytes", BigInteger),
    Column("version", Words, nullable=False),
)

leaders = Table(
    "leaders",
    metadata,
    Column("name", Words, primary_key=True),
    Column("owner", Words, nullable=False),
    at("granted_at"),
    at("expires_at"),
)
