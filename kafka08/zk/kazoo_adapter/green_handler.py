"""How kazoo waits in greenlets, in a process that gevent has patched."""

from __future__ import annotations

import time
from typing import Any, Final

import gevent.monkey
import gevent.select
from kazoo.handlers.gevent import SequentialGeventHandler

from kafka08.zk.kazoo_adapter.handlers import Ready, ready

TURN_S: Final = 0.002
"""A session with many responses lets other greenlets run after so long."""

_poll_at_once: Final[Any] = gevent.monkey.get_original("select", "poll")


class GreenHandler(SequentialGeventHandler):  # type: ignore[misc]  # kazoo is untyped
    _waited_at = 0.0

    def select(self, *asked: Any) -> Ready:
        if time.monotonic() - self._waited_at < TURN_S:
            found = ready(_poll_at_once(), asked[0], asked[1], (), timeout=0)
            if any(found):
                return found
        found = ready(gevent.select.poll(), *asked)
        self._waited_at = time.monotonic()
        return found
