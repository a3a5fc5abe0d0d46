"""Runtime: the broker's only door to the world: time, chance, greenlets, sockets, native threads.

The entry point makes one GeventRuntime and hands it down; nothing else in the broker imports
gevent, time, random or threading (tests/test_layout.py). A test or a simulation passes another
object of the same shape, with a clock that it moves (tests/broker/fake_runtime.py).

What may switch, that is let other greenlets run before it returns: `sleep`, `Task.join`,
`Event.wait`, `Queue.get`, `with lock`, `connect` and `run_native`. Everything else runs to its
end, and what is called from the hub (timers, native results, io watchers) must not switch at all.
"""

from __future__ import annotations

import base64
import gc
import logging
import os
import random
import socket
import sys
import time
import uuid
from _queue import SimpleQueue
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import gevent
import gevent.event
import gevent.lock
import gevent.monkey
import gevent.queue
import gevent.socket

log = logging.getLogger(__name__)

T = TypeVar("T")


class Handle(Protocol):
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

    def qsize(self) -> int: ...


class Runtime(Protocol):
    """What the broker asks of the world. Also a `kafka08.clock.Clock`."""

    random: random.Random

    def now_ms(self) -> int:
        """Wall time in ms since 1970."""

    def time_ms(self) -> int:
        """The same, under the name that `Clock` gives it."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def sleep(self, seconds: float) -> None:
        """Let others run for a while. Not in the hub."""

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Handle:
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

    def zk_handler(self) -> Any:
        """The handler that a ZkClient of this process uses."""

    def halt(self, status: int) -> None:
        """End the process at once, as after a storage error: nothing more reaches the disk."""


class GeventRuntime:
    """The real world, on gevent's default loop of this thread (ARCHITECTURE.md, "Who runs
    where")."""

    def __init__(self, *, native_threads: int | None = None) -> None:
        self.random = random.Random()
        self._loop: Any = gevent.get_hub().loop
        self._native = NativePool(self._loop, native_threads or max(2, os.cpu_count() or 1))

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    time_ms = now_ms

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        # A timer of at least 1 µs: gevent.sleep(0) in a loop would starve the io watchers.
        gevent.sleep(max(seconds, 1e-6))

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Handle:
        return LoopTimer(self._loop, seconds, call, args)

    def every(
        self,
        seconds: float,
        call: Callable[[], object],
        *,
        name: str,
        first: float | None = None,
    ) -> Task:
        def run() -> None:
            gevent.sleep(seconds if first is None else first)
            while True:
                try:
                    call()
                except Exception:
                    log.exception("Uncaught exception in scheduled task '%s'", name)
                gevent.sleep(seconds)

        return self.spawn(run, name=name)

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> Task:
        def run() -> None:
            try:
                call(*args)
            except Exception:
                log.exception("Uncaught exception in greenlet '%s'", name)

        greenlet: Task = gevent.Greenlet(run)
        greenlet.name = name  # type: ignore[attr-defined]
        greenlet.start()  # type: ignore[attr-defined]
        return greenlet

    def new_cluster_id(self) -> str:
        identifier = uuid.UUID(int=self.random.getrandbits(128), version=4)
        return base64.urlsafe_b64encode(identifier.bytes).decode().rstrip("=")

    def canonical_host_name(self) -> str:
        return socket.getfqdn()

    def event(self) -> Event:
        event: Event = gevent.event.Event()
        return event

    def queue(self) -> Queue:
        queue: Queue = gevent.queue.Queue()
        return queue

    def lock(self) -> AbstractContextManager[Any]:
        lock: AbstractContextManager[Any] = gevent.lock.RLock()
        return lock

    def listen(self, host: str | None, port: int) -> socket.socket:
        family, _, _, _, address = socket.getaddrinfo(
            host or "0.0.0.0",
            port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )[0]
        listener: socket.socket = original_socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(1024)
        except OSError:
            listener.close()
            raise
        listener.setblocking(False)
        return listener

    def connect(self, address: tuple[str, int], timeout: float | None = None) -> socket.socket:
        connection: socket.socket = gevent.socket.create_connection(address, timeout)
        return connection

    def run_native(self, call: Callable[..., T], *args: object) -> T:
        answer = gevent.event.AsyncResult()

        def done(result: T, error: BaseException | None) -> None:
            answer.set(result) if error is None else answer.set_exception(error)

        self._native.submit(done, call, args)
        try:
            result: T = answer.get()
        except gevent.GreenletExit:
            answer.wait()
            raise
        return result

    def run_native_later(
        self,
        done: Callable[[Any, BaseException | None], object],
        call: Callable[..., object],
        *args: object,
    ) -> None:
        self._native.submit(done, call, args)

    def zk_handler(self) -> Any:
        from kafka08.zk.handlers import gevent_handler

        return gevent_handler()

    def on_signal(self, number: int, call: Callable[[], object]) -> None:
        """Call it in a greenlet when the process gets the signal."""
        gevent.signal_handler(number, call)

    def halt(self, status: int) -> None:
        logging.shutdown()
        os._exit(status)


def patch_process() -> None:
    """Make the standard library's blocking calls wait like greenlets do, and set what a broker's
    process runs best with. Only for the entry point of a process that is nothing else."""
    gevent.monkey.patch_all()
    gc.set_threshold(50_000, 20, 100)
    # A native thread that finishes gets back to the hub within half a millisecond.
    sys.setswitchinterval(0.0005)


class LoopTimer:
    """One call of the event loop's timer, made in the hub."""

    __slots__ = ("_watcher",)

    def __init__(
        self, loop: Any, seconds: float, call: Callable[..., object], args: tuple[object, ...]
    ) -> None:
        self._watcher = loop.timer(max(seconds, 1e-6))
        # update: count from now, not from when this loop iteration began.
        self._watcher.start(call, *args, update=True)

    def cancel(self) -> None:
        self._watcher.close()


class NativePool:
    """Real threads that make one C call each and hand the result back to the hub.

    Results come through one queue of C and one async watcher, which is the only thing of an event
    loop that another thread may touch. A hop costs about 45 µs, so small work is not worth one.
    """

    def __init__(self, loop: Any, threads: int) -> None:
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._results: SimpleQueue[Any] = SimpleQueue()
        self._threads = threads
        self._started = False
        self._watcher = loop.async_()
        self._watcher.start(self._drain)

    def submit(
        self,
        done: Callable[[Any, BaseException | None], object],
        call: Callable[..., object],
        args: tuple[object, ...],
    ) -> None:
        if not self._started:
            self._started = True
            start_thread = gevent.monkey.get_original("_thread", "start_new_thread")
            for _ in range(self._threads):
                start_thread(self._work, ())
        self._jobs.put((done, call, args))

    def _work(self) -> None:
        """A thread's whole life: no gevent object, no logger, nothing shared but the queues."""
        while True:
            done, call, args = self._jobs.get()
            outcome: tuple[Any, Any, BaseException | None]
            try:
                outcome = (done, call(*args), None)
            except BaseException as error:  # noqa: BLE001 - carried to the hub, raised there
                outcome = (done, None, error)
            self._results.put(outcome)
            self._watcher.send()
            del done, call, args, outcome

    def _drain(self) -> None:
        """In the hub: one signal may stand for several results."""
        while not self._results.empty():
            done, result, error = self._results.get()
            try:
                done(result, error)
            except Exception:
                # Root of a callback: the results behind it belong to others.
                log.exception("Uncaught exception in the end of a native job")


original_socket: Any = gevent.monkey.get_original("socket", "socket")
"""The socket class before monkey patching: its calls never wait for the hub."""
