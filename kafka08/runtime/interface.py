"""Runtime: what brokers and clients ask of the world.

The entry point of a process makes one and hands it down; outside this room nothing imports time,
random, threading, socket or gevent for itself, nor os for files (tests/test_layout.py has the list
and its exceptions). Names and results are those of the standard library's `threading`, `queue` and
`socket`, so that what a ThreadRuntime hands out is the library's own object.

What may wait, that is let other tasks run before it returns: `sleep`, `Task.join`, `Event.wait`,
`Condition.wait`, `Queue.get`, taking a lock, `connect`, `Poller.poll`, a Stream with a timeout, and
`run_native`. Nothing else does. In a broker, what the event loop calls ("the hub": timers, native
results, io watches) must not wait at all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from kafka08.clock import Clock
from kafka08.runtime.disk import Disk, File
from kafka08.runtime.transport import Address, Connecting, IoWatch, Listener, Poller, Stream

if TYPE_CHECKING:
    from kafka08.zk.zookeeper import SessionSettings, ZooKeeper

T = TypeVar("T")

WAIT_SECONDS_MAX: Final = threading.TIMEOUT_MAX
"""The longest timeout that a wait takes."""


class Cancellable(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """Forget the call. Harmless after it was made."""


class Task(Protocol):
    """A thread or greenlet that somebody owns."""

    def join(self, timeout: float | None = None) -> object:
        """Wait until it ended, or `timeout` seconds."""

    def is_alive(self) -> bool:
        """Whether it has not ended."""


class Greenlet(Task, Protocol):
    """A task that can be ended from outside."""

    def kill(self, block: bool = True, timeout: float | None = None) -> object:
        """End it wherever it waits."""


class Event(Protocol):
    """A flag that tasks wait for."""

    def set(self) -> object: ...

    def clear(self) -> object: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set, or `timeout` seconds; whether it is set."""


class Lock(Protocol):
    """Held by one task at a time."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Wait for it, `timeout` seconds at most unless that is -1; whether it was taken."""

    def release(self) -> None: ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class Condition(Lock, Protocol):
    """A lock, and a place to wait for a change of what it guards."""

    def wait(self, timeout: float | None = None) -> bool:
        """Let go of the lock, wait for `notify` or `timeout` seconds, take the lock again; False
        after the timeout."""

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Wait until `predicate()` is true; its last value."""

    def notify(self, n: int = 1) -> None:
        """Wake tasks that wait. The caller holds the lock."""

    def notify_all(self) -> None: ...


class Queue(Protocol):
    """A queue between tasks. Putting never waits."""

    def put(self, item: Any) -> None: ...

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The oldest item; `queue.Empty` after `timeout` seconds without one."""


class Runtime(Clock, Protocol):
    """What brokers and clients share. Also a `kafka08.clock.Clock`."""

    random: Random

    def time_ms(self) -> int:
        """Wall time in ms since 1970."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def sleep(self, seconds: float) -> None:
        """Let others run for a while."""

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> Task:
        """Run it in a task of that name, which does not keep the process alive. What it raises is
        logged. RuntimeError if the system has no room for another thread."""

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Cancellable:
        """Call it after `seconds`: in a task of its own, or, in a broker, in the hub."""

    def event(self) -> Event: ...

    def rlock(self) -> Lock:
        """A lock that its holder may take again."""

    def connect(
        self,
        address: Address,
        timeout: float | None = None,
        *,
        receive_buffer: int = 0,
        send_buffer: int = 0,
    ) -> Stream:
        """A connected stream. Each address of the host is given `timeout` seconds. OSError;
        UnicodeError for a name that cannot be one.

        receive_buffer, send_buffer   sizes in bytes; 0 and less leave the system's
        """

    def zookeeper(self, settings: SessionSettings) -> ZooKeeper:
        """A session with ZooKeeper, for a ZkClient: its `adapter`."""


class ClientRuntime(Runtime, Protocol):
    """For clients: threads that wait for each other, and for many connections at once."""

    def host_name(self) -> str:
        """What this machine calls itself."""

    def current_task(self) -> object:
        """The task that asks: what `spawn` returned, or an object for a task that it did not make.
        For comparisons by `is`."""

    def lock(self) -> Lock:
        """A lock that its holder must not take again."""

    def condition(self, lock: Lock | None = None) -> Condition:
        """A condition of `lock`, or of a new `rlock`."""

    def start_connect(
        self, address: Address, *, receive_buffer: int = 0, send_buffer: int = 0
    ) -> Connecting:
        """As `connect`, without waiting; only looking up a name may wait."""

    def poller(self) -> Poller: ...


class BrokerRuntime(Runtime, Protocol):
    """For a broker: an event loop, greenlets, native threads, a disk."""

    disk: Disk

    def call_soon(self, call: Callable[..., object], *args: object) -> object:
        """Call it in the hub after what is due there now. It must not wait."""

    def every(
        self,
        seconds: float,
        call: Callable[[], object],
        *,
        name: str,
        first: float | None = None,
    ) -> Greenlet:
        """Call it again and again in a greenlet of its own, `first` seconds (default: `seconds`)
        from now and then each `seconds`. What it raises is logged and does not end the series."""

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> Greenlet:
        """Run it in a greenlet of that name; what it raises is logged."""

    def queue(self) -> Queue: ...

    def thread_seconds(self) -> float:
        """CPU time that the event loop's thread has used."""

    def canonical_host_name(self) -> str:
        """What this machine calls itself, as far as it can be resolved."""

    # Network

    def resolve(self, host: str) -> str:
        """The IPv4 address of a host; OSError."""

    def listen(
        self, host: str | None, port: int, *, receive_buffer: int = 0, send_buffer: int = 0
    ) -> Listener:
        """Listen there; port 0 takes any free one. OSError if it is taken.

        receive_buffer, send_buffer   of accepted streams, as for `connect`
        """

    def when_acceptable(self, listener: Listener) -> IoWatch:
        """Calls in the hub while a connection waits to be accepted."""

    def when_readable(self, stream: Stream) -> IoWatch:
        """Calls in the hub while the stream has bytes, or has ended."""

    def when_writable(self, stream: Stream) -> IoWatch:
        """Calls in the hub while the stream has room."""

    def send_file(self, stream: Stream, file: File, position: int, size: int) -> int:
        """Send bytes of a file without reading them. How many were
        taken; 0 if the file ends at `position`. BlockingIOError."""

    # Native threads

    def run_native(self, call: Callable[..., T], *args: object) -> T:
        """Run one native call in a thread while this greenlet waits. The call must spend its time
        in C that releases the GIL and touch only what it is given. A greenlet that is killed ends
        when the call has, so what comes after it may touch the same. Not in the hub."""

    def run_native_later(
        self,
        done: Callable[[Any, BaseException | None], object],
        call: Callable[..., object],
        *args: object,
    ) -> None:
        """As run_native, from the hub: `done(result, error)` is called in the hub afterwards."""

    def halt(self, status: int) -> None:
        """End the process at once, as after a storage error: nothing more reaches the disk."""
