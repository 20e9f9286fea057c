"""The process that heals: announces what waits, looks into buckets, removes what is dead.

Any number of them may run; the catalog's lease makes one the leader and the others wait. Three
threads do the leader's work: the courier (outbox and leases: must never wait for anything slow),
the scout (hints about single objects) and the caretaker (bucket listings, purges, scans)."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from core.errors import PinciteError
from core.factory import Adapters
from core.logging import get_logger, setup_logging
from ingest.intake import Intake
from workers.chores import Chore, Schedule
from workers.heartbeat import HeartbeatThread, touch
from workers.outbox import MESSAGES_AT_ONCE, relay
from workers.upkeep import PURGES_AT_ONCE, Upkeep
from workers.watch import BucketWatch, Reconciled

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.settings import Settings

LEADERSHIP = "sweeper"
LIVENESS_FILE = "sweeper.alive"
_CONFIRM_S = 3.0  # until a second listing, when something seems to be gone
_HINTS_AT_ONCE = 64
_DRIFT_S = 60.0
_RECONCILE_DUTY = 0.25
_STOP_S = 10.0

_log = get_logger(__name__)


def run_sweeper(settings: Settings, stop_event: threading.Event | None = None) -> None:
    """Sweep until `stop_event` is set, or until SIGTERM or SIGINT when it is None.

    Raises CatalogUnavailable or SettingsError when it cannot even start.
    """
    setup_logging(level=settings.log.level, style=settings.log.format, service="sweeper")
    stop = stop_event or _stop_on_signals()
    adapters = Adapters(settings)
    try:
        adapters.catalog.migrate()
        Sweeper(settings, adapters).run(stop)
    finally:
        adapters.close()


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    return stop


class Sweeper:
    """The leader's work on a set of adapters. Each schedule is ticked by a thread of its own; a
    test ticks them itself."""

    def __init__(self, settings: Settings, adapters: Adapters) -> None:
        self._settings = settings
        self._adapters = adapters
        self._catalog = adapters.catalog
        self._stop = threading.Event()
        self._is_leader = threading.Event()
        self._owner = f"{socket.gethostname()}:{os.getpid()}"
        self._reconciled: dict[str, Reconciled] = {}
        self.watch = BucketWatch(
            object_store=adapters.object_store,
            catalog=self._catalog.intake,
            intake=Intake(self._catalog.intake, settings),
            tenant_ids=adapters.tenant_ids,
            read_only=frozenset(settings.objects.read_only_buckets),
            accept_deletes=settings.objects.accept_deletes,
            may_go_on=self.may_go_on,
        )
        self.upkeep = Upkeep(
            catalog=self._catalog,
            vector_index=adapters.vector_index,
            artifacts=adapters.artifacts,
            clock=adapters.clock,
            purge_after_s=settings.sweeper.purge_after_s,
            retention_days=settings.objects.retention_superseded_days,
        )
        self.courier = Schedule(self._courier_chores(), adapters.clock)
        hints = Chore("hints", settings.sweeper.tick_s, self._take_hints)
        self.scout = Schedule([hints], adapters.clock)
        self.caretaker = Schedule(self._caretaker_chores(), adapters.clock)

    def run(self, stop: threading.Event) -> None:
        """Blocks until `stop` is set; then ends its threads and returns."""
        heartbeat = HeartbeatThread(
            self._catalog.operations,
            self._adapters.clock,
            role="sweeper",
            doing=self.describe,
            on_beat=lambda: touch(self._settings.data_dir / LIVENESS_FILE),
        )
        heartbeat.start()
        threads = [
            threading.Thread(target=self._loop, args=(schedule,), name=name, daemon=True)
            for name, schedule in (
                ("courier", self.courier),
                ("scout", self.scout),
                ("caretaker", self.caretaker),
            )
        ]
        for thread in threads:
            thread.start()
        try:
            while not stop.is_set():
                self.lead()
                stop.wait(self._settings.sweeper.leadership_s / 3)
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(_STOP_S)
            self.resign()
            heartbeat.stop()

    def lead(self) -> bool:
        """Become or stay the leader, when nobody else is."""
        lease_s = self._settings.sweeper.leadership_s
        try:
            is_leader = self._catalog.operations.take_leadership(
                LEADERSHIP, owner=self._owner, lease_s=lease_s
            )
        except PinciteError as error:
            _log.warning("leadership.failed", code=error.code)
            is_leader = False
        if is_leader != self._is_leader.is_set():
            _log.info("leadership.taken" if is_leader else "leadership.lost")
        if is_leader:
            self._is_leader.set()
        else:
            self._is_leader.clear()
        return is_leader

    def resign(self) -> None:
        """Let the next sweeper lead at once; one that is killed is waited for."""
        if self._is_leader.is_set():
            self._is_leader.clear()
            with suppress(PinciteError):
                self._catalog.operations.take_leadership(LEADERSHIP, owner=self._owner, lease_s=0.0)

    def may_go_on(self) -> bool:
        return self._is_leader.is_set() and not self._stop.is_set()

    def describe(self) -> str:
        """What the operations page shows of this process."""
        if not self._is_leader.is_set():
            return "waiting: another sweeper leads"
        stopped = [
            f"{bucket}: {found.num_held_back} documents would be deleted; set"
            " objects.accept_deletes when this is meant"
            for bucket, found in list(self._reconciled.items())
            if found.num_held_back
        ]
        return "; ".join(stopped) if stopped else "sweeping"

    def _loop(self, schedule: Schedule) -> None:
        while not self._stop.is_set():
            if self._is_leader.is_set():
                schedule.tick(self.may_go_on)
            self._stop.wait(self._settings.sweeper.tick_s)

    def _courier_chores(self) -> list[Chore]:
        sweeper = self._settings.sweeper
        return [
            Chore("leases", sweeper.lease_sweep_s, self._sweep_leases),
            Chore("outbox", sweeper.tick_s, self._relay),
        ]

    def _caretaker_chores(self) -> list[Chore]:
        sweeper, objects = self._settings.sweeper, self._settings.objects
        buckets = [
            Chore(
                f"reconcile:{bucket}",
                objects.reconcile_s,
                partial(self._reconcile, bucket),
                max_duty=_RECONCILE_DUTY,
            )
            for bucket in self._adapters.tenant_ids
        ]
        upkeep = self.upkeep
        return [
            *buckets,
            Chore("generations", sweeper.purge_s, _until_done(upkeep.purge_generations)),
            Chore("content", sweeper.purge_s, _until_done(upkeep.purge_content)),
            Chore("find-orphans", sweeper.orphan_scan_s, _to_the_end(upkeep.find_orphans)),
            Chore("orphans", sweeper.purge_s, _to_the_end(upkeep.remove_orphans)),
            Chore("lexical", _DRIFT_S, _to_the_end(upkeep.refresh_lexical)),
        ]

    def _relay(self) -> float | None:
        num_sent = relay(self._catalog.parts, self._adapters.job_queue)
        return 0.0 if num_sent == MESSAGES_AT_ONCE else None

    def _sweep_leases(self) -> None:
        num_announced = self._catalog.parts.sweep()
        if num_announced:
            _log.info("parts.announced_again", num_parts=num_announced)

    def _take_hints(self) -> float | None:
        hints = self._catalog.intake.take_hints(_HINTS_AT_ONCE)
        for _tenant_id, bucket, key in hints:
            if not self.watch.look_at(bucket, key):
                self.caretaker.hurry(f"reconcile:{bucket}")
        return 0.0 if len(hints) == _HINTS_AT_ONCE else None

    def _reconcile(self, bucket: str) -> float | None:
        found = self.watch.reconcile(bucket)
        self._reconciled[bucket] = found
        if found.num_unconfirmed:
            return min(_CONFIRM_S, self._settings.objects.reconcile_s)
        return None


def _until_done(purge: Callable[[], int]) -> Callable[[], float | None]:
    """Comes round at once while there is a full load to remove."""
    return lambda: 0.0 if purge() == PURGES_AT_ONCE else None


def _to_the_end(work: Callable[[], int]) -> Callable[[], float | None]:
    """Does all of it each time."""

    def run() -> None:
        work()

    return run
