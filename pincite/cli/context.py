"""What every client command needs: settings, and a client of the running API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.settings import load_settings
from pincite.client import Client
from pincite.supervisor.embedded import running_settings
from pincite.supervisor.secrets import read_secrets

if TYPE_CHECKING:
    from core.settings import Settings


def load_running_settings() -> Settings:
    """Settings with the URLs of the stack in the data directory filled in."""
    return running_settings(load_settings())


def api_url(settings: Settings) -> str:
    return settings.api.public_url.rstrip("/") or f"http://127.0.0.1:{settings.api.port}"


def open_client() -> Client:
    """A client with the admin key of this data directory."""
    settings = load_running_settings()
    return Client(api_url(settings), read_secrets(settings.data_dir).admin_key)
