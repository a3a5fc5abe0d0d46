"""EventLoopMonitor: logs when the hub was blocked.

While a callback runs nothing else does, the ZooKeeper session included, so no callback may take
100 ms (ARCHITECTURE.md, "Threads and greenlets"). A timer fires every second; its delay shows how
long the hub was blocked.
"""

from __future__ import annotations

import logging
from typing import Final

from kafka08.metrics import Timings
from kafka08.runtime import BrokerRuntime, Cancellable

logger = logging.getLogger(__name__)

PERIOD_S: Final = 1.0
ALLOWED_S: Final = 0.1


class EventLoopMonitor:
    """Runs from its creation until `stop`, and logs when the hub was blocked for too long.

    late_ms   the delay of each second's timer
    busy      share of the last period in which the hub's thread used the CPU, 0 to 1
    """

    def __init__(self, runtime: BrokerRuntime) -> None:
        self._runtime = runtime
        self._handle: Cancellable | None = None
        self.late_ms = Timings()
        self.busy = 0.0
        self._busy_s = runtime.thread_seconds()
        self._schedule()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _schedule(self) -> None:
        self._due = self._runtime.monotonic() + PERIOD_S
        self._handle = self._runtime.call_later(PERIOD_S, self._check)

    def _check(self) -> None:
        late = self._runtime.monotonic() - self._due
        self._schedule()
        self.late_ms.add(max(0.0, late * 1000))
        before, self._busy_s = self._busy_s, self._runtime.thread_seconds()
        self.busy = min(1.0, (self._busy_s - before) / (PERIOD_S + max(0.0, late)))
        if late > ALLOWED_S:
            logger.warning("The event loop was blocked for %d ms", late * 1000)
