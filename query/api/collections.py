"""/v1/collections: what the caller may see, and how many documents each has."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from query.api.shapes import page_of
from query.http.auth import Searcher, TheServices

router = APIRouter(prefix="/v1/collections", tags=["collections"])


@router.get("")
def list_collections(principal: Searcher, services: TheServices) -> dict[str, Any]:
    with services.catalog.snapshot(principal) as snapshot:
        found = snapshot.collections()
    return page_of([{"name": name, "num_documents": count} for name, count in found], None)
