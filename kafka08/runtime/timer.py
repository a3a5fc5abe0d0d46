"""Timer: a hierarchical timing wheel for many timeouts that mostly are cancelled.

    level 0   20 slots of 1 ms       the next 20 ms
    level 1   20 slots of 20 ms      the next 400 ms
    level 2   20 slots of 400 ms     the next 8 s, and so on; made when first needed

A task goes into the slot of the finest level that reaches it, in O(1), and leaves it in O(1). When
a slot of a coarse level is due, its tasks move to finer ones; one of level 0 runs them. Slots with
tasks are in a heap by due time, and one timer of the runtime is set for the first: an idle wheel
does not tick. Source: kafka.utils.timer.TimingWheel 0.9.0.1.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Callable
from typing import Final

from kafka08.runtime import BrokerRuntime, Cancellable
from kafka08.runtime.uncaught import uncaught

logger = logging.getLogger(__name__)

TICK_MS: Final = 1
WHEEL_SIZE: Final = 20


class TimerTask:
    """A call that is due at `expires_ms`. In at most one slot; `slot` is None once run."""

    __slots__ = ("call", "expires_ms", "slot")

    def __init__(self, expires_ms: int, call: Callable[[], object]) -> None:
        self.expires_ms = expires_ms
        self.call = call
        self.slot: Slot | None = None

    def cancel(self) -> None:
        """Drop the call. Harmless after it was made."""
        if self.slot is not None:
            self.slot.tasks.pop(self, None)
            self.slot = None


class Slot:
    """The tasks of one slot of one wheel, due between `due_ms` and `due_ms` + tick."""

    __slots__ = ("due_ms", "tasks")

    def __init__(self) -> None:
        self.due_ms = -1
        self.tasks: dict[TimerTask, None] = {}

    def __lt__(self, other: Slot) -> bool:
        return self.due_ms < other.due_ms


class TimingWheel:
    """One level. `heap` is shared by all levels and holds every slot that may have tasks."""

    def __init__(self, tick_ms: int, size: int, now_ms: int, heap: list[Slot]) -> None:
        self._tick_ms = tick_ms
        self._size = size
        self._interval_ms = tick_ms * size
        self._now_ms = now_ms - now_ms % tick_ms
        self._slots = [Slot() for _ in range(size)]
        self._heap = heap
        self._overflow: TimingWheel | None = None

    def add(self, task: TimerTask) -> bool:
        """Put the task into its slot. False, and no slot, if it is due already."""
        expires_ms, wheel = task.expires_ms, self
        if expires_ms - wheel._now_ms < wheel._tick_ms:
            return False
        while expires_ms - wheel._now_ms >= wheel._interval_ms:
            if wheel._overflow is None:
                wheel._overflow = TimingWheel(
                    wheel._interval_ms, wheel._size, wheel._now_ms, wheel._heap
                )
            wheel = wheel._overflow
        number = expires_ms // wheel._tick_ms
        slot = wheel._slots[number % wheel._size]
        slot.tasks[task] = None
        task.slot = slot
        due_ms = number * wheel._tick_ms
        if slot.due_ms != due_ms:
            slot.due_ms = due_ms
            heapq.heappush(wheel._heap, slot)
        return True

    def advance(self, now_ms: int) -> None:
        """Advance the wheel's time; passed slots can be reused."""
        if now_ms >= self._now_ms + self._tick_ms:
            self._now_ms = now_ms - now_ms % self._tick_ms
            if self._overflow is not None:
                self._overflow.advance(self._now_ms)


class Timer:
    """Calls in the hub, never early, at most about a millisecond late. Nothing here switches.

    runtime     of the broker
    monotonic   its clock, in seconds
    """

    def __init__(self, runtime: BrokerRuntime) -> None:
        self.monotonic = runtime.monotonic
        self.runtime = runtime
        self._heap: list[Slot] = []
        self._wheel = TimingWheel(TICK_MS, WHEEL_SIZE, self._now_ms(), self._heap)
        self._alarm: Cancellable | None = None
        self._alarm_ms = 0

    def _now_ms(self) -> int:
        return int(self.runtime.monotonic() * 1000)

    def add(self, delay_ms: float, call: Callable[[], object]) -> TimerTask:
        """Call it in `delay_ms`, in the hub, unless the task is cancelled before. 0 and less is as
        soon as possible."""
        # The clock is read once: the process may be suspended between two looks, and slots that
        # are due then must not be passed before they have run.
        now = self.runtime.monotonic() * 1000
        task = TimerTask(math.ceil(now + max(0.0, delay_ms)), call)
        if not self._heap:
            # The wheel's time stood still while it was empty.
            self._wheel.advance(int(now))
        if not self._wheel.add(task):
            # Due in the tick at which the wheel stands: its earliest possible time is the next one.
            task.expires_ms += TICK_MS
            self._wheel.add(task)
        if self._alarm is None or self._heap[0].due_ms < self._alarm_ms:
            self._set_alarm()
        return task

    def _run(self, task: TimerTask) -> None:
        try:
            task.call()
        except Exception as error:  # noqa: BLE001 - the other tasks must run
            uncaught(self.runtime, error, logger, "Uncaught exception in a timer task")

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = self._heap[0].due_ms
        delay = self._alarm_ms / 1000 - self.runtime.monotonic()
        self._alarm = self.runtime.call_later(max(delay, 0.0), self._ring)

    def _ring(self) -> None:
        """Run due tasks, move others to finer slots, and set the alarm for the next slot."""
        self._alarm = None
        while self._heap and self._heap[0].due_ms <= self.runtime.monotonic() * 1000:
            slot = heapq.heappop(self._heap)
            self._wheel.advance(slot.due_ms)
            slot.due_ms = -1
            tasks, slot.tasks = slot.tasks, {}
            for task in tasks:
                if task.slot is None:
                    continue  # cancelled by an earlier task
                task.slot = None
                if not self._wheel.add(task):
                    self._run(task)
        self._hasten_alarm()

    def _hasten_alarm(self) -> None:
        """Set the alarm for the first slot, unless it is: a call may have set it for a later one,
        before a task with an earlier time has moved to a finer slot."""
        if self._heap and (self._alarm is None or self._heap[0].due_ms < self._alarm_ms):
            self._set_alarm()
