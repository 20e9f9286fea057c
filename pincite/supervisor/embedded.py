"""Settings of the embedded stack: what is not configured points at our own servers.

One path for embedded and cluster: every process only sees URLs. A configured URL stays as it is,
and the child it replaces is not started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.errors import SettingsError
from pincite.supervisor.ports import PortBlock
from pincite.supervisor.run_state import read_run_state
from pincite.supervisor.secrets import StackSecrets, read_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.settings import Settings


def fill_embedded(settings: Settings, ports: PortBlock, secrets: StackSecrets) -> Settings:
    """The settings every process of this stack runs with."""
    changes: dict[str, dict[str, Any]] = {
        "catalog": {"url": settings.catalog_url},
        "api": {"port": settings.api.port or ports.api},
    }
    if not settings.objects.endpoint:
        changes["objects"] = {
            "endpoint": f"http://127.0.0.1:{ports.s3}",
            "access_key": secrets.s3_access_key,
            "secret_key": secrets.s3_secret_key,
        }
    if not settings.broker.url.get_secret_value():
        changes["broker"] = {
            "url": f"redis://:{secrets.broker_password}@127.0.0.1:{ports.broker}/0"
        }
    if not settings.index.url:
        changes["index"] = {
            "url": f"http://127.0.0.1:{ports.index}",
            "api_key": secrets.index_key,
        }
    if not settings.models.url:
        changes["models"] = {
            "url": f"http://127.0.0.1:{ports.models}",
            "api_key": secrets.models_key,
        }
    if has_own_engine(settings):
        api_key = settings.engine.api_key.get_secret_value() or secrets.engine_key
        changes["engine"] = {"api_key": api_key}
        changes["generator"] = {
            "url": f"http://127.0.0.1:{ports.engine}",
            "api_key": api_key,
        }
    return _with_changes(settings, changes)


def has_own_engine(configured: Settings) -> bool:
    """Whether the stack runs an engine: a model is named, and no other generator is."""
    return bool(configured.engine.model) and not configured.generator.url


def running_settings(settings: Settings) -> Settings:
    """The settings of the stack in this data directory, for a client such as `pincite ask`.

    A fully configured (cluster) installation needs no stack here.
    Raises SettingsError when nothing was ever started here and something is not configured.
    """
    state = read_run_state(settings.data_dir)
    if state is None:
        if settings.profile == "cluster":
            return settings
        raise SettingsError(
            f"no stack was ever started in {settings.data_dir.resolve()}",
            hint="run `pincite up` (or set PINCITE_DATA_DIR to where you ran it)",
        )
    return fill_embedded(settings, PortBlock(state.port_base), read_secrets(settings.data_dir))


def _with_changes(settings: Settings, changes: Mapping[str, Mapping[str, Any]]) -> Settings:
    return settings.model_copy(
        update={
            name: type(section).model_validate(section.model_dump() | dict(values))
            for name, values in changes.items()
            for section in (getattr(settings, name),)
        }
        | {"data_dir": settings.data_dir.resolve()}
    )
