"""Runtimes of simulated processes: `kafka08.runtime`'s BrokerRuntime and ClientRuntime."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, TypeVar

from kafka08.errors import FileRefused, StorageError
from kafka08.runtime.cooperative import GreenCondition, GreenEvent, GreenLock, GreenQueue
from kafka08.runtime.disk import Disk
from kafka08.runtime.interface import Done, Lock
from kafka08.runtime.native_job import result_of
from kafka08.runtime.series import repeat
from kafka08.runtime.transport import Address, Buffers, Connecting
from kafka08.runtime.uncaught import uncaught
from kafka08.simulation.network import Network
from kafka08.simulation.polling import SimIoWatch, SimPoller
from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Timer
from kafka08.simulation.streams import SimListener, SimStream
from kafka08.simulation.task import SimTask
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.zk.model.session import ModelSession
from kafka08.zk.zookeeper import SessionSettings

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass
class World:
    """The parts that all processes share.

    native_seconds   the longest delay before a native job begins, and before its result arrives
    """

    network: Network
    zookeeper: SimZooKeeper
    native_seconds: float


class SimRuntime:
    """The common part of both: a `kafka08.runtime.Runtime`."""

    def __init__(self, world: World, process: Process, random: Random) -> None:
        self.random = random
        self.process = process
        self.native_seconds = world.native_seconds
        self._world = world
        self.time_ms = process.time_ms
        self.monotonic = process.monotonic
        self.sleep = process.sleep

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> SimTask:
        return self.process.spawn(call, args, name)

    def event(self) -> GreenEvent:
        return GreenEvent(self.process)

    def rlock(self) -> GreenLock:
        return GreenLock(self.process, reentrant=True)

    def connect(
        self, address: Address, timeout: float | None = None, buffers: Buffers = Buffers()
    ) -> SimStream:
        self.process.check_alive()
        stream = self._world.network.dial(self.process, address)
        try:
            stream.await_connection(timeout)
        except BaseException:
            stream.close()
            raise
        stream.settimeout(timeout)
        return stream

    def zookeeper(self, settings: SessionSettings) -> ModelSession:
        return self._world.zookeeper.session(self.process, settings)


class SimClientRuntime(SimRuntime):
    """A `kafka08.runtime.ClientRuntime`."""

    def host_name(self) -> str:
        return self.process.host

    def current_task(self) -> object:
        return self.process.current_task()

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Timer:
        timer = Timer(call, args)
        self.process.call_later(seconds, self._run_timer, timer)
        return timer

    def _run_timer(self, timer: Timer) -> None:
        if timer.call is not None:
            self.process.spawn(timer.run, (), "timer")

    def lock(self) -> GreenLock:
        return GreenLock(self.process, reentrant=False)

    def condition(self, lock: Lock | None = None) -> GreenCondition:
        assert lock is None or isinstance(lock, GreenLock)
        return GreenCondition(self.process, lock or self.rlock())

    def start_connect(self, address: Address, buffers: Buffers = Buffers()) -> Connecting:
        self.process.check_alive()
        return SimConnecting(self._world.network.dial(self.process, address))

    def poller(self) -> SimPoller:
        return SimPoller(self.process)


class SimBrokerRuntime(SimRuntime):
    """A `kafka08.runtime.BrokerRuntime`.

    on_halt   called with the exit status when the broker ends its own process
    """

    def __init__(
        self,
        world: World,
        process: Process,
        random: Random,
        disk: Disk,
        on_halt: Callable[[int], object],
    ) -> None:
        super().__init__(world, process, random)
        self._on_halt = on_halt
        self.disk = disk
        self.call_soon = process.call_soon
        self.thread_seconds = lambda: 0.0
        self.call_later = process.call_later
        self._on_uncaught = process.on_uncaught
        process.on_uncaught = self._failed

    def _failed(self, name: str, error: BaseException) -> None:
        """The root of every task, timer and callback of this process. A disk that failed halts it,
        and a file that was refused is tried again; neither breaks a rule."""
        if isinstance(error, StorageError | FileRefused):
            uncaught(self, error, logger, "Uncaught exception in '%s'", name)
        else:
            self._on_uncaught(name, error)

    def every(
        self,
        seconds: float,
        call: Callable[[], object],
        *,
        name: str,
        first: float | None = None,
    ) -> SimTask:
        def failed(error: Exception) -> None:
            self.process.on_uncaught(name, error)

        series = partial(repeat, call, seconds, first, sleep=self.sleep, on_error=failed)
        return self.spawn(series, name=name)

    def queue(self) -> GreenQueue:
        return GreenQueue(self.process)

    def canonical_host_name(self) -> str:
        return self.process.host

    def resolve(self, host: str) -> str:
        return host

    def listen(self, host: str | None, port: int, buffers: Buffers = Buffers()) -> SimListener:
        return self._world.network.listen(self.process, port)

    def when_acceptable(self, listener: Any) -> SimIoWatch:
        return SimIoWatch(listener, for_writing=False)

    def when_readable(self, stream: Any) -> SimIoWatch:
        return SimIoWatch(stream, for_writing=False)

    def when_writable(self, stream: Any) -> SimIoWatch:
        return SimIoWatch(stream, for_writing=True)

    def run_native(self, call: Callable[..., T], *args: object) -> T:
        self.process.check_alive()
        submit = partial(self._in_a_while, self._run_job)
        return result_of(submit, call, args, self.event())

    def run_native_later(self, done: Done, call: Callable[..., object], *args: object) -> None:
        self._in_a_while(self._run_job, done, call, args)

    def run_in_turn(self, lane: str, call: Callable[..., T], *args: object) -> T:
        return self.run_native(call, *args)

    def run_in_turn_later(
        self, lane: str, done: Done, call: Callable[..., object], *args: object
    ) -> None:
        self.run_native_later(done, call, *args)

    def halt(self, status: int) -> None:
        self._on_halt(status)
        self.process.die()

    def _run_job(self, done: Done, call: Callable[..., object], args: tuple[object, ...]) -> None:
        """Run the job as a thread would: it is no step of the process, which may be stopped."""
        if self.process.is_dead:
            return
        result, failed = None, None
        try:
            result = call(*args)
        except Exception as error:  # noqa: BLE001 - carried to `done`, as a thread does
            failed = error
        self._in_a_while(self.process.call_soon, done, result, failed)

    def _in_a_while(self, call: Callable[..., object], *args: object) -> None:
        seconds = self._world.network.random.random() * self._world.native_seconds
        self.process.scheduler.call_later(seconds, call, *args)


class SimConnecting:
    """A `kafka08.runtime.Connecting`."""

    def __init__(self, stream: SimStream) -> None:
        self.stream = stream
        stream.settimeout(0)
        self._is_finished = False

    def finish(self) -> bool:
        if self.stream.error is not None:
            self.stream.close()
            raise self.stream.error
        self._is_finished = True
        return True

    def close(self) -> None:
        if not self._is_finished:
            self.stream.close()
