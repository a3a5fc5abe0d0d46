"""FakeRuntime: a BrokerRuntime whose clock the test moves, and whose greenlets are plain calls.

`spawn` runs the function at once, to its end. `run_native_later` runs jobs at once, or, without
`native_inline`, keeps them until `run_native_jobs`. `advance` moves the clock and makes the calls
that are due, in order. A call that would wait raises, so no test can hang."""

from __future__ import annotations

import heapq
import itertools
import logging
import queue
import random
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from kafka08.errors import StorageError
from kafka08.runtime import Buffers, Cancellable, IoWatch, Listener, Lock, Stream
from kafka08.runtime.interface import Done
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.runtime.transport import Address
from kafka08.runtime.uncaught import uncaught
from kafka08.zk.zookeeper import SessionSettings, ZooKeeper

logger = logging.getLogger(__name__)

T = TypeVar("T")


class FakeHandle:
    def __init__(self, call: Callable[[], object]) -> None:
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        self.call = None


class FakeTask:
    def is_alive(self) -> bool:
        return False

    def join(self, timeout: float | None = None) -> None: ...

    def kill(self, block: bool = True, timeout: float | None = None) -> None: ...


class FakeEvent:
    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        assert self._is_set or timeout is not None, "nobody will ever set this event"
        return self._is_set


class FakeQueue:
    def __init__(self) -> None:
        self.items: list[Any] = []

    def put(self, item: Any) -> None:
        self.items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self.items:
            raise queue.Empty
        return self.items.pop(0)


class Halted(BaseException):
    """Raised where the broker would end its process. Only the test may catch it."""


def no_network(address: Address, timeout: float | None) -> Stream:
    raise OSError("a fake runtime has no network")


class FakeRuntime:
    """A `kafka08.runtime.BrokerRuntime`; `now` is its clock in seconds."""

    def __init__(self, *, seed: int = 0, native_inline: bool = True) -> None:
        self.random = random.Random(seed)
        self.disk = SYSTEM_DISK
        self.now = 1_000_000.0
        self.native_inline = native_inline
        self.native_jobs: list[Callable[[], None]] = []
        self.spawned: list[str] = []
        self.dial: Callable[[Address, Any], Stream] = no_network
        """The action of `connect`; a test may give its own."""
        self.timers_set = 0
        """How often a timer was set: what a real broker would have woken up for."""
        self._calls: list[tuple[float, int, FakeHandle]] = []
        self._sequence = itertools.count()

    # Clock and timers

    def time_ms(self) -> int:
        return int(self.now * 1000)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Moves the clock, as `advance`: what is due meanwhile happens."""
        self.advance(seconds)

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Cancellable:
        self.timers_set += 1
        handle = FakeHandle(lambda: call(*args))
        heapq.heappush(self._calls, (self.now + seconds, next(self._sequence), handle))
        return handle

    def advance(self, seconds: float) -> None:
        """Moves the clock, and makes every call that is due at its own time."""
        end = self.now + seconds
        while self._calls and self._calls[0][0] <= end:
            due, _, handle = heapq.heappop(self._calls)
            self.now = max(self.now, due)
            if handle.call is not None:
                self.root(handle.call)
        self.now = max(self.now, end)

    def root(self, call: Callable[..., object], *args: object) -> None:
        """As in each root of a real runtime a storage error halts the broker. A test sees every
        other exception."""
        try:
            call(*args)
        except StorageError as error:
            uncaught(self, error, logger, "Uncaught exception")

    @property
    def pending_calls(self) -> int:
        """The number of timers that are set."""
        return sum(handle.call is not None for _, _, handle in self._calls)

    # Greenlets

    def every(
        self,
        seconds: float,
        call: Callable[[], object],
        *,
        name: str,
        first: float | None = None,
    ) -> FakeTask:
        def again() -> None:
            self.root(call)
            self.call_later(seconds, again)

        self.call_later(seconds if first is None else first, again)
        return FakeTask()

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> FakeTask:
        self.spawned.append(name)
        self.root(call, *args)
        return FakeTask()

    def thread_seconds(self) -> float:
        return 0.0

    def call_soon(self, call: Callable[..., object], *args: object) -> None:
        self.call_later(0.0, call, *args)

    def event(self) -> FakeEvent:
        return FakeEvent()

    def queue(self) -> FakeQueue:
        return FakeQueue()

    def rlock(self) -> Lock:
        return threading.RLock()

    # The outside

    def resolve(self, host: str) -> str:
        raise OSError("a fake runtime has no network")

    def listen(self, host: str | None, port: int, buffers: Buffers = Buffers()) -> Listener:
        raise OSError("a fake runtime has no network")

    def connect(
        self, address: Address, timeout: float | None = None, buffers: Buffers = Buffers()
    ) -> Stream:
        return self.dial(address, timeout)

    def when_acceptable(self, listener: Listener) -> IoWatch:
        raise AssertionError("a fake runtime has no network")

    def when_readable(self, stream: Stream) -> IoWatch:
        raise AssertionError("a fake runtime has no network")

    def when_writable(self, stream: Stream) -> IoWatch:
        raise AssertionError("a fake runtime has no network")

    def run_native(self, call: Callable[..., T], *args: object) -> T:
        return call(*args)

    def run_native_later(self, done: Done, call: Callable[..., object], *args: object) -> None:
        def job() -> None:
            try:
                result = call(*args)
            except Exception as error:  # noqa: BLE001 - carried to `done`, as a thread does
                done(None, error)
            else:
                done(result, None)

        self.native_jobs.append(job)
        if self.native_inline and len(self.native_jobs) == 1:
            self.run_native_jobs()

    def run_in_turn(self, lane: str, call: Callable[..., T], *args: object) -> T:
        return self.run_native(call, *args)

    def run_in_turn_later(
        self, lane: str, done: Done, call: Callable[..., object], *args: object
    ) -> None:
        self.run_native_later(done, call, *args)

    def run_native_jobs(self) -> None:
        """Runs the waiting jobs, and then those that they start."""
        while self.native_jobs:
            try:
                self.root(self.native_jobs[0])
            finally:
                self.native_jobs.pop(0)

    def zookeeper(self, settings: SessionSettings) -> ZooKeeper:
        raise AssertionError("a fake runtime has no ZooKeeper")

    def canonical_host_name(self) -> str:
        return "localhost"

    def halt(self, status: int) -> None:
        raise Halted(status)
