"""The tables, as SQLAlchemy sees them; migrations/ is what makes them.

Every row carries its tenant, but for what belongs to processes (heartbeats, leaders).
"""

from core.adapters.catalog.tables.access import collections, keys, memberships, tenants, users
from core.adapters.catalog.tables.answers import (
    answer_documents,
    answer_events,
    answers,
    conversations,
    feedback,
    usage,
)
from core.adapters.catalog.tables.columns import SCHEMA_REVISION, metadata
from core.adapters.catalog.tables.operations import audit, heartbeats, leaders
from core.adapters.catalog.tables.work import (
    contents,
    documents,
    generations,
    hints,
    jobs,
    outbox,
    parts,
    versions,
)

__all__ = [
    "SCHEMA_REVISION",
    "answer_documents",
    "answer_events",
    "answers",
    "audit",
    "collections",
    "contents",
    "conversations",
    "documents",
    "feedback",
    "generations",
    "heartbeats",
    "hints",
    "jobs",
    "keys",
    "leaders",
    "memberships",
    "metadata",
    "outbox",
    "parts",
    "tenants",
    "usage",
    "users",
    "versions",
]
