"""Run the API with uvicorn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uvicorn

from query.app import create_app

if TYPE_CHECKING:
    from query.services import Services

_GRACE_S = 3


def run_api(services: Services) -> None:
    """Serve until SIGTERM or SIGINT; open streams get a few seconds to end."""
    settings = services.settings
    uvicorn.run(
        create_app(services),
        host=settings.api.host,
        port=settings.api.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
