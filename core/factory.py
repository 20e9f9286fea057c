"""Settings -> adapters: the only way to them. Everything is imported and connected at its first
use.

A process builds one `Adapters` at its entry point, after any fork, and passes down the ports it
needs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.artifacts import Artifacts
    from core.ports.catalog import Catalog
    from core.ports.chat_proxy import ChatProxy
    from core.ports.clock import Clock
    from core.ports.generator import Generator
    from core.ports.job_queue import JobQueue
    from core.ports.models import Embedder, TokenCounter
    from core.ports.object_store import ObjectStore
    from core.ports.page_renderer import PageRenderer
    from core.ports.vector_index import VectorIndex
    from core.settings import Settings

_T = TypeVar("_T")


class Adapters:
    """One of each port, made when first asked for; safe in threads, not across a fork.

    Each property raises SettingsError when what it needs is not configured (the embedded stack's
    supervisor fills these settings in for its children), but for the generator, which is optional.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}

    @property
    def clock(self) -> Clock:
        return self._once("clock", system_clock)

    @property
    def catalog(self) -> Catalog:
        return self._once("catalog", lambda: create_catalog(self.settings, self.clock))

    @property
    def tenant_ids(self) -> dict[str, str]:
        """Documents bucket -> id of the tenant that owns it; new tenants are created."""
        return self._once("tenant_ids", self._resolve_tenants)

    @property
    def object_store(self) -> ObjectStore:
        return self._once(
            "object_store", lambda: create_object_store(self.settings, self.tenant_ids)
        )

    @property
    def artifacts(self) -> Artifacts:
        return self._once("artifacts", self._create_artifacts)

    @property
    def vector_index(self) -> VectorIndex:
        return self._once("vector_index", lambda: create_vector_index(self.settings))

    @property
    def embedder(self) -> Embedder:
        return self._once("embedder", lambda: create_embedder(self.settings))

    @property
    def generator(self) -> Generator | None:
        """What writes answers; None where no language model is configured."""
        return self._once("generator", lambda: create_generator(self.settings))

    @property
    def token_counter(self) -> TokenCounter:
        return self._once("token_counter", lambda: create_token_counter(self.settings))

    @property
    def page_renderer(self) -> PageRenderer:
        return self._once("page_renderer", self._create_page_renderer)

    @property
    def job_queue(self) -> JobQueue:
        return self._once("job_queue", lambda: create_job_queue(self.settings))

    def close(self) -> None:
        """End the connections of what was made."""
        with self._lock:
            for adapter in reversed(self._made.values()):
                if hasattr(adapter, "close"):
                    adapter.close()
            self._made.clear()

    def _once(self, name: str, make: Callable[[], _T]) -> _T:
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return cast("_T", self._made[name])

    def _resolve_tenants(self) -> dict[str, str]:
        access = self.catalog.access
        return {
            bucket: access.ensure_tenant(name)
            for bucket, name in self.settings.objects.buckets.items()
        }

    def _create_artifacts(self) -> Artifacts:
        from core.artifacts import Artifacts

        return Artifacts(self.object_store, self.settings.objects.artifacts_bucket)

    def _create_page_renderer(self) -> PageRenderer:
        from core.adapters.page_renderer import SubprocessPageRenderer

        return SubprocessPageRenderer(self.settings, self.object_store, self.artifacts)


def system_clock() -> Clock:
    from core.adapters.clock import SystemClock

    return SystemClock()


def create_catalog(settings: Settings, clock: Clock) -> Catalog:
    """Connects at the first statement; `migrate` is the caller's to call."""
    from core.adapters.catalog import SqlCatalog

    return SqlCatalog(
        settings.catalog_url,
        clock=clock,
        pool_size=settings.catalog.pool_size,
        max_attempts=settings.worker.max_attempts,
        republish_after_s=settings.worker.republish_after_s,
        retry_base_s=settings.worker.retry_base_s,
    )


def create_object_store(settings: Settings, tenant_ids: dict[str, str]) -> ObjectStore:
    from core.adapters.object_store_s3 import S3ObjectStore

    return S3ObjectStore(settings.objects, tenant_ids)


def create_vector_index(settings: Settings) -> VectorIndex:
    _require(settings.index.url, "index.url")
    from core.adapters.index_qdrant import QdrantIndex

    return QdrantIndex(settings.index)


def create_embedder(settings: Settings) -> Embedder:
    _require(settings.models.url, "models.url")
    from core.adapters.embed_http import HttpEmbedder

    return HttpEmbedder(settings.models)


def create_generator(settings: Settings) -> Generator | None:
    if not settings.generator.url:
        return None
    from core.adapters.generate_http import HttpGenerator

    return HttpGenerator(settings.generator)


def create_chat_proxy(settings: Settings) -> ChatProxy | None:
    """None without a generator. It belongs to the event loop that uses it, which closes it."""
    if not settings.generator.url:
        return None
    from core.adapters.chat_proxy_http import HttpChatProxy

    return HttpChatProxy(settings.generator)


def create_token_counter(settings: Settings) -> TokenCounter:
    """Raises NotFound when the embedder's tokenizer is not on this machine."""
    from core.adapters.token_counter import HfTokenCounter

    packaged = settings.models_dir / settings.models.embedder
    return HfTokenCounter(packaged if packaged.is_dir() else Path(settings.models.embedder))


def create_job_queue(settings: Settings) -> JobQueue:
    from core.adapters.queue_celery import CeleryJobQueue

    return CeleryJobQueue(_broker_url(settings))


def create_celery(settings: Settings) -> Any:
    """The Celery application with the frozen settings, for the worker to register its task on."""
    from core.adapters.queue_celery import create_celery as create

    return create(_broker_url(settings))


def _broker_url(settings: Settings) -> str:
    return _require(settings.broker.url.get_secret_value(), "broker.url")


def _require(value: str, name: str) -> str:
    if not value:
        raise SettingsError(
            f"{name} is not set",
            hint="run `pincite up`, which starts the servers and sets it, or name your own",
        )
    return value
