"""The scheduler: runs simulated tasks, in an order drawn from the seed, on a virtual clock.

A simulated thread or greenlet is a greenlet, which switches only where it waits. While tasks are
ready the scheduler runs them; when none is, time jumps to the next timer. Each step takes a little
time, so a loop that only yields cannot stop the clock.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from math import inf
from random import Random
from typing import TYPE_CHECKING, Final

from greenlet import getcurrent, greenlet

from kafka08.simulation.trace import Trace

if TYPE_CHECKING:
    from kafka08.simulation.process import Process
    from kafka08.simulation.task import SimTask

STEP_S: Final = 2e-6


class Timer:
    """A call that may be cancelled: schedule its `run`."""

    __slots__ = ("args", "call")

    def __init__(self, call: Callable[..., object], args: tuple[object, ...]) -> None:
        self.call: Callable[..., object] | None = call
        self.args = args

    def cancel(self) -> None:
        self.call = None
        self.args = ()

    def run(self) -> None:
        call = self.call
        if call is not None:
            call(*self.args)


class Scheduler:
    """disorder   the share of steps, 0 to 1, whose task is drawn from all ready ones; the others
    run the task that has been ready longest
    """

    def __init__(self, random: Random, trace: Trace, *, disorder: float) -> None:
        self.now = 0.0
        """Seconds since the run began."""
        self.steps = 0
        self.trace = trace
        self.current: SimTask | None = None
        """The running task; None in the event loop of a process, and between steps."""
        self.running: Process | None = None
        """The process of the current step."""
        self.is_over = False
        self.loop: greenlet = getcurrent()
        """The greenlet to which tasks switch when they wait."""
        self._draw = random.random
        self._disorder = disorder
        self._ready: list[tuple[Process, str, Callable[..., object], tuple[object, ...]]] = []
        self._calls: list[tuple[float, int, Callable[..., object], tuple[object, ...]]] = []
        """A heap of those that are scheduled: each with its time and its number."""
        self._number = itertools.count().__next__

    def disorder_within(self, windows: Iterable[tuple[float, float]]) -> None:
        """Use disorder at these times alone: (from, to), in order, not overlapping."""
        disorder, self._disorder = self._disorder, 0.0
        for start, end in windows:
            self.call_at(start, self._set_disorder, disorder)
            if end < inf:
                self.call_at(end, self._set_disorder, 0.0)

    def _set_disorder(self, disorder: float) -> None:
        self._disorder = disorder

    def call_at(self, at: float, call: Callable[..., object], *args: object) -> None:
        """Make a call, outside of all processes, at that time. Calls of one time keep their
        order."""
        heapq.heappush(self._calls, (at, self._number(), call, args))

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> None:
        at = self.now + seconds if seconds > 0.0 else self.now
        heapq.heappush(self._calls, (at, self._number(), call, args))

    def make_ready(
        self, process: Process, name: str, call: Callable[..., object], *args: object
    ) -> None:
        """Make the call as a step of a process. `name` is its name in the trace."""
        self._ready.append((process, name, call, args))

    def run(self, steps_max: int) -> bool:
        """Run until `is_over`. False if no step or call was left, or after `steps_max` steps."""
        calls, ready, pop = self._calls, self._ready, heapq.heappop
        while not self.is_over:
            while calls and calls[0][0] <= self.now:
                _, _, call, args = pop(calls)
                call(*args)
            if ready:
                if self.steps >= steps_max:
                    return False
                self._step()
            elif calls:
                self.now = calls[0][0]
            else:
                return False
        return True

    def _step(self) -> None:
        ready = self._ready
        index = 0
        if self._disorder and len(ready) > 1 and self._draw() < self._disorder:
            index = int(self._draw() * len(ready))
        process, name, call, args = ready.pop(index)
        if process.is_dead:
            return
        if process.is_stopped:
            process.held.append((name, call, args))
            return
        self.steps += 1
        self.now += STEP_S
        self.trace.step(self.now, process.name, name)
        self.running = process
        call(*args)
        self.running = self.current = None
