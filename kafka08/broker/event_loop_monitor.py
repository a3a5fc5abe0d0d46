"""EventLoopMonitor: notices when something held the hub.

While one callback runs nothing else does, the ZooKeeper session included, so nothing may take
100 ms (ARCHITECTURE.md, "Who runs where"). A timer that is due every second tells by how late it
is.
"""

from __future__ import annotations

import logging
from typing import Final

from kafka08.metrics import Timings
from kafka08.runtime import BrokerRuntime, Cancellable

logger = logging.getLogger(__name__)

PERIOD_SECONDS: Final = 1.0
ALLOWED_SECONDS: Final = 0.1


class EventLoopMonitor:
    """Runs from its making until `stop`, and logs when the hub was held longer than allowed.

    late_ms   by how much each second's timer was late
    busy      share of the last period that the hub's thread spent computing, 0 to 1
    """

    def __init__(self, runtime: BrokerRuntime) -> None:
        self._runtime = runtime
        self._handle: Cancellable | None = None
        self.late_ms = Timings()
        self.busy = 0.0
        self._busy_seconds = runtime.thread_seconds()
        self._wind()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _wind(self) -> None:
        self._due = self._runtime.monotonic() + PERIOD_SECONDS
        self._handle = self._runtime.call_later(PERIOD_SECONDS, self._look)

    def _look(self) -> None:
        late = self._runtime.monotonic() - self._due
        self._wind()
        self.late_ms.add(max(0.0, late * 1000))
        before, self._busy_seconds = self._busy_seconds, self._runtime.thread_seconds()
        self.busy = min(1.0, (self._busy_seconds - before) / (PERIOD_SECONDS + max(0.0, late)))
        if late > ALLOWED_SECONDS:
            logger.warning("The event loop was held for %d ms", late * 1000)
