"""LoopRuntime: the Runtime of clients in an asyncio program, without a thread.

Each task of a client, a fetcher for instance, is a greenlet. Where a thread would wait, it switches
to the event loop, which resumes it when its socket is ready, its time is over, or another task has
woken it. So clients decide here with the same code as in threads. `run` makes a call of theirs an
awaitable: it runs in a greenlet of its own, and one that need not wait ends at once.

*Cancelling.* A cancelled `run` raises CancelledError in its greenlet, at the call in which that
waits, as a signal handler may raise in a thread. It returns once the greenlet has ended.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from greenlet import getcurrent, greenlet

from kafka08.errors import ConfigError
from kafka08.runtime.cooperative import GreenCondition, GreenEvent, GreenLock
from kafka08.runtime.epoll import EpollPoller, has_epoll
from kafka08.runtime.interface import WAIT_S_MAX, Cancellable, Lock
from kafka08.runtime.sockets import (
    SocketConnecting,
    SocketPoller,
    WaitingStream,
    connect_socket,
    is_address,
    resolve,
)
from kafka08.runtime.transport import Address, Buffers, Connecting, Poller, Readiness, Stream

if TYPE_CHECKING:
    from kafka08.zk.zookeeper import SessionSettings, ZooKeeper

logger = logging.getLogger(__name__)

T = TypeVar("T")

TURN_S: Final = 0.005
"""A program whose calls need not wait lets its other tasks run after so long."""

_caller: ContextVar[object] = ContextVar("kafka08_caller", default=None)
"""The task for which an asyncio task runs: a callback may use the client that called it."""


class LoopTask:
    """A greenlet of the runtime; a `kafka08.runtime.Task`.

    identity   what `current_task` returns in it; None: the task itself
    """

    def __init__(
        self,
        runtime: LoopRuntime,
        call: Callable[[], object],
        name: str,
        *,
        identity: object = None,
    ) -> None:
        self.name = name
        self._identity = identity
        self.is_ended = False
        self.when_ended: Callable[[], object] | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self._runtime = runtime
        self._call = call
        self._greenlet = greenlet(self._run)
        self._ticket: LoopTicket | None = None
        self._interrupt: BaseException | None = None
        self._joiners: list[LoopTicket] = []

    @property
    def identity(self) -> object:
        return self._identity or self

    def is_alive(self) -> bool:
        return not self.is_ended

    def join(self, timeout: float | None = None) -> None:
        if not self.is_ended:
            self._runtime.wait(self._joiners, timeout)

    def start_with_context_of_caller(self) -> None:
        """Begin now, and return when it has ended or waits. It sees the caller's variables."""
        self._greenlet.gr_context = getcurrent().gr_context
        self.go_on(None)

    def go_on(self, value: Any) -> None:
        """Run it until it waits again, or has ended."""
        if not self.is_ended:
            runtime = self._runtime
            caller, runtime.running = runtime.running, self
            self._greenlet.parent = getcurrent()
            try:
                self._greenlet.switch(value)
            finally:
                runtime.running = caller

    def park(self, ticket: LoopTicket, timeout: float | None) -> Any:
        """Wait for `ticket`, in this task."""
        timer = None
        if timeout is not None and timeout < WAIT_S_MAX:
            timer = self._runtime.loop.call_later(timeout, ticket.wake_now, False)
        self._ticket = ticket
        value = self._greenlet.parent.switch()
        self._ticket = None
        if timer is not None:
            timer.cancel()
        if self._interrupt is not None:
            error, self._interrupt = self._interrupt, None
            raise error
        return value

    def interrupt(self, error: BaseException) -> None:
        """Raise `error` at the call in which it waits."""
        self._interrupt = error
        if self._ticket is not None:
            self._ticket.wake(False)

    def _run(self, _: Any) -> None:
        try:
            self.result = self._call()
        except Exception as error:  # noqa: BLE001 - `run` raises it, `spawn` logs it
            self.error = error
        except asyncio.CancelledError as error:
            self.error = error
        finally:
            self.is_ended = True
            del self._call
            joiners, self._joiners = self._joiners, []
            for ticket in joiners:
                ticket.wake()
            if self.when_ended is not None:
                when_ended, self.when_ended = self.when_ended, None
                when_ended()


class LoopTicket:
    """A `kafka08.runtime.cooperative.Ticket`."""

    __slots__ = ("_is_done", "_task")

    def __init__(self, task: LoopTask) -> None:
        self._task = task
        self._is_done = False

    def wake(self, value: Any = True) -> bool:
        if self._is_done:
            return False
        self._is_done = True
        self._task._runtime.loop.call_soon(self._task.go_on, value)
        return True

    def wake_now(self, value: Any = True) -> None:
        """For the loop's own calls: the task runs before they end."""
        if not self._is_done:
            self._is_done = True
            self._task.go_on(value)


class LoopRuntime:
    """A `kafka08.runtime.ClientRuntime` on the running event loop.

    running   the task that runs now; None in a coroutine or a call of the loop
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.running: LoopTask | None = None
        self.random = random.Random()
        self.monotonic = time.monotonic
        self._ran_at = self.monotonic()
        """When the loop has run other tasks, as far as is known."""

    # --------------------------------------------------------------------------- from coroutines

    async def run(
        self,
        call: Callable[..., T],
        *args: Any,
        undo: Callable[[], object] | None = None,
        **keywords: Any,
    ) -> T:
        """The result of a call, whose waits let other tasks of the loop run. If this is cancelled
        after the call has succeeded, nobody gets its result: then `undo` is called."""
        if asyncio.get_running_loop() is not self.loop:
            raise RuntimeError("this client belongs to another event loop, in which it was made")
        bound = partial(call, *args, **keywords) if args or keywords else call
        task = LoopTask(self, bound, "call", identity=_caller.get())
        task.start_with_context_of_caller()
        cancelled: asyncio.CancelledError | None = None
        now = self.monotonic()
        if not task.is_ended:
            cancelled = await self._await_end(task)
            self._ran_at = self.monotonic()
        elif now - self._ran_at > TURN_S:
            self._ran_at = now
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            if task.error is None and undo is not None:
                await self.run(undo)
            raise cancelled
        if task.error is not None:
            try:
                raise task.error
            finally:
                del task  # its error has this frame
        result: T = task.result
        return result

    async def _await_end(self, task: LoopTask) -> asyncio.CancelledError | None:
        cancelled = None
        while not task.is_ended:
            ended = self.loop.create_future()
            task.when_ended = partial(_resolve, ended)
            try:
                await ended
            except asyncio.CancelledError as error:
                cancelled = error
                if not task.is_ended:
                    task.interrupt(error)
        return cancelled

    def plain(self, call: Callable[..., Any] | None) -> Callable[..., Any] | None:
        """A plain function for a callback that may be a coroutine function."""
        return None if call is None else partial(self._call_back, call)

    def _call_back(self, call: Callable[..., Any], *args: Any) -> Any:
        result = call(*args)
        return self._awaited(result) if isinstance(result, Awaitable) else result

    def _awaited(self, awaitable: Awaitable[T]) -> T:
        """Its result, while the calling greenlet waits. It runs for this greenlet's task."""

        async def await_it() -> T:
            return await awaitable

        context = copy_context()
        context.run(_caller.set, self.current_task())
        found = self.loop.create_task(await_it(), context=context)
        waiters: list[LoopTicket] = []
        found.add_done_callback(partial(_wake_all, waiters))
        try:
            while not found.done():
                self.wait(waiters, None)
        except BaseException:
            found.cancel()
            raise
        return found.result()

    # -------------------------------------------------------------------------------------- tasks

    @property
    def is_dead(self) -> bool:
        """Whether the loop is closed: nothing resumes a greenlet any more."""
        return self.loop.is_closed()

    def wait(self, waiters: list[Any], timeout: float | None) -> Any:
        """As `kafka08.runtime.cooperative.Host` says."""
        task = self.running
        if task is None:
            raise RuntimeError("only `LoopRuntime.run` may call what may wait")
        ticket = LoopTicket(task)
        waiters.append(ticket)
        value: Any = False
        try:
            value = task.park(ticket, timeout)
        finally:
            if value is False and ticket in waiters:
                waiters.remove(ticket)
        return value

    def current_task(self) -> object:
        return self if self.running is None else self.running.identity

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> LoopTask:
        task = LoopTask(self, partial(call, *args), name)

        def log() -> None:
            if isinstance(task.error, Exception):
                logger.error("Uncaught exception in task '%s'", name, exc_info=task.error)

        task.when_ended = log
        self.loop.call_soon(task.go_on, None)
        return task

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Cancellable:
        return self.loop.call_later(seconds, lambda: self.spawn(call, *args, name="timer"))

    def sleep(self, seconds: float) -> None:
        self.wait([], max(0.0, seconds))

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def host_name(self) -> str:
        return socket.gethostname()

    def event(self) -> GreenEvent:
        return GreenEvent(self)

    def lock(self) -> GreenLock:
        return GreenLock(self, reentrant=False)

    def rlock(self) -> GreenLock:
        return GreenLock(self, reentrant=True)

    def condition(self, lock: Lock | None = None) -> GreenCondition:
        assert lock is None or isinstance(lock, GreenLock)
        return GreenCondition(self, lock or self.rlock())

    # ------------------------------------------------------------------------------------ network

    def connect(
        self, address: Address, timeout: float | None = None, buffers: Buffers = Buffers()
    ) -> Stream:
        connect = partial(self._connect, buffers)
        return LoopStream(self, connect_socket(connect, address, timeout, buffers))

    def _connect(self, buffers: Buffers, address: Address, timeout: float | None) -> socket.socket:
        connecting = SocketConnecting(address, buffers, self._resolve(address))
        try:
            while True:
                writable = LoopWatch(self, connecting.stream.fileno(), writes=True)
                try:
                    if not writable.wait(timeout):
                        raise TimeoutError("timed out")
                finally:
                    writable.close()
                if connecting.finish():
                    return connecting.detach()
        except BaseException:
            connecting.close()
            raise

    def start_connect(self, address: Address, buffers: Buffers = Buffers()) -> Connecting:
        return SocketConnecting(address, buffers, self._resolve(address))

    def _resolve(self, address: Address) -> list[tuple[int, Any]]:
        """The addresses of a host. Its name is looked up in a thread of the loop's executor."""
        if is_address(address[0]):
            return resolve(address)
        return self._awaited(self.loop.run_in_executor(None, resolve, address))

    def poller(self) -> Poller:
        return LoopPoller(self)

    def zookeeper(self, settings: SessionSettings) -> ZooKeeper:
        raise ConfigError("clients in asyncio use no ZooKeeper: give them bootstrap.servers")


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _wake_all(waiters: list[LoopTicket], _: object) -> None:
    for ticket in waiters:
        ticket.wake_now()


class LoopWatch:
    """Waits until a descriptor is readable, or writable. The loop watches it from the first wait
    until it is ready and nobody waits: to begin and end each wait would take two system calls."""

    def __init__(self, runtime: LoopRuntime, descriptor: int, *, writes: bool = False) -> None:
        loop = runtime.loop
        self._add, self._remove = (
            (loop.add_writer, loop.remove_writer)
            if writes
            else (loop.add_reader, loop.remove_reader)
        )
        self._runtime = runtime
        self._descriptor = descriptor
        self._is_added = False
        self._waiters: list[LoopTicket] = []

    def wait(self, timeout: float | None) -> bool:
        """False after the timeout."""
        if not self._is_added:
            self._add(self._descriptor, self._ready)
            self._is_added = True
        return bool(self._runtime.wait(self._waiters, timeout))

    def wake(self) -> None:
        """End the wait."""
        while self._waiters:
            self._waiters.pop().wake()

    def close(self) -> None:
        """Before the descriptor is closed."""
        self._end()
        self.wake()

    def _ready(self) -> None:
        if self._waiters:
            self._waiters.pop().wake_now()
        else:
            self._end()

    def _end(self) -> None:
        if self._is_added and not self._runtime.is_dead:
            self._remove(self._descriptor)
        self._is_added = False


class LoopStream(WaitingStream):
    """Takes over a connected socket."""

    def __init__(self, runtime: LoopRuntime, connected: socket.socket) -> None:
        super().__init__(connected)
        self._readable = LoopWatch(runtime, connected.fileno())
        self._writable = LoopWatch(runtime, connected.fileno(), writes=True)

    def close(self) -> None:
        self._readable.close()
        self._writable.close()
        self._socket.close()

    def _wait(self, watcher: LoopWatch) -> None:
        seconds = self._seconds
        if seconds is not None and seconds <= 0:
            raise  # noqa: PLE0704 - called where BlockingIOError is handled
        if not watcher.wait(seconds):
            raise TimeoutError("timed out")


class LoopPoller:
    """A `Poller`: the loop watches the descriptor of the system's poller."""

    def __init__(self, runtime: LoopRuntime) -> None:
        self._poller = EpollPoller() if has_epoll() else SocketPoller()
        self.watch, self.forget = self._poller.watch, self._poller.forget
        self._ready = LoopWatch(runtime, self._poller.fileno())
        self._runtime = runtime
        self._is_woken = False

    def poll(self, timeout: float | None) -> list[Readiness]:
        # Every call waits, for the loop must run between two.
        if self._is_woken:
            self._runtime.sleep(0)
        else:
            self._ready.wait(timeout)
        self._is_woken = False
        return self._poller.poll(0)

    def wake_up(self) -> None:
        self._is_woken = True
        self._ready.wake()

    def close(self) -> None:
        self._ready.close()
        self._poller.close()
