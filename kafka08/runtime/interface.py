"""Runtime: the interface of brokers and clients to the operating system.

The entry point of a process creates one and passes it on. Outside this package nothing imports
time, random, threading, socket or gevent, nor os for files (tests/test_layout.py has the list and
its exceptions). Names and results are those of the standard library's `threading`, `queue` and
`socket`, so that a ThreadRuntime can return the library's own objects.

These calls may wait, that is, let other tasks run before they return: `sleep`, `Task.join`,
`Event.wait`, `Condition.wait`, `Queue.get`, taking a lock, `connect`, `Poller.poll`, a Stream with
a timeout, and `run_native`. No other call does. In a broker, calls that the event loop makes (in
"the hub": timers, native results, io watches) must not wait at all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from kafka08.clock import Clock
from kafka08.runtime.disk import Disk
from kafka08.runtime.transport import (
    Address,
    Buffers,
    Connecting,
    IoWatch,
    Listener,
    Poller,
    Stream,
)

if TYPE_CHECKING:
    from random import Random

    from kafka08.zk.zookeeper import SessionSettings, ZooKeeper

T = TypeVar("T")

WAIT_S_MAX: Final = threading.TIMEOUT_MAX
"""The longest timeout that a wait takes."""

Done: TypeAlias = Callable[[Any, BaseException | None], object]
"""Called with the result of a native job, or its error."""


class Cancellable(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Do not make the call. Does nothing after the call."""


class Task(Protocol):
    """A thread or greenlet with an owner."""

    def join(self, timeout: float | None = None) -> object:
        """Wait until it has ended, at most `timeout` seconds."""

    def is_alive(self) -> bool:
        """Whether it has not ended."""


class Greenlet(Task, Protocol):
    """A task that another task can end."""

    def kill(self, block: bool = True, timeout: float | None = None) -> object:
        """End it at the call in which it waits."""


class Event(Protocol):
    """A flag that tasks wait for."""

    def set(self) -> object: ...

    def clear(self) -> object: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set, at most `timeout` seconds. Returns whether it is set."""


class Lock(Protocol):
    """Held by one task at a time."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock, after at most `timeout` seconds (-1: no limit). Returns whether it was
        taken."""

    def release(self) -> None: ...

    def __enter__(self) -> bool: ...

    def __exit__(self, kind: Any, error: Any, trace: Any, /) -> None: ...


class Condition(Lock, Protocol):
    """A lock, and a wait for changes of the data that it guards."""

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait for `notify` or `timeout` seconds, take the lock again. False
        after the timeout."""

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Wait until `predicate()` is true. Returns its last value."""

    def notify(self, n: int = 1) -> None:
        """Wake tasks that wait. The caller holds the lock."""

    def notify_all(self) -> None: ...


class Queue(Protocol):
    """A queue between tasks. Putting never waits."""

    def put(self, item: Any) -> None: ...

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The oldest item; `queue.Empty` after `timeout` seconds without one."""


class Runtime(Clock, Protocol):
    """The part that brokers and clients share. Also a `kafka08.clock.Clock`."""

    @property
    def random(self) -> Random:
        """The random source."""

    def time_ms(self) -> int:
        """Wall time in ms since 1970."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def sleep(self, seconds: float) -> None:
        """Let other tasks run for so long."""

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> Task:
        """Call it in a task of that name, which does not keep the process alive. Its exceptions are
        logged. RuntimeError if the system cannot start another thread."""

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Cancellable:
        """Call it after `seconds`: in a task of its own, or, in a broker, in the hub."""

    def event(self) -> Event: ...

    def rlock(self) -> Lock:
        """A lock that its holder may take again."""

    def connect(
        self, address: Address, timeout: float | None = None, buffers: Buffers = Buffers()
    ) -> Stream:
        """A connected stream. Each address of the host is given `timeout` seconds. OSError;
        UnicodeError for an impossible host name."""

    def zookeeper(self, settings: SessionSettings) -> ZooKeeper:
        """A session with ZooKeeper, for a ZkClient: its `adapter`."""


class ClientRuntime(Runtime, Protocol):
    """The runtime of clients: threads that wait for each other, and for many connections at
    once."""

    def host_name(self) -> str:
        """The name of this machine."""

    def current_task(self) -> object:
        """The calling task: as `spawn` returned it, or an object for any other task. Compare it by
        `is`."""

    def lock(self) -> Lock:
        """A lock that its holder must not take again. Any task may release it."""

    def condition(self, lock: Lock | None = None) -> Condition:
        """A condition of `lock`, or of a new `rlock`."""

    def start_connect(self, address: Address, buffers: Buffers = Buffers()) -> Connecting:
        """Like `connect`, without waiting; only the lookup of a name may wait."""

    def poller(self) -> Poller: ...


class BrokerRuntime(Runtime, Protocol):
    """The runtime of a broker: an event loop, greenlets, native threads, a disk."""

    disk: Disk

    def call_soon(self, call: Callable[..., object], *args: object) -> object:
        """Call it in the hub after the calls that are due now. It must not wait."""

    def every(
        self,
        seconds: float,
        call: Callable[[], object],
        *,
        name: str,
        first: float | None = None,
    ) -> Greenlet:
        """Call it repeatedly in a greenlet of its own: `first` seconds (default: `seconds`) from
        now, then every `seconds`. An exception is logged and does not end the series."""

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> Greenlet:
        """Call it in a greenlet of that name; its exceptions are logged."""

    def queue(self) -> Queue: ...

    def thread_seconds(self) -> float:
        """CPU time of the event loop's thread."""

    def canonical_host_name(self) -> str:
        """The fully qualified name of this machine, if its name can be resolved."""

    # Network

    def resolve(self, host: str) -> str:
        """The first IPv4 address of a host, or an IPv6 address if it has no other; OSError."""

    def listen(self, host: str | None, port: int, buffers: Buffers = Buffers()) -> Listener:
        """Listen on an address; port 0: any free port. OSError if the port is taken. `buffers`: of
        accepted streams."""

    def when_acceptable(self, listener: Listener) -> IoWatch:
        """Calls in the hub while a connection waits to be accepted."""

    def when_readable(self, stream: Stream) -> IoWatch:
        """Calls in the hub while the stream has bytes, or has ended."""

    def when_writable(self, stream: Stream) -> IoWatch:
        """Calls in the hub while the stream has room."""

    # Native threads

    def run_native(self, call: Callable[..., T], *args: object) -> T:
        """Make a native call in a thread while this greenlet waits. The call must spend its time in
        C that releases the GIL, and use only its arguments. A killed greenlet ends after the call
        has, so its `finally` blocks may use the arguments. Not in the hub."""

    def run_native_later(self, done: Done, call: Callable[..., object], *args: object) -> None:
        """Like run_native, from the hub: `done(result, error)` is called in the hub afterwards."""

    def run_in_turn(self, lane: str, call: Callable[..., T], *args: object) -> T:
        """Like run_native, for what a reader asked for and may take long: in threads of their own,
        so that no append waits for it, where the lanes (such as hosts) take turns, so that one
        waits for as many others as there are lanes, not jobs."""

    def run_in_turn_later(
        self, lane: str, done: Done, call: Callable[..., object], *args: object
    ) -> None:
        """Like run_in_turn, from the hub: `done(result, error)` is called in the hub afterwards."""

    def halt(self, status: int) -> None:
        """End the process at once, as after a storage error: it writes nothing more to the disk."""
