"""From the catalog's outbox to the broker: what was committed is announced, at least once.

A message is marked sent after the broker took it; dying in between announces it twice, which the
lease makes harmless. Both workers and the sweeper relay: a worker right after its part, so that the
next stage starts at once, the sweeper for everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import BrokerUnavailable

if TYPE_CHECKING:
    from core.ports.catalog import PartCatalog
    from core.ports.job_queue import JobQueue

MESSAGES_AT_ONCE = 64


def relay(parts: PartCatalog, queue: JobQueue, *, limit: int = MESSAGES_AT_ONCE) -> int:
    """Publish up to `limit` waiting messages; returns how many.

    Raises BrokerUnavailable after marking those that were published; the others are due again when
    their claim runs out. Raises CatalogUnavailable.
    """
    sent: list[int] = []
    try:
        for message in parts.take_outbox(limit):
            queue.publish(message.queue, message.part_id)
            sent.append(message.message_id)
    except BrokerUnavailable:
        if sent:
            parts.mark_sent(sent)
        raise
    if sent:
        parts.mark_sent(sent)
    return len(sent)
