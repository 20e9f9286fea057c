"""`pincite serve api`: the one place where the query service meets the pipeline's fingerprints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.factory import Adapters, create_chat_proxy
from core.logging import setup_logging
from ingest.intake import Intake
from pincite import __version__
from query.answers.answering import AnswerDeps, Answering
from query.gate import gate_reader
from query.server import run_api
from query.services import Services

if TYPE_CHECKING:
    from core.settings import Settings


def main(settings: Settings) -> None:
    """Serve until stopped."""
    setup_logging(
        level=settings.log.level, style=settings.log.format, service="api", version=__version__
    )
    run_api(build_services(settings))


def build_services(settings: Settings) -> Services:
    """The services of this process over its adapters.

    The catalog is asked at once (which tenant owns which bucket); the other servers when they are
    needed. Raises CatalogUnavailable, SettingsError.
    """
    adapters = Adapters(settings)
    answering = AnswerDeps(
        catalog=adapters.catalog,
        artifacts=adapters.artifacts,
        index=adapters.vector_index,
        embedder=adapters.embedder,
        settings=settings,
        clock=adapters.clock,
        generator=adapters.generator,
        read_gate=gate_reader(settings.data_dir),
    )

    def close() -> None:
        answering.generations.close()
        adapters.close()

    return Services(
        settings=settings,
        catalog=adapters.catalog,
        store=adapters.object_store,
        artifacts=adapters.artifacts,
        renderer=adapters.page_renderer,
        job_queue=adapters.job_queue,
        clock=adapters.clock,
        index=adapters.vector_index,
        embedder=adapters.embedder,
        answer=Answering(answering),
        accept=Intake(adapters.catalog.intake, settings).accept,
        tenant_ids=adapters.tenant_ids,
        close=close,
        version=__version__,
        generator=adapters.generator,
        chat_proxy=create_chat_proxy(settings),
    )
