"""One audit row for each changing route."""

from __future__ import annotations

from core.domain.access import Principal
from query.services import Services


def write_audit(
    services: Services, request_id: str, principal: Principal, action: str, target: str
) -> None:
    """Record that the action was done; never document text."""
    services.catalog.operations.audit(
        principal, action=action, target=target, request_id=request_id, outcome="ok"
    )
