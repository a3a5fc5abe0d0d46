"""How long a controller holds the event loop: its CPU time between two switches."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

from tests.broker.thread_broker import ThreadBroker


class Holds(ThreadBroker):
    """The longest CPU time of a controller's thread between two switches."""

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0.0
        self._last = threading.local()

    def switch(self) -> None:
        if threading.current_thread().name.startswith("controller-event-loop"):
            now = time.thread_time()
            self.longest = max(self.longest, now - getattr(self._last, "switch", now))
            self._last.switch = now

    def sleep(self, seconds: float) -> None:
        self.switch()
        super().sleep(seconds)

    def queue(self) -> queue.SimpleQueue[Any]:
        switch = self.switch

        class SwitchingQueue(queue.SimpleQueue[Any]):
            def get(self, block: bool = True, timeout: float | None = None) -> Any:
                switch()
                item = super().get(block, timeout)
                switch()
                return item

        return SwitchingQueue()
