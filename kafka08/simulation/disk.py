"""The disk of a simulated host, which may fail, be full or be slow for a while."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from kafka08.log.names import LOG_SUFFIX
from kafka08.simulation.memory_disk import Gone, MemoryDisk, failure

if TYPE_CHECKING:
    from kafka08.simulation.cluster import SimBroker

ERROR_SHARE: Final = 0.2
"""The share of calls that fail on a failing disk."""
NEEDS_ROOM: Final = frozenset({"create", "write", "allocate", "make directory"})


class SimDisk(MemoryDisk):
    """A disk in memory, with faults.

    is_full        calls that need space fail; a failed write may write a part
    fails          some reads, writes and syncs fail
    lacks_descriptors   no file can be opened
    slow_seconds   the longest time for which a call suspends the process; calls of native threads
                   take no longer than their jobs
    on_roll        called once, when a log begins another segment; None: not at all
    on_truncate    called with a file that is about to be truncated
    """

    def __init__(self, owner: SimBroker, random: Random) -> None:
        super().__init__(owner.time_ms, owner.host)
        self.is_full = False
        self.fails = False
        self.lacks_descriptors = False
        self.slow_seconds = 0.0
        self.on_roll: Callable[[], object] | None = None
        self.on_truncate: Callable[[Path], object] = lambda _: None
        self._owner = owner
        self._random = random
        self._is_held_up = False
        self._is_observed = False
        self.before = self._before
        self.before_read = lambda path: self._before("read", path)
        self.before_open = self._before_open
        self.torn = lambda size: self._random.randrange(size) if size else 0

    def repair(self) -> None:
        """End all faults of the disk."""
        self.is_full = self.fails = self.lacks_descriptors = False
        self.slow_seconds = 0.0
        self.on_roll = None

    @contextmanager
    def without_faults(self) -> Iterator[None]:
        """Calls of the checks, which have no faults and take no time."""
        self._is_observed = True
        try:
            yield
        finally:
            self._is_observed = False

    def power_fails(self) -> None:
        """See `lose_power`; draws from the disk's own random numbers."""
        self.lose_power(self._random)

    def _before(self, action: str, path: Path) -> None:
        if self._is_observed:
            return
        process = self._owner.process
        if action != "read" and process is not None and process.is_dead:
            raise Gone(path)  # by a callback that halted the process: its frames still unwind
        if self.slow_seconds:
            self._hold_up()
        if self.is_full and action in NEEDS_ROOM:
            raise failure(errno.ENOSPC, path)
        if self.fails and self._random.random() < ERROR_SHARE:
            raise failure(errno.EIO, path)
        on_roll = self.on_roll
        if action == "create" and on_roll is not None and is_later_segment(path):
            self.on_roll = None
            on_roll()
        if action == "truncate":
            self.on_truncate(path)

    def _before_open(self, path: Path) -> None:
        if self.lacks_descriptors and not self._is_observed:
            raise failure(errno.EMFILE, path)

    def _hold_up(self) -> None:
        """Suspend the process until the disk responds."""
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


def is_later_segment(path: Path) -> bool:
    """Whether a file is a segment, and not the first of a new log."""
    return path.suffix == LOG_SUFFIX and path.stem.strip("0") != ""
