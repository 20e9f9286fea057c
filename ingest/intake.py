"""From an object that somebody saw to a document version that will be worked on.

Every door (the API, the command line, the bucket's listing, an event) goes through `Intake.accept`,
so that each version is made with the fingerprint and the first part that this release would use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.batching import first_parse_part
from ingest.fingerprints import pipeline_fingerprint

if TYPE_CHECKING:
    from core.domain.access import Principal
    from core.domain.documents import Accepted, ObservedObject, Queue
    from core.ports.catalog import IntakeCatalog
    from core.settings import Settings


class Intake:
    """Needs nothing but the catalog: documents are accepted while every other server is down."""

    def __init__(self, catalog: IntakeCatalog, settings: Settings) -> None:
        self._catalog = catalog
        self.fingerprint = str(pipeline_fingerprint(settings))
        self._first_part = first_parse_part(settings.parser.pages_per_part)

    def accept(self, principal: Principal, observed: ObservedObject, *, queue: Queue) -> Accepted:
        """See `core.ports.catalog.IntakeCatalog.accept`."""
        return self._catalog.accept(
            principal,
            observed,
            pipeline_fingerprint=self.fingerprint,
            first_part=self._first_part,
            queue=queue,
        )
