"""Kinds of columns, the same on both databases.

Times are UTC. Text that is compared or sorted is compared by code point.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    MetaData,
    Text,
    TypeDecorator,
)

if TYPE_CHECKING:
    from sqlalchemy import Dialect

SCHEMA_REVISION = "0001"


class UtcDateTime(TypeDecorator[datetime]):
    """Aware datetimes in and out, UTC; SQLite stores them as text of constant width."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("the catalog takes timezone-aware times only")
        utc = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class JsonText(TypeDecorator[Any]):
    """JSON as text: keys keep their order and numbers their digits, unlike in a JSONB column.

    Escaped to ASCII, because PostgreSQL takes neither NUL nor lone surrogates in text.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, _dialect: Dialect) -> str | None:
        if value is None:
            return None
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    def process_result_value(self, value: str | None, _dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


Words = Text().with_variant(Text(collation="C"), "postgresql")
Serial = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def tenant() -> Column[str]:
    """Whose row it is."""
    return Column("tenant_id", Words, ForeignKey("tenants.tenant_id"), nullable=False)


def document(**options: Any) -> Column[str]:
    """Which document the row is about."""
    return Column(
        "document_id", Words, ForeignKey("documents.document_id"), nullable=False, **options
    )


def at(name: str, *, nullable: bool = False) -> Column[datetime]:
    """A point in time."""
    return Column(name, UtcDateTime, nullable=nullable)
