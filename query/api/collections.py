"""/v1/collections: what the caller may see, and how many documents each has."""

from __future__ import annotations

from fastapi import APIRouter

from query.api.schemas.base import Listing
from query.api.schemas.documents import Collection
from query.http.auth import Searcher, TheServices

router = APIRouter(prefix="/v1/collections", tags=["collections"])


@router.get("")
def list_collections(principal: Searcher, services: TheServices) -> Listing[Collection]:
    with services.catalog.snapshot(principal) as snapshot:
        found = snapshot.collections()
    return Listing(data=[Collection(name=name, num_documents=count) for name, count in found])
