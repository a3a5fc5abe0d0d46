"""Which gaps in a log's offsets recovery keeps: a log is compacted, its policy changes while the
broker is down, checkpoint files are lost, and the process or the machine dies at any change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kafka08.log.check import check_log
from kafka08.log.cleaner import LogCleaner
from kafka08.log.cleaner_plan import CleanerConfig
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.names import CLEANER_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from kafka08.simulation.memory_disk import MemoryDisk
from kafka08.structs import TopicPartition
from tests.log.compaction import Message, keyed, latest, messages_of
from tests.log.conftest import Deferred, ManualClock, OpenLog

HOME = Path("/logs")
TP = TopicPartition("t", 0)
CONFIG = LogConfig(
    segment_bytes=300, segment_ms=10**9, index_interval_bytes=60, segment_index_bytes=80,
    delete_retention_ms=10**12,
)  # fmt: skip
POLICIES = ("delete", "compact")
CHECKPOINTS = (RECOVERY_POINT_CHECKPOINT, CLEANER_CHECKPOINT)
LIVES = 8


class Dead(BaseException):
    """Raised at the change at which the process or the machine stops."""


class Machine:
    """A compacted log, and what must be in it.

    messages   those that were appended, without those that cleanings have removed
    last_set   the last messages, of which the process may have died before it had written them all
    cleaned    those that cleanings have removed. A power failure may bring back a segment of which
               a cleaning that did not end has left nothing, for the next one to remove again
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = ManualClock()
        self.disk = MemoryDisk(self.clock.time_ms)
        self.disk.make_directories(HOME)
        self.disk.sync_everything()
        self.messages: list[Message] = []
        self.last_set: list[Message] = []
        self.cleaned: set[Message] = set()
        self.start("compact")

    def start(self, policy: str) -> None:
        self.background = Deferred()
        self.manager = LogManager(
            [HOME],
            replace(CONFIG, cleanup_policy=policy),
            clock=self.clock,
            disk=self.disk,
            background=self.background,
        )
        self.manager.load()
        self.cleaner = LogCleaner(self.manager, CleanerConfig(map_bytes=24 * 20), clock=self.clock)

    @property
    def log(self) -> Log:
        return self.manager.get_or_create(TP)

    def append(self) -> None:
        pairs = [(b"%d" % self.random.randrange(6), b"v" * self.random.randrange(30))] * 2
        start = self.log.log_end_offset
        self.last_set = [(start + number, *pair) for number, pair in enumerate(pairs)]
        self.log.append(keyed(*pairs))
        self.messages += self.last_set

    def roll(self) -> None:
        if self.log.log_end_offset > self.log.active_base_offset:
            self.log.roll()

    def steps(self) -> list[Callable[[], object]]:
        return [
            *[self.append] * 8, *[self.roll] * 2, *[self.cleaner.clean_one] * 2,
            self.background.run_all, self.manager.checkpoint_recovery_points,
        ]  # fmt: skip

    def live(self) -> None:
        """Runs some steps, until the process ends before one of their changes."""
        changes_left = self.random.choice((self.random.randint(0, 60), 10**6))

        def before(_action: str, _path: Path) -> None:
            nonlocal changes_left
            changes_left -= 1
            if changes_left < 0:
                raise Dead

        steps = self.steps()
        self.disk.before = before
        try:
            for _ in range(self.random.randint(5, 40)):
                self.random.choice(steps)()
        except Dead:
            pass

    def die(self) -> None:
        """The process dies, or the machine. While it is down, the policy may change, and files may
        be lost; then it starts again."""
        self.disk.before = lambda _action, _path: None
        flushed = self.log.recovery_point
        is_killed = self.random.random() < 0.6
        if is_killed:
            self.disk.kill()
        else:
            self.disk.lose_power(self.random)
        for name in CHECKPOINTS:
            if self.random.random() < 0.4:
                self.disk.remove(HOME / name)
        self.start(self.random.choice(POLICIES))
        self.compare(self.log.log_end_offset if not is_killed else 10**9, flushed)

    def compare(self, end_offset: int, flushed: int) -> None:
        """Everything below `end_offset` is there but what a later message of its key replaces."""
        log = self.log
        found = messages_of(log)
        if set(found) & set(self.last_set):
            self.messages += [one for one in self.last_set if one not in self.messages]
        written = [message for message in self.messages if message[0] < end_offset]
        assert end_offset >= flushed, "what was flushed is gone"
        if end_offset < 10**9:
            self.take_back(found)
            written = [message for message in self.messages if message[0] < end_offset]
        assert set(found) <= set(written), "nobody wrote that there"
        assert latest(found) == latest(written), "the last message of a key is gone"
        assert [] == [str(problem) for problem in check_log(log.directory, self.disk)]
        self.cleaned |= set(self.messages) - set(found)
        self.messages, self.last_set = found, []

    def take_back(self, found: list[Message]) -> None:
        """Cleaned messages that came back, with later ones of their keys in the part of the log
        that the next cleaning reads."""
        back = self.cleaned.intersection(found) - set(self.messages)
        first_dirty = self.manager.cleaner_points.get(HOME, TP) or 0
        newest = {key: offset for offset, key, _ in sorted(found)}
        assert all(newest[key] >= first_dirty for _, key, _ in back), "a removed message is back"
        self.messages = sorted({*self.messages, *back}, key=lambda message: message[0])


class Replica(Machine):
    """The same of a follower: its leader's log has gaps, and it is truncated now and then.

    dropped     messages that truncations have removed; until that is on disk, a power failure may
                bring them back
    is_cutting  it is in a truncation
    is_cut      the last truncation may not be on disk
    """

    def __init__(self, seed: int) -> None:
        self.dropped: set[Message] = set()
        self.is_cutting = self.is_cut = False
        super().__init__(seed)

    def steps(self) -> list[Callable[[], object]]:
        return [*super().steps(), *[self.follow] * 4, self.truncate]

    def follow(self) -> None:
        start = self.log.log_end_offset + self.random.choice((0, 0, 1, 5))
        pairs = [(b"%d" % self.random.randrange(6), b"v" * self.random.randrange(30))] * 2
        self.last_set = [(start + number, *pair) for number, pair in enumerate(pairs)]
        self.log.append_as_follower(keyed(*pairs, base_offset=start))
        self.messages += self.last_set

    def truncate(self) -> None:
        log = self.log
        lowest = max(log.log_start_offset, log.log_end_offset - 6)
        self.is_cutting = True
        self.manager.truncate_to({TP: self.random.randint(lowest, log.log_end_offset)})
        self.is_cutting = False
        self.dropped |= {message for message in self.messages if message[0] >= log.log_end_offset}
        self.cleaned |= {m for m in self.messages if m[0] < log.log_end_offset}
        self.messages, self.last_set = messages_of(log), []

    def die(self) -> None:
        self.disk.before = lambda _action, _path: None
        self.is_cut = self.log._unsynced.was_cut
        super().die()
        self.is_cutting = False

    def compare(self, end_offset: int, flushed: int) -> None:
        found = set(messages_of(self.log))
        written = {*self.messages, *self.last_set}
        may_be_back = self.is_cutting or (self.is_cut and end_offset < 10**9)
        if may_be_back and found - written <= self.dropped:
            self.messages, self.last_set = messages_of(self.log), []
            assert [] == [str(one) for one in check_log(self.log.directory, self.disk)]
        else:
            super().compare(end_offset, flushed)


@pytest.mark.parametrize("seed", [*range(20), 700])
def test_no_message_of_a_follower_is_deleted_for_a_gap(seed: int) -> None:
    """The same with the gaps of a leader, and with truncations into them."""
    replica = Replica(seed)
    for _ in range(LIVES):
        replica.live()
        replica.die()


@pytest.mark.parametrize("seed", range(40))
def test_no_message_is_deleted_for_a_gap(seed: int) -> None:
    """A compacted log has gaps between its segments, and recovery keeps what is behind them: after
    a kill all messages but replaced ones, after a power failure all up to the end of the log, which
    has no hole. Neither today's policy nor a lost checkpoint changes that."""
    machine = Machine(seed)
    for _ in range(LIVES):
        machine.live()
        machine.die()


def test_a_log_end_in_a_gap_is_no_loss(open_log: OpenLog) -> None:
    """A follower may truncate to an offset between two messages of a compacted log. The log end is
    that of the last message that stays: a roll there would leave a mark above it, and a kill before
    the flush would look like a loss, for which all later segments are deleted."""
    log = open_log()
    for offset in (0, 5):
        log.append_as_follower(keyed((b"k", b"v"), base_offset=offset))
    log.truncate_to(3)
    log.roll()
    log.append_as_follower(keyed((b"k", b"v"), base_offset=4))
    assert [0, 4] == [offset for offset, *_ in messages_of(open_log())]
