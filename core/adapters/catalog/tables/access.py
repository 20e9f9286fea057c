"""Tenants, users, keys, and who may see which collection."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Table, Text, UniqueConstraint

from core.adapters.catalog.tables.columns import JsonText, Words, at, metadata, tenant

tenants = Table(
    "tenants",
    metadata,
    Column("tenant_id", Words, primary_key=True),
    Column("name", Words, nullable=False, unique=True),
    at("created_at"),
)

users = Table(
    "users",
    metadata,
    Column("user_id", Words, primary_key=True),
    tenant(),
    Column("subject", Words, nullable=False),
    Column("display_name", Text, nullable=False),
    at("created_at"),
    UniqueConstraint("tenant_id", "subject"),
)

keys = Table(
    "keys",
    metadata,
    Column("key_id", Words, primary_key=True),
    tenant(),
    Column("user_id", Words, ForeignKey("users.user_id")),
    Column("name", Text, nullable=False),
    Column("secret_sha256", Words, nullable=False, unique=True),
    Column("scopes", JsonText, nullable=False),
    Column("collections", JsonText),
    Column("is_single_use", Boolean, nullable=False),
    at("created_at"),
    at("expires_at", nullable=True),
    at("revoked_at", nullable=True),
    at("used_at", nullable=True),
    Index(None, "tenant_id"),
)

collections = Table(
    "collections",
    metadata,
    Column("collection_id", Words, primary_key=True),
    tenant(),
    Column("name", Words, nullable=False),
    at("created_at"),
    UniqueConstraint("tenant_id", "name"),
)

memberships = Table(
    "memberships",
    metadata,
    Column("collection_id", Words, ForeignKey("collections.collection_id"), primary_key=True),
    Column("user_id", Words, ForeignKey("users.user_id"), primary_key=True),
    tenant(),
    Column("role", Words, nullable=False),
    at("created_at"),
)
