"""Simulated threads and greenlets, and the tickets of their waits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit, greenlet

if TYPE_CHECKING:
    from kafka08.simulation.process import Process

logger = logging.getLogger(__name__)


class Ticket:
    """One wait of one task, which ends once: by a wake-up or by its timeout."""

    __slots__ = ("is_done", "task")

    def __init__(self, task: SimTask) -> None:
        self.task = task
        self.is_done = False

    def wake(self, value: Any = True) -> bool:
        """End the wait with this result. False if it has ended already."""
        if self.is_done:
            return False
        self.is_done = True
        self.task.go_on(value)
        return True


class SimTask:
    """A `kafka08.runtime.Greenlet`. An exception that leaves it is logged, and fails the run."""

    def __init__(
        self, process: Process, call: Callable[..., object], args: tuple[object, ...], name: str
    ) -> None:
        self.name = name
        self.process = process
        self._scheduler = process.scheduler
        self._greenlet = greenlet(self._run, self._scheduler.loop)
        self._work: tuple[Callable[..., object], tuple[object, ...]] | None = (call, args)
        self._ticket: Ticket | None = None
        self._is_killed = False
        self._joiners: list[Ticket] = []
        self.is_ended = False
        self.go_on(None)

    def is_alive(self) -> bool:
        return not self.is_ended

    def join(self, timeout: float | None = None) -> None:
        if not self.is_ended:
            self.process.wait(self._joiners, timeout)

    def kill(self, block: bool = True, timeout: float | None = None) -> None:
        """Raise GreenletExit at the call in which it waits."""
        if self.is_ended:
            return
        if self._scheduler.current is self:
            raise GreenletExit
        if not self._is_killed:
            self._is_killed = True
            if self._ticket is not None and not self._ticket.is_done:
                self._ticket.wake()
        if block:
            self.join(timeout)

    def park(self, ticket: Ticket, timeout: float | None) -> Any:
        """Wait for `ticket`. Returns the value of the wake-up, False after `timeout` seconds. Only
        the task itself calls it."""
        scheduler = self._scheduler
        if timeout is not None:
            scheduler.call_later(timeout, ticket.wake, False)
        self._ticket = ticket
        value = scheduler.loop.switch()
        self._ticket = None
        if self._is_killed or self.process.is_dead:
            ticket.is_done = True
            self._is_killed = False
            raise GreenletExit
        return value

    def go_on(self, value: Any) -> None:
        """Make it ready to continue with this value."""
        self._scheduler.make_ready(self.process, self.name, self._resume, value)

    def abandon(self) -> None:
        """Unwind its stack after the run, to free what it references."""
        if self._greenlet:
            self._greenlet.throw(GreenletExit)
        self._work = None

    def _resume(self, value: Any) -> None:
        self._scheduler.current = self
        self._greenlet.switch(value)

    def _run(self, _: Any) -> None:
        work, self._work = self._work, None
        try:
            if work is not None and not self._is_killed:
                work[0](*work[1])
        except GreenletExit:
            pass
        except (KeyboardInterrupt, SystemExit):
            raise  # They end the simulation.
        except BaseException as error:
            if not self.process.is_dead:
                logger.exception("Uncaught exception in task '%s'", self.name)
                self.process.on_uncaught(self.name, error)
        finally:
            self.is_ended = True
            self.process.tasks.pop(self, None)
            joiners, self._joiners = self._joiners, []
            for ticket in joiners:
                ticket.wake()
