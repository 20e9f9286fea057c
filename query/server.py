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
    uvicorn.Server(server_config(services)).run()


def server_config(services: Services) -> uvicorn.Config:
    """What the API is served with.

    Headers of proxies are not read: whoever can reach the port could send them. What depends on
    the outside address takes it from `api.public_url`.
    """
    api = services.settings.api
    return uvicorn.Config(
        create_app(services),
        host=api.host,
        port=api.port,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
