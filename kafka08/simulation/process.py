"""A simulated process: tasks and an event loop with a clock of their own, which live and die
together."""

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
    """wall_offset_ms     how far its wall clock is from the world's; may be changed
    monotonic_offset   what its monotonic clock showed when the run began, in seconds
    on_uncaught        told of an exception that left a task, with the task's name
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
        """Steps that became due while it was stopped."""
        self.tasks: dict[SimTask, None] = {}
        """Those that live, in the order in which they began."""
        self.on_death: list[Callable[[bool], object]] = []
        """Called when it dies: its host ends its connections. True: the host lost power."""
        self._stops = 0
        self._loop_calls: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()

    # What it sees of time

    def monotonic(self) -> float:
        return self.scheduler.now + self.monotonic_offset

    def time_ms(self) -> int:
        return START_WALL_MS + self.wall_offset_ms + int(self.scheduler.now * 1000)

    # Tasks and calls

    def spawn(self, call: Callable[..., object], args: tuple[object, ...], name: str) -> SimTask:
        self.check_alive()
        task = SimTask(self, call, args, name)
        self.tasks[task] = None
        return task

    def call_soon(self, call: Callable[..., object], *args: object) -> None:
        """Make the call in its event loop, after those that are due there."""
        if not self.is_dead:
            self._loop_calls.append((call, args))
            self.scheduler.make_ready(self, "loop", self._make_loop_call)

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Timer:
        """Make the call in its event loop in so many seconds."""
        timer = Timer(call, args)
        self.scheduler.call_later(seconds, self.call_soon, timer.run)
        return timer

    def wait(self, waiters: list[Ticket], timeout: float | None) -> Any:
        """Let the task that runs wait in a list of tickets: what it was woken with, or False after
        `timeout` seconds, no longer in the list then."""
        self.check_alive()
        task = self.scheduler.current
        assert task is not None, "the event loop must not wait"
        ticket = Ticket(task)
        waiters.append(ticket)
        try:
            value = task.park(ticket, timeout)
        except GreenletExit:
            if ticket in waiters:
                waiters.remove(ticket)
            raise
        if value is False and ticket in waiters:
            waiters.remove(ticket)
        return value

    def sleep(self, seconds: float) -> None:
        self.wait([], max(seconds, 1e-6))

    def check_alive(self) -> None:
        """End the task that asks, if the process is dead: its stack is being unwound."""
        if self.is_dead:
            raise GreenletExit

    # Its life

    def stop(self) -> None:
        """As SIGSTOP does: it does nothing until `resume`, once for each `stop`, and does not
        know."""
        self._stops += 1
        self.is_stopped = True

    def resume(self) -> None:
        self._stops -= 1
        if self._stops:
            return
        self.is_stopped = False
        held, self.held = self.held, []
        for name, call, args in held:
            self.scheduler.make_ready(self, name, call, *args)

    def die(self, *, silently: bool = False) -> None:
        """End it where it is: no task takes another step. A task of its own that calls this does
        not return. Silently: its host lost power."""
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

    def bury(self) -> None:
        """After the run: unwind what its tasks have left on their stacks."""
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
                return  # It ended itself in this call.
            logger.exception("Uncaught exception in the event loop of %s", self.name)
            self.on_uncaught("the event loop", error)
