"""A simulated process: its clock, tasks and event loop, which end together."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from greenlet import GreenletExit

from kafka08.simulation.memory_disk import Gone
from kafka08.simulation.scheduler import Scheduler, Timer
from kafka08.simulation.task import SimTask, Ticket

logger = logging.getLogger(__name__)

START_WALL_MS: Final = 1_400_000_000_000
"""The wall clock when a run begins: in May 2014."""


class Process:
    """wall_offset_ms     the difference of its wall clock from the simulated time; may change
    monotonic_offset   its monotonic clock at the start of the run, in seconds
    on_uncaught        called with the name of a task and the exception that left it
    """

    def __init__(
        self,
        scheduler: Scheduler,
        name: str,
        host: str,
        on_uncaught: Callable[[str, BaseException], object],
        *,
        wall_offset_ms: int = 0,
        monotonic_offset: float = 0.0,
    ) -> None:
        self.scheduler = scheduler
        self.name = name
        self.host = host
        self.wall_offset_ms = wall_offset_ms
        self.monotonic_offset = monotonic_offset
        self.on_uncaught = on_uncaught
        self.is_dead = False
        self.is_stopped = False
        self.held: list[tuple[str, Callable[..., object], tuple[object, ...]]] = []
        """Steps that became ready while it was stopped."""
        self.tasks: dict[SimTask, None] = {}
        """The live ones, in the order in which they began."""
        self.on_death: list[Callable[[bool], object]] = []
        """Called when it dies, for instance to close its connections. True: its host lost power."""
        self._stops = 0
        self._stopped_at = 0.0
        self._stopped_seconds = 0.0
        self._loop_calls: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()

    # Its clocks

    def monotonic(self) -> float:
        return self.scheduler.now + self.monotonic_offset

    def running_seconds(self) -> float:
        """The seconds since the start of the run in which it was not stopped."""
        now = self._stopped_at if self.is_stopped else self.scheduler.now
        return now - self._stopped_seconds

    def time_ms(self) -> int:
        return START_WALL_MS + self.wall_offset_ms + int(self.scheduler.now * 1000)

    # Tasks and calls

    def spawn(self, call: Callable[..., object], args: tuple[object, ...], name: str) -> SimTask:
        self.check_alive()
        task = SimTask(self, call, args, name)
        self.tasks[task] = None
        return task

    def call_soon(self, call: Callable[..., object], *args: object) -> None:
        """Make the call in its event loop, after the ones that are due."""
        if not self.is_dead:
            self._loop_calls.append((call, args))
            self.scheduler.make_ready(self, "loop", self._make_loop_call)

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Timer:
        """Make the call in its event loop in so many seconds."""
        timer = Timer(call, args)
        self.scheduler.call_later(seconds, self._fire, timer)
        return timer

    def _fire(self, timer: Timer) -> None:
        if timer.call is not None:
            self.call_soon(timer.run)

    def current_task(self) -> object:
        """The running task; in its event loop, the process."""
        return self.scheduler.current or self

    def wait(self, waiters: list[Ticket], timeout: float | None) -> Any:
        """Suspend the running task with a ticket in this list. Returns the value of the wake-up, or
        False after `timeout` seconds; the ticket is then removed from the list."""
        if self.is_dead:
            raise GreenletExit
        task = self.scheduler.current
        assert task is not None, "the event loop must not wait"
        ticket = Ticket(task)
        waiters.append(ticket)
        value: Any = False
        try:
            value = task.park(ticket, timeout)
        finally:
            if value is False and ticket in waiters:
                waiters.remove(ticket)
        return value

    def sleep(self, seconds: float) -> None:
        self.wait([], max(seconds, 1e-6))

    def check_alive(self) -> None:
        """Raise GreenletExit in a dead process, whose stacks are being unwound."""
        if self.is_dead:
            raise GreenletExit

    # Stop and end

    def stop(self) -> None:
        """As SIGSTOP: it takes no step until `resume` was called once for each `stop`."""
        if not self._stops:
            self._stopped_at = self.scheduler.now
        self._stops += 1
        self.is_stopped = True

    def resume(self) -> None:
        self._stops -= 1
        if self._stops:
            return
        self.is_stopped = False
        self._stopped_seconds += self.scheduler.now - self._stopped_at
        held, self.held = self.held, []
        for name, call, args in held:
            self.scheduler.make_ready(self, name, call, *args)

    def die(self, *, silently: bool = False) -> None:
        """End it: no task takes another step. If one of its own tasks calls this, the call does not
        return. Silently: its host lost power."""
        if self.is_dead:
            return
        self.is_dead = True
        self._loop_calls.clear()
        self.held.clear()
        for call in self.on_death:
            call(silently)
        current = self.scheduler.current
        if current is not None and current.process is self:
            self.scheduler.loop.switch()
            raise GreenletExit

    def discard(self) -> None:
        """After the run: unwind the stacks of its tasks."""
        self.is_dead = True
        for task in list(self.tasks):
            task.abandon()
        self.tasks.clear()

    def _make_loop_call(self) -> None:
        call, args = self._loop_calls.popleft()
        try:
            call(*args)
        except (Exception, Gone, GreenletExit) as error:
            if self.is_dead:
                return  # This call ended the process.
            logger.exception("Uncaught exception in the event loop of %s", self.name)
            self.on_uncaught("the event loop", error)
