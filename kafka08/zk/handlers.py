"""kazoo's ways to wait: threads (the default of a ZkClient) or gevent (the broker)."""

from __future__ import annotations

from typing import Any


def thread_handler() -> Any:
    from kazoo.handlers.threading import SequentialThreadingHandler

    return SequentialThreadingHandler()


def gevent_handler() -> Any:
    """Imports gevent; for a process that is patched by it."""
    from kazoo.handlers.gevent import SequentialGeventHandler

    return SequentialGeventHandler()
