"""ThreadRuntime: the Runtime of clients, on threads and blocking sockets.

It returns the standard library's own objects. In a program that gevent has patched they wait as
greenlets do. Importing this module starts nothing.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.lifecycle import in_forked_processes
from kafka08.runtime.epoll import EpollPoller, has_epoll
from kafka08.runtime.interface import Cancellable, ClientRuntime, Condition, Event, Lock, Task
from kafka08.runtime.sockets import (
    Connect,
    SocketConnecting,
    SocketPoller,
    SocketStream,
    connect_socket,
)
from kafka08.runtime.transport import Address, Buffers, Connecting, Poller, Stream

if TYPE_CHECKING:
    from random import Random

    from kafka08.zk.zookeeper import SessionSettings, ZooKeeper

logger = logging.getLogger(__name__)


class ThreadCondition(threading.Condition):
    """Is not locked any more when a signal handler has raised in a `with` block, or as it begins.
    Python's own takes the lock in a function of its own: a handler that raises behind that, and
    before the block, leaves it locked for ever. The lock's methods are in C."""

    __enter__: Any = property(attrgetter("_lock.__enter__"))
    __exit__: Any = property(attrgetter("_lock.__exit__"))


class ThreadEvent(threading.Event):
    """The same for an event, whose waits and `set` lock a condition."""

    def __init__(self) -> None:
        super().__init__()
        self._cond: threading.Condition = ThreadCondition(threading.Lock())


class ThreadRuntime:
    """Threads, sockets and the system's clock; a test may pass another clock, `connect` or random
    source."""

    def __init__(
        self,
        *,
        clock: Clock = SYSTEM_CLOCK,
        connect: Connect = socket.create_connection,
        rng: Random | None = None,
    ) -> None:
        self._rng = rng
        self.monotonic = clock.monotonic
        """The clock's own method: streams ask for every message."""
        self.time_ms = clock.time_ms
        self._clock = clock
        self._connect = connect

    @cached_property
    def random(self) -> Random:
        from random import Random  # imported late: many programs draw nothing

        return self._rng or Random()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    def host_name(self) -> str:
        return socket.gethostname()

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> Task:
        def run() -> None:
            try:
                call(*args)
            except Exception:
                logger.exception("Uncaught exception in thread '%s'", name)

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def current_task(self) -> object:
        return threading.current_thread()

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Cancellable:
        timer = threading.Timer(seconds, call, args)
        timer.daemon = True
        timer.start()
        return timer

    def lock(self) -> Lock:
        return threading.Lock()

    def rlock(self) -> Lock:
        return threading.RLock()

    def condition(self, lock: Lock | None = None) -> Condition:
        any_lock: Any = lock
        return ThreadCondition(any_lock)

    def event(self) -> Event:
        return ThreadEvent()

    def connect(
        self, address: Address, timeout: float | None = None, buffers: Buffers = Buffers()
    ) -> Stream:
        return SocketStream(connect_socket(self._connect, address, timeout, buffers))

    def zookeeper(self, settings: SessionSettings) -> ZooKeeper:
        # Imported here because kazoo takes a sixth of what `import kafka08.consumer` may take.
        from kafka08.zk.kazoo_adapter import on_threads

        return on_threads(settings)

    def start_connect(self, address: Address, buffers: Buffers = Buffers()) -> Connecting:
        return SocketConnecting(address, buffers)

    def poller(self) -> Poller:
        return EpollPoller() if has_epoll() else SocketPoller()


THREADS: Final[ClientRuntime] = ThreadRuntime()
"""The default of all clients."""


@in_forked_processes
def _draw_anew() -> None:
    """Else all children of a process would draw the same numbers, and make the same member ids."""
    vars(THREADS).pop("random", None)
