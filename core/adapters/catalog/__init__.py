"""The catalog over SQL: SQLite (WAL) or PostgreSQL, one set of statements for both.

Knows nothing of Celery, object stores or the index.
"""

from core.adapters.catalog.catalog import SqlCatalog

__all__ = ["SqlCatalog"]
