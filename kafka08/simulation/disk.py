"""The disk of one host in the simulated world: it may fail, be full or be slow for a while."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from kafka08.simulation.memory_disk import MemoryDisk, failure

if TYPE_CHECKING:
    from kafka08.simulation.cluster import SimBroker

ERROR_SHARE: Final = 0.2
"""How often a disk that fails does so."""
NEEDS_ROOM: Final = frozenset({"create", "write", "allocate", "make directory"})


class SimDisk(MemoryDisk):
    """A disk in memory, with what can befall it.

    is_full        whatever needs room fails; of a write, a part is done
    fails          some reads, writes and syncs fail
    slow_seconds   the longest that a call holds up the process; what a native thread does takes as
                   long as its job, not longer
    """

    def __init__(self, owner: SimBroker, random: Random) -> None:
        super().__init__(owner.time_ms)
        self.is_full = False
        self.fails = False
        self.slow_seconds = 0.0
        self._owner = owner
        self._random = random
        self._is_held_up = False
        self._is_looked_at = False
        self.before = self._before
        self.before_read = lambda path: self._before("read", path)
        self.torn = lambda size: self._random.randrange(size) if size else 0

    def repair(self) -> None:
        """End what is wrong with it."""
        self.is_full = self.fails = False
        self.slow_seconds = 0.0

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """While it lasts no process calls, but one who looks on: nothing goes wrong."""
        self._is_looked_at = True
        try:
            yield
        finally:
            self._is_looked_at = False

    def power_fails(self) -> None:
        """See `lose_power`."""
        self.lose_power(self._random)

    def _before(self, action: str, path: Path) -> None:
        if self._is_looked_at:
            return
        if self.slow_seconds:
            self._hold_up()
        if self.is_full and action in NEEDS_ROOM:
            raise failure(errno.ENOSPC, path)
        if self.fails and self._random.random() < ERROR_SHARE:
            raise failure(errno.EIO, path)

    def _hold_up(self) -> None:
        """The process takes no further step until the disk has answered."""
        process = self._owner.process
        if process is None or process.scheduler.running is not process or self._is_held_up:
            return
        self._is_held_up = True
        process.stop()
        seconds = self._random.random() * self.slow_seconds
        process.scheduler.call_later(seconds, self._go_on, process.resume)

    def _go_on(self, resume: Callable[[], object]) -> None:
        self._is_held_up = False
        resume()
