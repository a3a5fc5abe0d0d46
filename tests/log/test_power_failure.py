"""A LogManager that is killed, or whose disk loses power: flushed messages survive, and the log has
no gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka08.levels import Level
from kafka08.log.check import check_log
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.retention import Retention
from kafka08.protocol import message_set
from kafka08.simulation.memory_disk import Gone, MemoryDisk
from kafka08.structs import TopicPartition
from tests.log.conftest import Deferred, ManualClock, a_set, all_values

HOME = Path("/logs")
TP = TopicPartition("t", 0)
CONFIG = LogConfig(
    segment_bytes=400, segment_ms=10**9, index_interval_bytes=60, segment_index_bytes=80
)
LIVES = 12
"""Between kills and power failures."""
STEPS_MAX = 25


class PowerLost(BaseException):
    """Raised at the change at which the machine stops."""


def oldest(count: int) -> Retention:
    """Retention that expires the oldest segments."""

    class Oldest(Retention):
        def expired(self, segments: object, now_ms: int) -> int:
            return count

    return Oldest()


class Machine:
    """A log, its disk, and what must be on it.

    values    offset → value of the messages in the log
    written   offset → every value that the log ever had there
    safe      the flushed offsets [start, end) that the current step must leave
    """

    def __init__(self, seed: int, level: Level = Level.V0_8_2) -> None:
        self.random = Random(seed)
        self.config = replace(CONFIG, level=level)
        self.clock = ManualClock()
        self.disk = MemoryDisk(self.clock.time_ms)
        self.background = Deferred()
        self.values: dict[int, bytes | None] = {}
        self.written: dict[int, set[bytes | None]] = {}
        self.safe = (0, 0)
        self.number = 0
        self.disk.make_directories(HOME)
        self.disk.sync_everything()
        self.start()

    def start(self) -> None:
        self.background = Deferred()
        self.manager = LogManager(
            [HOME], self.config, clock=self.clock, disk=self.disk, background=self.background
        )
        self.manager.load()

    @property
    def log(self) -> Log:
        return self.manager.get_or_create(TP)

    # Steps

    def append(self) -> None:
        values = [b"%d" % (self.number + n) for n in range(self.random.randint(1, 4))]
        self.number += len(values)
        start = self.log.log_end_offset
        for offset, value in enumerate(values, start):
            self.values[offset] = value
            self.written.setdefault(offset, set()).add(value)
        data = a_set(*values)
        if self.config.has_timestamps:
            times = [self.time_of(value) for value in values]
            pairs = [(None, value) for value in values]
            data = bytearray(message_set.encode(pairs, 0, 0, 1, times))
        self.log.append(data)

    @staticmethod
    def time_of(value: bytes | None) -> int:
        """The timestamp of a message; timestamps rise and fall."""
        number = int(value or b"")
        return number * 7 % 50 + number

    def roll(self) -> None:
        if self.log.log_end_offset > self.log.active_base_offset:
            self.log.roll()

    def flush(self) -> None:
        self.log.flush()

    def run_background(self) -> None:
        for flush in self.background.flushes[: self.random.randint(1, 3)]:
            self.background.flushes.remove(flush)
            flush.run()
        if self.random.random() < 0.5:
            self.background.run_all()

    def checkpoint(self) -> None:
        self.manager.checkpoint_recovery_points()

    def truncate(self) -> None:
        log = self.log
        offset = self.random.randint(log.log_start_offset, log.log_end_offset)
        self.safe = (self.safe[0], min(self.safe[1], offset))
        self.manager.truncate_to({TP: offset})
        self.values = {o: v for o, v in self.values.items() if o < offset}

    def start_elsewhere(self) -> None:
        offset = self.log.log_end_offset + self.random.randint(0, 5)
        self.safe = (offset, offset)
        self.manager.truncate_fully_and_start_at(TP, offset)
        self.values = {}

    def retain(self) -> None:
        log = self.log
        bases = [facts.base_offset for facts in log.segment_facts]
        count = self.random.randrange(len(bases))
        self.safe = (bases[count], max(self.safe[1], bases[count]))
        log.delete_old_segments(oldest(count))
        self.values = {o: v for o, v in self.values.items() if o >= bases[count]}

    def restart(self) -> None:
        self.manager.shutdown()
        self.start()

    # Lives

    def live(self) -> None:
        """Runs some steps, until the process ends before one of their changes."""
        changes_left = self.random.choice((self.random.randint(0, 10), self.random.randint(0, 200)))

        def before(_action: str, _path: Path) -> None:
            nonlocal changes_left
            changes_left -= 1
            if changes_left < 0:
                raise PowerLost

        steps: list[Callable[[], None]] = [
            *[self.append] * 8, *[self.roll] * 2, *[self.flush] * 2, *[self.run_background] * 3,
            self.checkpoint, *[self.truncate] * 2, self.retain, self.start_elsewhere, self.restart,
        ]  # fmt: skip
        self.disk.before = before
        try:
            for _ in range(self.random.randint(1, STEPS_MAX)):
                log = self.log
                self.safe = (log.log_start_offset, log.recovery_point)
                self.random.choice(steps)()
                log = self.log
                self.safe = (log.log_start_offset, log.recovery_point)
        except PowerLost:
            pass

    def die(self) -> None:
        """The power fails, or only the process is killed; then it starts again."""
        self.disk.before = lambda _action, _path: None
        flushed = {o: v for o, v in self.values.items() if self.safe[0] <= o < self.safe[1]}
        if self.random.random() < 0.3:
            self.disk.kill()
        else:
            self.disk.lose_power(self.random)
        self.start()
        log = self.log
        found = dict(all_values(log))
        assert list(found) == list(range(log.log_start_offset, log.log_end_offset)), "a hole"
        assert flushed.items() <= found.items(), "what was flushed is gone"
        for offset, value in found.items():
            assert value in self.written[offset], "nobody wrote that there"
        assert log.recovery_point <= log.log_end_offset
        assert [] == [str(problem) for problem in check_log(log.directory, self.disk)]
        self.values = found
        if self.config.has_timestamps:
            self.look_up()

    def look_up(self) -> None:
        """A search for any time finds the first message at or after it."""
        times = {offset: self.time_of(value) for offset, value in self.values.items()}
        for target in {*times.values(), -1, self.number + 60}:
            expected = next((o for o, time in sorted(times.items()) if time >= target), None)
            found = self.log.offset_at_time(target)
            assert expected == (found and found.offset), f"the message at {target}"


@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_10_2])
@pytest.mark.parametrize("seed", range(60))
def test_flushed_messages_survive_power_failures(seed: int, level: Level) -> None:
    """A power failure or a kill may come at any change of an append, roll, flush, truncation,
    retention or restart, and then the next one. Below the recovery point every message survives.
    Above it the log ends at the first loss and has only messages that were written. It is sound and
    accepts appends, and at 0.10.2 a search by time finds every message."""
    machine = Machine(seed, level)
    for _ in range(LIVES):
        machine.live()
        machine.die()


def test_a_dead_process_does_not_write_on() -> None:
    """A thread that outlives its process cannot write to the files of the next one."""
    machine = Machine(0)
    log = machine.log
    machine.die()
    with pytest.raises(Gone):
        log.append(a_set(b"x"))


def test_the_name_of_a_new_log_directory_survives() -> None:
    """A broker's first start makes its log directories, and what was flushed there survives a power
    failure."""
    clock = ManualClock()
    disk = MemoryDisk(clock.time_ms)
    home = Path("/var/lib/logs")
    for flush in (True, False):
        manager = LogManager([home], CONFIG, clock=clock, disk=disk)
        manager.load()
        log = manager.get_or_create(TP)
        if flush:
            log.append(a_set(b"a"))
            log.flush()
            disk.lose_power(NothingMore())
    assert [(0, b"a")] == all_values(log)


class NothingMore(Random):
    """Nothing reaches the disk but what was synced."""

    def randint(self, a: int, b: int) -> int:
        return a

    def choice(self, seq: Any) -> Any:
        return seq[0]

    def random(self) -> float:
        return 0.0
