"""Who is asking: every read of chunks, answers or bytes carries a Principal."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from core.errors import NotPermitted


class Scope(StrEnum):
    """What a key may do. `ADMIN` includes all the others."""

    SEARCH = "search"  # search, ask, read documents and their pages
    INGEST = "ingest"  # add, replace, delete and retry documents
    OPS = "ops"  # queue, processes, metrics
    EXPLAIN = "explain"  # see retrieval scores
    ADMIN = "admin"  # keys and tenants


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller.

    `collections` is the set of collection names the caller may see, None meaning all of the tenant.
    """

    tenant_id: str
    subject: str
    scopes: frozenset[Scope]
    collections: frozenset[str] | None = None
    key_id: str | None = field(default=None, compare=False)

    @classmethod
    def system(cls, tenant_id: str, purpose: str) -> Principal:
        """The pipeline acting for one tenant (worker, sweeper, renderer)."""
        return cls(tenant_id, f"system:{purpose}", frozenset(Scope))

    def has(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def require(self, scope: Scope) -> None:
        """Raises NotPermitted unless the scope is held."""
        if not self.has(scope):
            raise NotPermitted(
                f"this key lacks the scope '{scope}'", hint="use a key that has it", scope=scope
            )

    def may_see(self, collection: str) -> bool:
        return self.collections is None or collection in self.collections
