"""Dense and lexical search over points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.domain.access import Principal
    from core.domain.search import IndexManifest, IndexPoint, LegResults, SearchFilter, SparseVector


class VectorIndex(Protocol):
    """Raises IndexUnavailable when the server does not answer, Overloaded when it pushes back."""

    def ensure(self, manifest: IndexManifest) -> IndexManifest:
        """Create the qdrant collection, payload indexes and alias, or check the existing manifest.

        Returns the manifest in force (its `average_terms` may differ from the one given).
        Raises ManifestMismatch when embedder, analyser or schema differ.
        """

    def manifest(self) -> IndexManifest | None:
        """The manifest in force, None before `ensure`."""

    def upsert(self, principal: Principal, points: Sequence[IndexPoint]) -> None:
        """Write points durably (waits). The same ids twice is the same as once."""

    def count(self, principal: Principal, document_id: str, generation_id: str) -> int:
        """Exact number of points of one generation."""

    def delete_generation(self, principal: Principal, document_id: str, generation_id: str) -> None:
        """Remove all points of one generation; none there is a success."""

    def search(
        self,
        principal: Principal,
        *,
        dense: Sequence[float] | None,
        lexical: SparseVector | None,
        limit: int,
        where: SearchFilter,
    ) -> LegResults:
        """Both legs in one batched request, `limit` candidates each, filtered inside the index by
        the Principal's tenant and collections. A leg whose vector is None (or empty) is dropped."""

    def generations(self, principal: Principal) -> Iterator[tuple[str, str]]:
        """Every distinct (document_id, generation_id) that has points, for reconcile."""

    def reencode(self, principal: Principal, average_terms: float, encode: Encode) -> int:
        """Rewrite all lexical vectors of the tenant with another average length; returns how many
        points, and stores the value in the manifest."""


class Encode(Protocol):
    def __call__(self, index_text: str, language: str, average_terms: float) -> SparseVector: ...
