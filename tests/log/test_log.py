"""Log: appends, rolls and reads. Flushes are in test_log_flush, deletions in test_log_deletion."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from kafka08.errors import (
    InvalidMessage,
    MessageSetSizeTooLarge,
    MessageSizeTooLarge,
    OffsetOutOfRange,
    StorageError,
    UnknownError,
)
from kafka08.levels import Level
from kafka08.log.offset_index import IndexEntry
from kafka08.log.slices import LogOffset
from kafka08.protocol import message_set
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET
from tests.log.conftest import (
    START_MS,
    Deferred,
    ManualClock,
    OpenLog,
    a_set,
    all_values,
    bases,
    set_times,
    values_of,
)

ENTRY = 26  # bytes of an entry around a value


# Appending


def test_offsets_are_given_one_by_one(open_log: OpenLog) -> None:
    """The messages of a set get the LEO and the offsets after it, whatever offsets they had."""
    log = open_log()
    assert (0, 1, 2) == _numbers(log.append(a_set(b"a", b"b", base_offset=70)))
    assert (2, 2, 1) == _numbers(log.append(a_set(b"c")))
    assert [(0, b"a"), (1, b"b"), (2, b"c")] == all_values(log)
    assert (0, 3) == (log.log_start_offset, log.log_end_offset)


def _numbers(info: Any) -> tuple[int, int, int]:
    return info.first_offset, info.last_offset, info.count


def test_nothing_is_appended_of_an_empty_or_cut_set(open_log: OpenLog) -> None:
    """A partial entry at the end of a set is dropped. If nothing else is there, the log does not
    move."""
    log = open_log()
    assert (-1, -1, 0) == _numbers(log.append(bytearray()))
    assert (-1, -1, 0) == _numbers(log.append(a_set(b"abc")[:-1]))
    info = log.append(a_set(b"a") + a_set(b"cut")[:-2])
    assert (0, 0, 1, ENTRY + 1) == (*_numbers(info), info.size)
    assert [(0, b"a")] == all_values(log)


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_a_compressed_set_is_numbered_inside(open_log: OpenLog, codec: int) -> None:
    """A compressed set is one wrapper with the last inner offset. A read at an inner offset returns
    the wrapper."""
    log = open_log()
    log.append(a_set(b"x"))
    assert (1, 3, 3) == _numbers(log.append(a_set(b"a", b"b", b"c", codec=codec)))
    assert [(2, b"b"), (3, b"c")] == values_of(log, 2)
    assert log.position_of(1) == log.position_of(3)._replace(offset=1)


def test_a_refused_set_changes_nothing(open_log: OpenLog) -> None:
    """The log does not change for a bad CRC, an entry above max.message.bytes, or a set above
    segment.bytes."""
    log = open_log(max_message_bytes=ENTRY + 10, segment_bytes=100)
    bad = a_set(b"a", b"b")
    bad[-1] ^= 1
    with pytest.raises(InvalidMessage):
        log.append(bad)
    with pytest.raises(MessageSizeTooLarge):
        log.append(a_set(b"x" * 11))
    with pytest.raises(MessageSetSizeTooLarge):
        log.append(a_set(*[b"x" * 10] * 3))
    assert (0, 0) == (log.size, log.log_end_offset)


def test_a_follower_takes_offsets_as_they_are(open_log: OpenLog) -> None:
    """A follower keeps gaps, since the leader may be compacted, and drops the partial entry at the
    end of a fetch."""
    log = open_log()
    log.append_as_follower(a_set(b"a", base_offset=3) + a_set(b"b", base_offset=9) + b"\0" * 7)
    assert [(3, b"a"), (9, b"b")] == all_values(log)
    assert 10 == log.log_end_offset
    assert [(9, b"b")] == values_of(log, 4)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (a_set(b"a", base_offset=1), InvalidMessage),
        (a_set(b"a", base_offset=5) + a_set(b"b", base_offset=5), InvalidMessage),
    ],
)
def test_a_follower_refuses_invalid_sets(
    open_log: OpenLog, data: bytearray, error: type[Exception]
) -> None:
    """A set that begins below the LEO or has falling offsets is refused, and nothing is
    appended."""
    log = open_log()
    log.append(a_set(b"0", b"1"))
    with pytest.raises(error):
        log.append_as_follower(data)
    assert 2 == log.log_end_offset


def test_a_follower_takes_what_a_producer_may_not_send_any_more(open_log: OpenLog) -> None:
    """Limits that were lowered are for producers. A fetched set that is larger than segment.bytes
    goes into several segments, a message that is larger into one of its own."""
    log = open_log(max_message_bytes=60, segment_bytes=100)
    values = [b"0" * 10, b"1" * 10, b"2" * 200, b"3" * 10, b"4" * 10, b"5" * 10]
    info = log.append_as_follower(a_set(*values) + b"\0" * 7)
    assert (0, 5, 6) == (info.first_offset, info.last_offset, info.count)
    assert list(enumerate(values)) == all_values(log)
    assert [0, 2, 3, 5] == bases(log)


@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_10_2])
def test_a_leader_rolls_where_an_index_cannot_hold_its_offsets(
    open_log: OpenLog, level: Level
) -> None:
    """An index stores offsets less the segment's base in 31 bits. A replica that has copied a
    compacted log may lead with a log end near that limit. Its segment ends there: it refused every
    later append, with an assertion."""
    log = open_log(level=level, index_interval_bytes=0, message_format_version="0.9.0")
    far = 2**31 - 3
    log.append_as_follower(a_set(b"a"))
    log.append_as_follower(a_set(b"b", base_offset=far))
    for number in range(1, 6):
        assert far + number == log.append(a_set(b"c")).first_offset
    assert [0, far + 3] == bases(log)
    assert [0, *range(far, far + 6)] == [offset for offset, _ in all_values(log)]


def test_no_message_lies_below_the_base_of_its_segment(open_log: OpenLog) -> None:
    """The fetched messages of a compacted log may be further apart than an index can say. 0.10.2.2
    begins a segment above the first of them; recovery then took it for a remnant, removed both, and
    the follower went on behind them."""
    settings = {"level": Level.V0_10_2, "cleanup_policy": "compact"}
    log = open_log(**settings)
    log.append_as_follower(a_set(b"a"))
    log.append_as_follower(a_set(b"b", base_offset=5) + a_set(b"c", base_offset=2**31 + 100))
    log.append_as_follower(a_set(b"d", base_offset=2**31 + 101))
    assert [0, 1, 2**31 + 101] == bases(log)
    again = open_log(**settings)
    assert [0, 5, 2**31 + 100, 2**31 + 101] == [offset for offset, _ in all_values(again)]


def test_a_set_across_the_limit_of_an_index_begins_a_segment(open_log: OpenLog) -> None:
    """The last offset of a set counts: an index entry of a later set, or a time index entry, may
    be of that one."""
    log = open_log(index_interval_bytes=0)
    log.append_as_follower(a_set(b"a"))
    log.append_as_follower(a_set(b"b", base_offset=2**31 - 3))
    log.append(a_set(*[b"c"] * 1000, codec=1))
    assert [0, 2**31 - 2] == bases(log)
    assert 2**31 + 998 == log.log_end_offset


def test_a_set_prepared_for_another_end_is_a_bug(open_log: OpenLog) -> None:
    """append_prepared asserts that the set was numbered from the current LEO."""
    log = open_log()
    prepared = message_set.prepare(a_set(b"a"), 5, 1000, 1000)
    with pytest.raises(
        AssertionError, match="numbered from 5 does not start at the log end offset 0"
    ):
        log.append_prepared(prepared)


def test_a_full_disk_leaves_the_log_as_it_was(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that stops half way is undone, a StorageError names the file, and the next append
    works."""
    log = open_log()
    log.append(a_set(b"a"))
    real = os.pwrite

    def half(fd: int, data: bytes, position: int) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data[: len(data) - 19], position)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half)
        with pytest.raises(StorageError, match=r"cannot append to .*0\.log: No space left"):
            log.append(a_set(b"b"))
    assert 27 == (log.directory / f"{0:020d}.log").stat().st_size
    log.append(a_set(b"c"))
    assert [(0, b"a"), (1, b"c")] == all_values(log)


def test_a_closed_log_refuses_appends(open_log: OpenLog) -> None:
    """A closed log refuses appends with an error that is no StorageError: the caller has a bug and
    the disk has not failed, so the broker does not halt."""
    log = open_log()
    log.close()
    with pytest.raises(AssertionError, match="t-0 is closed"):
        log.append(a_set(b"a"))


# Rolling


def test_it_rolls_when_a_set_would_not_fit(open_log: OpenLog) -> None:
    """The log rolls if size > segment.bytes - set. A segment that is exactly full is allowed."""
    log = open_log(segment_bytes=2 * (ENTRY + 4))
    for _ in range(5):
        log.append(a_set(b"1234"))
    assert [0, 2, 4] == bases(log)
    assert 5 == len(all_values(log))


def test_it_rolls_by_age_of_the_open_segment(open_log: OpenLog, clock: ManualClock) -> None:
    """The first append after segment.ms rolls a segment that is not empty. 0.8: the age counts from
    the last opening."""
    log = open_log(segment_ms=1000)
    clock.now_ms += 5000
    log.append(a_set(b"a"))
    assert [0] == bases(log)
    log.append(a_set(b"b"))
    assert [0, 1] == bases(log)
    log.close()
    clock.now_ms += 5000
    log = open_log(segment_ms=1000, clean_shutdown=True)
    clock.now_ms += 1000
    log.append(a_set(b"c"))
    assert [0, 1] == bases(log)
    clock.now_ms += 1
    log.append(a_set(b"d"))
    assert [0, 1, 3] == bases(log)


def test_jitter_makes_it_roll_earlier(open_log: OpenLog, clock: ManualClock) -> None:
    """Each segment draws a jitter below min(segment.jitter.ms, segment.ms), by which it rolls
    earlier."""
    limits = []

    def draw(limit: int) -> int:
        limits.append(limit)
        return 300

    log = open_log(segment_ms=1000, segment_jitter_ms=400, draw_jitter=draw)
    log.append(a_set(b"a"))
    clock.now_ms += 701
    log.append(a_set(b"b"))
    assert [0, 1] == bases(log)
    assert [400, 400] == limits


def test_it_rolls_when_the_index_is_full(open_log: OpenLog) -> None:
    """An index of 16 bytes has room for two entries of 8 bytes; then the log rolls."""
    log = open_log(index_interval_bytes=0, segment_index_bytes=16)
    for _ in range(7):
        log.append(a_set(b"a"))
    assert [0, 3, 6] == bases(log)


def test_a_roll_seals_and_schedules_a_flush(open_log: OpenLog, background: Deferred) -> None:
    """A roll trims the old index at once. The recovery point moves when the scheduled flush has
    run."""
    log = open_log(index_interval_bytes=0)
    for value in (b"a", b"b", b"c"):
        log.append(a_set(value))
    log.roll()
    assert 2 * 8 == (log.directory / f"{0:020d}.index").stat().st_size
    assert 10 << 20 == (log.directory / f"{3:020d}.index").stat().st_size
    assert 0 == log.recovery_point
    background.run_all()
    assert 3 == log.recovery_point


def test_left_over_files_of_a_new_segment_are_replaced(open_log: OpenLog) -> None:
    """A file that already has the new segment's name is a leftover and is replaced."""
    log = open_log()
    log.append(a_set(b"a"))
    (log.directory / f"{1:020d}.log").write_bytes(b"junk")
    log.roll()
    log.append(a_set(b"b"))
    assert [(0, b"a"), (1, b"b")] == all_values(log)


def test_a_follower_rolls_before_the_index_would_overflow(open_log: OpenLog) -> None:
    """The log rolls before an offset exceeds 32 bits from the base. A compacted leader may skip so
    many."""
    log = open_log(index_interval_bytes=0)
    log.append_as_follower(a_set(b"a", base_offset=1))
    log.append_as_follower(a_set(b"b", base_offset=2**31 + 5))
    log.append_as_follower(a_set(b"c", base_offset=2**31 + 6))
    assert [0, 2, 2**31 + 6] == bases(log)
    assert 3 == len(all_values(log))


# Reading


def test_reads_are_slices_of_one_segment(open_log: OpenLog) -> None:
    """A slice begins at the requested entry and has at most the requested bytes. Its last entry may
    be cut off."""
    log = open_log(segment_bytes=3 * (ENTRY + 1))
    for value in (b"a", b"b", b"c", b"d"):
        log.append(a_set(value))
    found = log.read(1, 1000)
    assert (1, 0, 27, 54) == (
        found.offset,
        found.segment_base_offset,
        found.position,
        found.size,
    )
    assert LogOffset(1, 0, 27) == found.log_offset
    assert 40 == len(log.read(1, 40).bytes())
    assert 0 == log.read(1, 0).size
    assert [(3, b"d")] == values_of(log, 3)


def test_reading_at_the_end_is_empty(open_log: OpenLog) -> None:
    """A read at the LEO returns an empty slice with the position of the next message."""
    log = open_log()
    log.append(a_set(b"a"))
    assert (0, log.log_end) == (log.read(1, 100).size, log.read(1, 100).log_offset)
    assert LogOffset(1, 0, 27) == log.log_end


@pytest.mark.parametrize("offset", [-1, 2, 4, 10])
def test_offsets_outside_of_the_log_are_out_of_range(open_log: OpenLog, offset: int) -> None:
    """A read below the log start or above the LEO is OffsetOutOfRange."""
    log = open_log()
    log.truncate_fully_and_start_at(3)
    if offset < 3:
        with pytest.raises(OffsetOutOfRange, match="range 3 to 3"):
            log.read(offset, 100)
    else:
        with pytest.raises(OffsetOutOfRange):
            log.position_of(offset)


def test_max_offset_ends_a_slice(open_log: OpenLog) -> None:
    """A consumer's read ends at the HW. A read above it returns what 0.8.2.2 returns (-1)."""
    log = open_log()
    log.append(a_set(b"a", b"b", b"c"))
    log.append(a_set(b"d"))
    assert [27, 54, 81, 108] == [log.read(0, 1000, max_offset=hw).size for hw in (1, 2, 3, 4)]
    assert 0 == log.read(1, 1000, max_offset=1).size
    assert 30 == log.read(0, 30, max_offset=3).size
    with pytest.raises(UnknownError, match="maximum offset"):
        log.read(2, 1000, max_offset=1)
    with pytest.raises(UnknownError, match="Invalid max size"):
        log.read(0, -1)


def test_a_gap_is_read_over(open_log: OpenLog) -> None:
    """A read of an offset that compaction removed returns the next message, if necessary from the
    next segment."""
    log = open_log()
    log.append_as_follower(a_set(b"a", base_offset=1))
    log.append_as_follower(a_set(b"b", base_offset=5))
    log.roll()
    log.append_as_follower(a_set(b"c", base_offset=20))
    log.truncate_to(8)
    assert 0 == log.read(6, 100).size
    log.append_as_follower(a_set(b"d", base_offset=30))
    assert [(30, b"d")] == values_of(log, 6)
    assert [(5, b"b")] == values_of(log, 2)


def test_large_sets_are_scanned_to_the_end(open_log: OpenLog) -> None:
    """The index has the start of each set. A scan finds a message deep within a large set."""
    log = open_log()
    for _ in range(3):
        log.append(a_set(*[b"x" * 100] * 4000))
    for offset in (0, 1, 3999, 4000, 7999, 8000, 11_999):
        assert offset == next(message_set.decode(log.read(offset, 200).bytes())).offset
        assert (offset % 4000) * 126 == log.read(offset, 1).position % (4000 * 126)


def test_the_tail_is_found_without_reading(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start of the last set and of each indexed set is found without reading the file.
    Consumers at the tail and followers ask for nothing else."""
    log = open_log(index_interval_bytes=100)
    for _ in range(4):
        log.append(a_set(b"x" * 100, b"y"))
    log.append(a_set(b"z"))
    monkeypatch.delattr(os, "pread")
    assert [2, 4, 6, 8] == [log.read(offset, 10).offset for offset in (2, 4, 6, 8)]
    assert IndexEntry(8, 612) == log.active_segment.index.last


# Offsets by time


def test_offsets_by_time_are_segment_starts(open_log: OpenLog) -> None:
    """Modification times decide, newest first. The log end counts as written now if the active
    segment has messages."""
    log = open_log()
    for value in (b"a", b"b", b"c"):
        log.append(a_set(value))
        if value != b"c":
            log.roll()
    set_times(log, 300, 200, 100)
    assert [3, 2, 1, 0] == log.offsets_before(LATEST_OFFSET, 10)
    assert [3] == log.offsets_before(LATEST_OFFSET, 1)
    assert [0] == log.offsets_before(EARLIEST_OFFSET, 10)
    assert [3, 2] == log.offsets_before(START_MS, 2)
    assert [2, 1, 0] == log.offsets_before(START_MS - 1, 10)
    assert [1, 0] == log.offsets_before(START_MS - 150, 10)
    assert [0] == log.offsets_before(START_MS - 300, 10)
    assert [] == log.offsets_before(START_MS - 301, 10)
    assert [] == log.offsets_before(LATEST_OFFSET, 0)
    with pytest.raises(UnknownError):
        log.offsets_before(LATEST_OFFSET, -1)


def test_an_empty_active_segment_is_its_own_end(open_log: OpenLog) -> None:
    """With an empty active segment the latest offset is its base, listed once."""
    log = open_log()
    assert [0] == log.offsets_before(LATEST_OFFSET, 10)
    log.append(a_set(b"a"))
    log.roll()
    assert [1, 0] == log.offsets_before(LATEST_OFFSET, 10)
