from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kafka08.log import crashpoints
from kafka08.log.log import Log
from kafka08.log.retention import Retention
from kafka08.runtime.disk import Disk
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.simulation.memory_disk import MemoryDisk
from tests.log.conftest import CrashAt, Died, ManualClock, OpenLog, a_set, all_values

POWER_FAILURES = range(8)
"""Seeds of what a power failure leaves on the disk."""

PASSES = {
    crashpoints.ROLL_SEALED: 2,
    crashpoints.ROLL_LOG_CREATED: 2,
    crashpoints.ROLL_CREATED: 2,
    crashpoints.FLUSH_SYNCED: 3,
    crashpoints.TRUNCATE_SEGMENTS_DELETED: 2,
    crashpoints.TRUNCATE_INDEX_CUT: 2,
    crashpoints.DELETE_LOG_RENAMED: 3,
}
"""Each point of a log, and how often `_live` passes it."""


@pytest.fixture(params=["process", *POWER_FAILURES], ids=lambda end: f"end-{end}")
def disk(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Disk:
    """The real disk if only the process dies; otherwise a disk that loses power."""
    if request.param == "process":
        return SYSTEM_DISK
    memory_disk = MemoryDisk(clock.time_ms)
    memory_disk.make_directories(tmp_path)
    memory_disk.sync_everything()
    return memory_disk


@pytest.fixture
def end(request: pytest.FixtureRequest, disk: Disk) -> Callable[[], None]:
    """Call this after the log has died."""
    if not isinstance(disk, MemoryDisk):
        return lambda: None
    seed = request.node.callspec.params["disk"]
    return lambda: disk.lose_power(Random(seed))


def _live(log: Log) -> None:
    """A series of operations that passes every crash point of a log more than once. Offsets 0 to 3
    exist before."""
    for number in range(4, 8):
        log.append(a_set(b"%d" % number))
    log.roll()
    log.append(a_set(b"8", b"9"))
    log.flush()
    log.append(a_set(b"10"))
    log.truncate_to(9)
    log.append(a_set(b"9"))
    log.roll()
    log.append(a_set(b"10"))
    log.flush()
    log.delete_old_segments(_Oldest())
    log.truncate_to(7)


class _Oldest(Retention):
    def expired(self, segments: object, now_ms: int) -> int:
        return 1


def _prepared(open_log: OpenLog, crash: Callable[[str], None]) -> Log:
    """A log with the offsets 0 to 3, flushed, in two segments."""
    log = open_log(index_interval_bytes=0, segment_index_bytes=800, crash=lambda _name: None)
    for number in range(4):
        log.append(a_set(b"%d" % number))
        if number == 1:
            log.roll()
    log.flush()
    log._crash = crash
    return log


def test_a_life_passes_every_point(open_log: OpenLog) -> None:
    """The operations pass every crash point as often as the next test dies there. A point that they
    do not pass would prove nothing."""
    seen = CrashAt("never")
    _live(_prepared(open_log, seen))
    assert Counter(seen.seen) == PASSES
    assert min(PASSES.values()) > 0


@pytest.mark.parametrize(
    ("point", "passed_before"),
    [(point, number) for point, passes in PASSES.items() for number in range(passes)],
)
def test_flushed_messages_survive_a_death_at(
    open_log: OpenLog, end: Callable[[], None], point: str, passed_before: int
) -> None:
    """After a death at any point the log opens from the last recovery point and is sound. It has
    the messages that were written, in order. Nothing below the recovery point is missing but what
    retention or truncation was removing."""
    log = _prepared(open_log, CrashAt(point, passed_before))
    with pytest.raises(Died):
        _live(log)
    end()
    again = open_log(
        recovery_point=log.recovery_point, index_interval_bytes=0, segment_index_bytes=800
    )
    found = all_values(again)
    assert [(offset, b"%d" % offset) for offset, _ in found] == found
    offsets = [offset for offset, _ in found]
    assert list(range(again.log_start_offset, again.log_end_offset)) == offsets
    assert again.log_start_offset <= 2
    assert again.log_end_offset >= min(4, log.recovery_point)
    again.append(a_set(b"%d" % again.log_end_offset))
    assert len(found) + 1 == len(all_values(again))


def test_retention_that_died_half_way_is_finished(
    open_log: OpenLog, disk: Disk, end: Callable[[], None]
) -> None:
    """A death after the rename of the .log and before that of the .index loses no step: the next
    start drops the segment and its index."""
    log = _prepared(open_log, CrashAt(crashpoints.DELETE_LOG_RENAMED))
    with pytest.raises(Died):
        log.delete_old_segments(Retention(-(10**13)))
    disk.open_directory(log.directory).sync()
    end()
    again = open_log(recovery_point=4)
    assert (2, 4) == (again.log_start_offset, again.log_end_offset)
