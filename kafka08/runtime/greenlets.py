"""GeventRuntime: the Runtime of brokers, on gevent's event loop and greenlets."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import random
import socket
import sys
import time
from _queue import SimpleQueue
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, TypeVar

import gevent
import gevent.event
import gevent.lock
import gevent.monkey
import gevent.queue
import gevent.socket

from kafka08.runtime.green_stream import GreenStream, original_socket
from kafka08.runtime.interface import Cancellable, Done, Event, Greenlet, Lock, Queue
from kafka08.runtime.native_job import result_of
from kafka08.runtime.series import repeat
from kafka08.runtime.sockets import SocketListener, connect_socket, first_address
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.runtime.transport import Address, Buffers, IoWatch, Stream
from kafka08.runtime.uncaught import Halting, uncaught
from kafka08.zk.zookeeper import SessionSettings, ZooKeeper

logger = logging.getLogger(__name__)

T = TypeVar("T")

READ: Final = 1
WRITE: Final = 2

block: Final[Callable[[float], None]] = gevent.monkey.get_original("time", "sleep")
"""Sleep so many seconds, and let no other greenlet of the thread run meanwhile."""


class GeventRuntime:
    """Uses gevent's default loop of this thread (ARCHITECTURE.md, "Threads and greenlets")."""

    def __init__(self, *, native_threads: int | None = None) -> None:
        self.random = random.Random()
        self.disk = SYSTEM_DISK
        self.monotonic = time.monotonic
        """The function itself: each request asks for the time."""
        hub = gevent.get_hub()
        self._loop: Any = hub.loop
        self._handle_error = type(hub).handle_error.__get__(hub)
        hub.handle_error = self._on_error
        self.call_soon: Callable[..., object] = self._loop.run_callback
        threads = native_threads or max(2, os.cpu_count() or 1)
        self._native = NativePool(self, self._loop, threads)
        self._turns = NativeTurns(NativePool(self, self._loop, threads), threads)

    def _on_error(self, context: object, kind: Any, error: Any, trace: Any) -> None:
        """The root of every callback of the loop: timers, watches, `call_soon`."""
        if isinstance(error, Exception):
            uncaught(self, error, logger, "Uncaught exception in the event loop, in %s", context)
        else:
            self._handle_error(context, kind, error, trace)

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def thread_seconds(self) -> float:
        return time.thread_time()

    def sleep(self, seconds: float) -> None:
        # A timer of at least 1 µs: gevent.sleep(0) in a loop would starve the io watchers.
        gevent.sleep(max(seconds, 1e-6))

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Cancellable:
        return LoopTimer(self._loop, seconds, call, args)

    def every(
        self,
        seconds: float,
        call: Callable[[], object],
        *,
        name: str,
        first: float | None = None,
    ) -> Greenlet:
        def failed(error: Exception) -> None:
            uncaught(self, error, logger, "Uncaught exception in scheduled task '%s'", name)

        series = partial(repeat, call, seconds, first, sleep=self.sleep, on_error=failed)
        return self.spawn(series, name=name)

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> Greenlet:
        def run() -> None:
            try:
                call(*args)
            except Exception as error:  # noqa: BLE001 - a root
                uncaught(self, error, logger, "Uncaught exception in greenlet '%s'", name)

        greenlet = GreenTask(run)
        greenlet.name = name
        greenlet.start()
        return greenlet

    def canonical_host_name(self) -> str:
        return socket.getfqdn()

    def event(self) -> Event:
        event: Event = gevent.event.Event()
        return event

    def queue(self) -> Queue:
        queue: Queue = gevent.queue.Queue()
        return queue

    def rlock(self) -> Lock:
        lock: Lock = gevent.lock.RLock()
        return lock

    def resolve(self, host: str) -> str:
        return first_address(host)

    def listen(self, host: str | None, port: int, buffers: Buffers = Buffers()) -> SocketListener:
        return SocketListener(original_socket, host, port, buffers)

    def when_acceptable(self, listener: Any) -> IoWatch:
        watch: IoWatch = self._loop.io(listener.socket.fileno(), READ)
        return watch

    def when_readable(self, stream: Any) -> IoWatch:
        watch: IoWatch = self._loop.io(stream.fileno(), READ)
        return watch

    def when_writable(self, stream: Any) -> IoWatch:
        watch: IoWatch = self._loop.io(stream.fileno(), WRITE)
        return watch

    def connect(
        self, address: Address, timeout: float | None = None, buffers: Buffers = Buffers()
    ) -> Stream:
        connect = gevent.socket.create_connection
        return GreenStream(connect_socket(connect, address, timeout, buffers))

    def run_native(self, call: Callable[..., T], *args: object) -> T:
        return result_of(self._native.submit, call, args, self.event())

    def run_in_turn(self, lane: str, call: Callable[..., T], *args: object) -> T:
        return result_of(partial(self._turns.submit, lane), call, args, self.event())

    def run_native_later(self, done: Done, call: Callable[..., object], *args: object) -> None:
        self._native.submit(done, call, args)

    def run_in_turn_later(
        self, lane: str, done: Done, call: Callable[..., object], *args: object
    ) -> None:
        self._turns.submit(lane, done, call, args)

    def zookeeper(self, settings: SessionSettings) -> ZooKeeper:
        from kafka08.zk.kazoo_adapter import on_gevent

        return on_gevent(settings)

    def serve_http(self, host: str, port: int, app: Callable[..., Any]) -> int:
        """Serve a WSGI application until the process ends, each request in a greenlet, over a
        bounded number of connections. Returns the port. OSError if the address is taken."""
        from kafka08.runtime.green_http import serve  # imports what most brokers do not need

        return serve(host, port, app)

    def on_signal(self, number: int, call: Callable[[], object]) -> None:
        """Call `call` in a greenlet when the process receives the signal."""
        gevent.signal_handler(number, call)

    def halt(self, status: int) -> None:
        logging.shutdown()
        os._exit(status)


def patch_process() -> None:
    """Patch the standard library's blocking calls to wait as greenlets do, and tune the process for
    a broker. Only the entry point of a broker process may call this."""
    with _no_plugins():
        gevent.monkey.patch_all()
    # The middle generation is collected in small steps, since nothing else runs meanwhile: a broker
    # that gets 10,000 partitions makes half a million objects. The oldest one as rarely as before.
    gc.set_threshold(50_000, 1, 1200)
    # The result of a native thread reaches the hub within half a millisecond.
    sys.setswitchinterval(0.0005)


@contextmanager
def _no_plugins() -> Iterator[None]:
    """For each module that gevent patches it looks for plugins, twice, in the metadata of all
    installed packages: a quarter of the time that importing a broker takes. A broker has none;
    gevent's own warns of arguments that are not used here."""
    names = vars(importlib)
    former = names.get("metadata")
    names["metadata"] = SimpleNamespace(entry_points=lambda **_: ())
    try:
        yield
    finally:
        del names["metadata"]
        if former is not None:
            names["metadata"] = former


class GreenTask(gevent.Greenlet):  # type: ignore[misc]  # it has no types
    """A greenlet with the names that threads have."""

    def is_alive(self) -> bool:
        return not self.ready()


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
    """Native threads that make one C call each and return the result to the hub.

    Results come through one queue, implemented in C, and one async watcher, the only part of an
    event loop that another thread may use. A round trip costs about 45 µs, too much for small work.
    """

    def __init__(self, runtime: Halting, loop: Any, threads: int) -> None:
        self._runtime = runtime
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._results: SimpleQueue[Any] = SimpleQueue()
        self._threads = threads
        self._started = False
        self._watcher = loop.async_()
        self._watcher.start(self._drain)

    def submit(self, done: Done, call: Callable[..., object], args: tuple[object, ...]) -> None:
        if not self._started:
            self._started = True
            start_thread = gevent.monkey.get_original("_thread", "start_new_thread")
            for _ in range(self._threads):
                start_thread(self._work, ())
        self._jobs.put((done, call, args))

    def _work(self) -> None:
        """The main function of a thread. It uses no gevent object and no logger, and shares only
        the queues."""
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
        """Runs in the hub: take all results, since one signal may announce several."""
        while not self._results.empty():
            done, result, error = self._results.get()
            try:
                done(result, error)
            except Exception as error:  # noqa: BLE001 - later results belong to others
                text = "Uncaught exception in the end of a native job"
                uncaught(self._runtime, error, logger, text)


class NativeTurns:
    """Jobs of several lanes, of which each has one in turn. Used in the hub alone."""

    def __init__(self, pool: NativePool, threads: int) -> None:
        self._pool = pool
        self._free = threads
        self._lanes: dict[str, deque[Any]] = {}
        """Those with waiting jobs, the next one first."""

    def submit(
        self, lane: str, done: Done, call: Callable[..., object], args: tuple[object, ...]
    ) -> None:
        self._lanes.setdefault(lane, deque()).append((done, call, args))
        self._start()

    def _start(self) -> None:
        while self._free and self._lanes:
            lane = next(iter(self._lanes))
            jobs = self._lanes.pop(lane)
            done, call, args = jobs.popleft()
            if jobs:
                self._lanes[lane] = jobs
            self._free -= 1
            self._pool.submit(partial(self._over, done), call, args)

    def _over(self, done: Done, result: Any, error: BaseException | None) -> None:
        self._free += 1
        self._start()
        done(result, error)
