"""Runtime: the broker's only door to the world: time, chance, greenlets, sockets, native threads.

The entry point makes a GeventRuntime and hands it down; nothing else in the broker imports gevent,
time, random or threading (tests/test_layout.py). A test or a simulation passes another object of
the same shape, with a clock that it moves (tests/broker/fake_runtime.py).

What may switch, that is let other greenlets run before it returns: `sleep`, `Task.join`,
`Event.wait`, `Queue.get`, `with lock`, `connect` and `run_native`. Everything else runs to its
end, and what is called from the hub (timers, native results, io watchers) must not switch at all.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Any, Protocol, TypeVar

from kafka08.zk.zookeeper import SessionSettings, ZooKeeper

T = TypeVar("T")


class Cancellable(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """Forget the call. Harmless after it was made."""


class Task(Protocol):
    """A greenlet that somebody owns."""

    def join(self, timeout: float | None = None) -> object:
        """Wait until it ended, or `timeout` seconds."""

    def kill(self, block: bool = True, timeout: float | None = None) -> object:
        """End it wherever it waits."""


class Event(Protocol):
    """A flag that greenlets wait for."""

    def set(self) -> object: ...

    def clear(self) -> object: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> object:
        """Wait until the flag is set, or `timeout` seconds; true if it is set."""


class Queue(Protocol):
    """A queue between greenlets. Putting never waits."""

    def put(self, item: Any) -> None: ...

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The oldest item; `queue.Empty` after `timeout` seconds without one."""


class Runtime(Protocol):
    """What the broker asks of the world. Also a `kafka08.clock.Clock`."""

    random: Random

    def time_ms(self) -> int:
        """Wall time in ms since 1970."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def sleep(self, seconds: float) -> None:
        """Let others run for a while. Not in the hub."""

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Cancellable:
        """Call it in the hub after so many seconds. It must not switch."""

    def every(
        self,
        seconds: float,
        call: Callable[[], object],
        *,
        name: str,
        first: float | None = None,
    ) -> Task:
        """Call it again and again in a greenlet of its own, `first` seconds (default: `seconds`)
        from now and then each `seconds`. What it raises is logged and does not end the series."""

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> Task:
        """Run it in a greenlet of that name; what it raises is logged."""

    def new_cluster_id(self) -> str:
        """22 characters of URL-safe base64: a random UUID without its padding."""

    def canonical_host_name(self) -> str:
        """What this machine calls itself, as far as it can be resolved."""

    def event(self) -> Event: ...

    def queue(self) -> Queue: ...

    def lock(self) -> AbstractContextManager[Any]:
        """A lock that the greenlet which holds it may take again."""

    def listen(self, host: str | None, port: int) -> socket.socket:
        """A listening, non-blocking TCP socket; port 0 takes any free one. OSError if taken."""

    def connect(self, address: tuple[str, int], timeout: float | None = None) -> socket.socket:
        """A connected TCP socket whose calls wait like greenlets do (socket.create_connection)."""

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

    def zookeeper(self, settings: SessionSettings) -> ZooKeeper:
        """A session with ZooKeeper: the adapter of this process's ZkClient."""

    def halt(self, status: int) -> None:
        """End the process at once, as after a storage error: nothing more reaches the disk."""
