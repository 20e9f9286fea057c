"""The Celery application of a worker: one task, ids only, on the frozen settings.

The settings themselves are in `core.adapters.queue_celery`, since publishers use the same; a test
asserts them on the application made here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.factory import create_celery

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.settings import Settings

TASK_NAME = "pincite.run_part"


def create_app(settings: Settings, run_part: Callable[[str], object]) -> Any:
    """A Celery application whose only task calls `run_part(part_id)`; connects to nothing yet."""
    app = create_celery(settings)

    @app.task(name=TASK_NAME)
    def run(part_id: str) -> None:
        run_part(part_id)

    return app
