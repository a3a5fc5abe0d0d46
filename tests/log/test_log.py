from __future__ import annotations

import errno
import os
from pathlib import Path
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
from kafka08.log import Log, LogOffset, TimeRetention
from kafka08.log.offset_index import IndexEntry
from kafka08.protocol import message_set
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET
from tests.log.conftest import (
    START_MS,
    Deferred,
    ManualClock,
    OpenLog,
    a_set,
    all_values,
    index_entries,
    names_in,
    values_of,
)

ENTRY = 26  # bytes of an entry around a value


def bases(log: Log) -> list[int]:
    return [facts.base_offset for facts in log.segment_facts]


# Appending


def test_offsets_are_given_one_by_one(open_log: OpenLog) -> None:
    """A set's messages get the LEO and the numbers after it, whatever they came with."""
    log = open_log()
    assert (0, 1, 2) == _numbers(log.append(a_set(b"a", b"b", base_offset=70)))
    assert (2, 2, 1) == _numbers(log.append(a_set(b"c")))
    assert [(0, b"a"), (1, b"b"), (2, b"c")] == all_values(log)
    assert (0, 3) == (log.log_start_offset, log.log_end_offset)


def _numbers(info: Any) -> tuple[int, int, int]:
    return info.first_offset, info.last_offset, info.count


def test_nothing_is_appended_of_an_empty_or_cut_set(open_log: OpenLog) -> None:
    """A partial entry at the end is dropped; if that is all there was, the log does not move."""
    log = open_log()
    assert (-1, -1, 0) == _numbers(log.append(bytearray()))
    assert (-1, -1, 0) == _numbers(log.append(a_set(b"abc")[:-1]))
    info = log.append(a_set(b"a") + a_set(b"cut")[:-2])
    assert (0, 0, 1, ENTRY + 1) == (*_numbers(info), info.size)
    assert [(0, b"a")] == all_values(log)


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_a_compressed_set_is_numbered_inside(open_log: OpenLog, codec: int) -> None:
    """One wrapper with the last inner offset; reading at an inner offset gives the wrapper."""
    log = open_log()
    log.append(a_set(b"x"))
    assert (1, 3, 3) == _numbers(log.append(a_set(b"a", b"b", b"c", codec=codec)))
    assert [(2, b"b"), (3, b"c")] == values_of(log, 2)
    assert log.position_of(1) == log.position_of(3)._replace(offset=1)


def test_a_refused_set_changes_nothing(open_log: OpenLog) -> None:
    """Bad CRC, an entry above max.message.bytes, a set above segment.bytes."""
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
    """Gaps stay (the leader may be compacted); the partial entry at a fetch's end is dropped."""
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
        (a_set(b"a" * 200, base_offset=5), MessageSizeTooLarge),
        (a_set(*[b"a" * 50] * 20, base_offset=5), MessageSetSizeTooLarge),
    ],
)
def test_a_follower_refuses_what_does_not_follow(
    open_log: OpenLog, data: bytearray, error: type[Exception]
) -> None:
    """Below the LEO, not ascending, too large: nothing is appended."""
    log = open_log(max_message_bytes=150, segment_bytes=1000)
    log.append(a_set(b"0", b"1"))
    with pytest.raises(error):
        log.append_as_follower(data)
    assert 2 == log.log_end_offset


def test_a_set_prepared_for_another_end_is_a_bug(open_log: OpenLog) -> None:
    """append_prepared asserts the LEO that the set was numbered from."""
    log = open_log()
    prepared = message_set.prepare(a_set(b"a"), 5, 1000, 1000)
    with pytest.raises(
        AssertionError, match="numbered from 5 does not start at the log end offset 0"
    ):
        log.append_prepared(prepared)


def test_a_full_disk_leaves_the_log_as_it_was(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a write is taken back, StorageError names the file, the next append works."""
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
    """A task that kept it too long has a bug; the disk has not failed: the broker does not halt."""
    log = open_log()
    log.close()
    with pytest.raises(AssertionError, match="t-0 is closed"):
        log.append(a_set(b"a"))


# Rolling


def test_it_rolls_when_a_set_would_not_fit(open_log: OpenLog) -> None:
    """size > segment.bytes - set: exactly full is allowed."""
    log = open_log(segment_bytes=2 * (ENTRY + 4))
    for _ in range(5):
        log.append(a_set(b"1234"))
    assert [0, 2, 4] == bases(log)
    assert 5 == len(all_values(log))


def test_it_rolls_by_age_of_the_open_segment(open_log: OpenLog, clock: ManualClock) -> None:
    """The first append after segment.ms rolls a segment that is not empty; 0.8: reopening
    starts the age anew."""
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
    """Drawn below min(segment.jitter.ms, segment.ms) for each segment."""
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
    """Two entries of 8 bytes fit in 16."""
    log = open_log(index_interval_bytes=0, segment_index_bytes=16)
    for _ in range(7):
        log.append(a_set(b"a"))
    assert [0, 3, 6] == bases(log)


def test_a_roll_seals_and_schedules_a_flush(open_log: OpenLog, background: Deferred) -> None:
    """The old index is trimmed at once; the recovery point moves when the flush has run."""
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
    """A file with the new segment's name is a leftover."""
    log = open_log()
    log.append(a_set(b"a"))
    (log.directory / f"{1:020d}.log").write_bytes(b"junk")
    log.roll()
    log.append(a_set(b"b"))
    assert [(0, b"a"), (1, b"b")] == all_values(log)


def test_a_follower_rolls_before_the_index_would_overflow(open_log: OpenLog) -> None:
    """Index offsets are 32 bits from the base; compacted leaders may skip more."""
    log = open_log(index_interval_bytes=0)
    log.append_as_follower(a_set(b"a", base_offset=1))
    log.append_as_follower(a_set(b"b", base_offset=2**31 + 5))
    log.append_as_follower(a_set(b"c", base_offset=2**31 + 6))
    assert [0, 2, 2**31 + 6] == bases(log)
    assert 3 == len(all_values(log))


# Reading


def test_reads_are_slices_of_one_segment(open_log: OpenLog) -> None:
    """From the requested entry, at most this many bytes; the last entry may be cut off."""
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
    """At the LEO there is nothing yet; the slice says where it will be."""
    log = open_log()
    log.append(a_set(b"a"))
    assert (0, log.log_end) == (log.read(1, 100).size, log.read(1, 100).log_offset)
    assert LogOffset(1, 0, 27) == log.log_end


@pytest.mark.parametrize("offset", [-1, 2, 4, 10])
def test_offsets_outside_of_the_log_are_out_of_range(open_log: OpenLog, offset: int) -> None:
    """Below the start or above the LEO."""
    log = open_log()
    log.truncate_fully_and_start_at(3)
    if offset < 3:
        with pytest.raises(OffsetOutOfRange, match="range 3 to 3"):
            log.read(offset, 100)
    else:
        with pytest.raises(OffsetOutOfRange):
            log.position_of(offset)


def test_max_offset_ends_a_slice(open_log: OpenLog) -> None:
    """Consumers read up to the HW; an offset above it answers as 0.8.2.2 does (-1)."""
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
    """Offsets that compaction took give the next message, in the next segment if need be."""
    log = open_log()
    log.append_as_follower(a_set(b"a", base_offset=1))
    log.append_as_follower(a_set(b"b", base_offset=5))
    log.roll()
    log.append_as_follower(a_set(b"c", base_offset=20))
    log.truncate_to(8)
    assert 0 == log.read(7, 100).size
    log.append_as_follower(a_set(b"d", base_offset=30))
    assert [(30, b"d")] == values_of(log, 6)
    assert [(5, b"b")] == values_of(log, 2)


def test_large_sets_are_scanned_to_the_end(open_log: OpenLog) -> None:
    """The index knows only where a set starts; a message deep inside is found by scanning."""
    log = open_log()
    for _ in range(3):
        log.append(a_set(*[b"x" * 100] * 4000))
    for offset in (0, 1, 3999, 4000, 7999, 8000, 11_999):
        assert offset == next(message_set.decode(log.read(offset, 200).bytes())).offset
        assert (offset % 4000) * 126 == log.read(offset, 1).position % (4000 * 126)


# Offsets by time


def _set_times(log: Log, *ages_ms: int) -> None:
    for facts, age_ms in zip(log.segment_facts, ages_ms, strict=True):
        path = log.directory / f"{facts.base_offset:020d}.log"
        when = (START_MS - age_ms) / 1000
        os.utime(path, (when, when))


def test_offsets_by_time_are_segment_starts(open_log: OpenLog) -> None:
    """Modification times decide, newest first; the log end counts as written now if the active
    segment has messages."""
    log = open_log()
    for value in (b"a", b"b", b"c"):
        log.append(a_set(value))
        if value != b"c":
            log.roll()
    _set_times(log, 300, 200, 100)
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
    """Then the latest offset is the active segment's base, once."""
    log = open_log()
    assert [0] == log.offsets_before(LATEST_OFFSET, 10)
    log.append(a_set(b"a"))
    log.roll()
    assert [1, 0] == log.offsets_before(LATEST_OFFSET, 10)


# Flushing


def test_it_flushes_every_so_many_messages(open_log: OpenLog) -> None:
    """flush.messages counts what is above the recovery point."""
    log = open_log(flush_messages=3)
    log.append(a_set(b"a", b"b"))
    assert (0, 2) == (log.recovery_point, log.log_end_offset)
    log.append(a_set(b"c"))
    assert (3, 3) == (log.recovery_point, log.log_end_offset)


def test_a_flush_syncs_messages_index_and_names(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only segments above the recovery point, and the directory if it has new files."""
    log = open_log()
    log.append(a_set(b"a"))
    log.flush()
    log.roll()
    log.append(a_set(b"b"))
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    log.flush()
    expected = [f"{1:020d}.log", f"{1:020d}.index", "t-0"]
    assert expected == [Path(path).name for path in synced]
    log.append(a_set(b"c"))
    synced.clear()
    log.flush()
    assert expected[:2] == [Path(path).name for path in synced]
    assert log.begin_flush() is None


def test_a_truncation_is_on_disk_before_the_log_rolls(open_log: OpenLog, synced: list[str]) -> None:
    """A power failure that undid it later would leave two segments with the same offsets: nothing
    below the recovery point is looked at again."""
    log = open_log()
    log.append(a_set(b"a", b"b"))
    log.flush()
    log.truncate_to(1)
    synced.clear()
    log.roll()
    assert [f"{0:020d}.log", f"{0:020d}.index"] == synced
    synced.clear()
    log.append(a_set(b"c"))
    log.roll()
    assert [] == synced


def test_a_stop_syncs_a_truncation(open_log: OpenLog, synced: list[str]) -> None:
    """The clean-shutdown marker would let the next start trust what a power failure brings back."""
    log = open_log()
    log.append(a_set(b"a", b"b"))
    log.flush()
    log.truncate_to(0)
    synced.clear()
    log.flush()
    assert [f"{0:020d}.log", f"{0:020d}.index"] == synced
    assert log.begin_flush() is None


def test_a_second_flush_syncs_the_names_that_the_first_has_not_yet(
    open_log: OpenLog, synced: list[str]
) -> None:
    """The fsync of a roll waits in a thread. A flush that completes before it moves the recovery
    point, so it syncs the directory with the new segment itself."""
    log = open_log()
    log.append(a_set(b"a"))
    log.flush()
    log.roll()
    log.append(a_set(b"b"))
    first = log.begin_flush()
    assert first is not None
    log.append(a_set(b"c"))
    synced.clear()
    log.flush()
    assert 3 == log.recovery_point
    assert "t-0" in synced
    first.run()
    log.append(a_set(b"d"))
    synced.clear()
    log.flush()
    assert "t-0" not in synced


def test_a_flush_that_failed_leaves_the_names_to_the_next(
    open_log: OpenLog, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a flush that has completed counts."""
    log = open_log()
    log.append(a_set(b"a"))

    def refuse(_fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(StorageError):
            log.flush()
    log.flush()
    assert "t-0" in synced


def test_the_first_flush_syncs_the_name_of_the_directory_itself(
    open_log: OpenLog, synced: list[str]
) -> None:
    """A new log is a name in its log directory, which a power failure could take back."""
    log = open_log()
    log.append(a_set(b"a"))
    log.flush()
    assert log.directory.parent.name in synced
    log.roll()
    log.append(a_set(b"b"))
    synced.clear()
    log.flush()
    assert log.directory.parent.name not in synced


@pytest.mark.parametrize("offset", [1, 5])
def test_truncation_syncs_the_names_of_deleted_segments(
    open_log: OpenLog, synced: list[str], offset: int
) -> None:
    """Otherwise a power failure brings them back behind what is appended next. 5: the whole log
    starts anew above its end."""
    log = open_log()
    log.append(a_set(b"a", b"b"))
    log.roll()
    log.append(a_set(b"c"))
    synced.clear()
    if offset < log.log_end_offset:
        log.truncate_to(offset)
    else:
        log.truncate_fully_and_start_at(offset)
    assert ["t-0"] == synced


def test_a_log_may_be_deleted_while_it_is_synced(open_log: OpenLog) -> None:
    """The fsync of a roll is on its way in a thread when a topic is deleted."""
    log = open_log()
    log.append(a_set(b"a"))
    flush = log.begin_flush()
    assert flush is not None
    log.delete()
    flush.run()


def test_a_flush_that_was_overtaken_by_a_truncation_moves_nothing(open_log: OpenLog) -> None:
    """What it synced is not what the log holds now."""
    log = open_log()
    log.append(a_set(b"a", b"b"))
    flush = log.begin_flush()
    assert flush is not None
    flush.sync()
    log.truncate_to(1)
    log.append(a_set(b"c"))
    flush.complete()
    assert 0 == log.recovery_point


# Retention


def test_retention_renames_first_and_deletes_later(open_log: OpenLog, background: Deferred) -> None:
    """*.deleted until file.delete.delay.ms has passed; the start offset moves at once."""
    log = open_log(file_delete_delay_ms=777)
    for value in (b"a", b"b"):
        log.append(a_set(value))
        log.roll()
    log.append(a_set(b"c"))
    _set_times(log, 300, 200, 100)
    assert 1 == log.delete_old_segments(TimeRetention(250))
    assert 1 == log.log_start_offset
    deleted = [f"{0:020d}.index.deleted", f"{0:020d}.log.deleted"]
    assert deleted == [name for name in names_in(log.directory) if name.endswith(".deleted")]
    assert [777] == [delay_ms for delay_ms, _ in background.tasks]
    background.run_all()
    assert [] == [name for name in names_in(log.directory) if name.endswith(".deleted")]


def test_a_reader_keeps_what_it_was_given(open_log: OpenLog, background: Deferred) -> None:
    """A slice of a segment reads on after the segment was renamed and removed; with it goes its
    descriptor, in the background, for the pages of a deleted file take long to free."""
    log = open_log()
    log.append(a_set(b"old"))
    found = log.read(0, 1000)
    descriptor = found.file.fd  # type: ignore[attr-defined]  # of a SystemFile
    _set_times(log, 1)
    log.delete_old_segments(TimeRetention(-1))
    background.run_all()
    assert [f"{1:020d}.index", f"{1:020d}.log"] == names_in(log.directory)
    assert b"old" == next(message_set.decode(found.bytes())).value
    assert 0 == background.closed
    del found
    assert 1 == background.closed
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_retention_of_everything_rolls_first(open_log: OpenLog) -> None:
    """The log goes on at its end; an empty log is left alone."""
    log = open_log()
    assert 0 == log.delete_old_segments(TimeRetention(-1))
    log.append(a_set(b"a"))
    assert 1 == log.delete_old_segments(TimeRetention(-1000 * 86_400 * 365 * 20))
    assert ([1], 1) == (bases(log), log.log_end_offset)


# Truncation


def test_truncation_drops_the_target_and_what_follows(open_log: OpenLog) -> None:
    """Across segments; the log goes on at the target."""
    log = open_log(index_interval_bytes=0)
    for number in range(9):
        log.append(a_set(b"%d" % number))
        if number % 3 == 2:
            log.roll()
    log.flush()
    log.truncate_to(4)
    assert ([0, 3], 4, 4) == (bases(log), log.log_end_offset, log.recovery_point)
    log.append(a_set(b"new"))
    assert [(0, b"0"), (1, b"1"), (2, b"2"), (3, b"3"), (4, b"new")] == all_values(log)


def test_truncation_above_the_end_does_nothing(open_log: OpenLog) -> None:
    """A follower may be told so after an unclean election."""
    log = open_log()
    log.append(a_set(b"a"))
    log.truncate_to(5)
    log.truncate_to(1)
    assert 1 == log.log_end_offset
    with pytest.raises(AssertionError):
        log.truncate_to(-1)


def test_truncation_below_the_start_empties_the_log(open_log: OpenLog) -> None:
    """It goes on at the target, which is below what it held."""
    log = open_log()
    log.truncate_fully_and_start_at(10)
    log.append(a_set(b"a"))
    log.truncate_to(7)
    assert ([7], 7, 0) == (bases(log), log.log_end_offset, log.size)
    log.append(a_set(b"b"))
    assert [(7, b"b")] == all_values(log)


def test_truncation_inside_a_wrapper_takes_the_wrapper(open_log: OpenLog) -> None:
    """0.8: the end is the target nevertheless, and the follower is sent the wrapper again."""
    log = open_log()
    log.append(a_set(b"a"))
    log.append(a_set(b"b", b"c", b"d", codec=2))
    log.truncate_to(3)
    assert (3, 27) == (log.log_end_offset, log.size)
    log.append_as_follower(a_set(b"b", b"c", b"d", codec=2, base_offset=1))
    assert [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")] == all_values(log)


@pytest.mark.parametrize("target", [11, 12])
def test_no_index_entry_stays_behind_a_truncation(open_log: OpenLog, target: int) -> None:
    """A wrapper that holds the target, or a set after a gap, is indexed below the target and goes
    with its entry: it would lead behind the end. (Regression: found by the model.)"""
    log = open_log(index_interval_bytes=0)
    log.append_as_follower(a_set(b"a", base_offset=9))
    log.append_as_follower(a_set(b"b", b"c", b"d", codec=1, base_offset=11))
    log.truncate_to(target)
    assert [] == index_entries(log.active_segment.index)
    log.append_as_follower(a_set(b"e", base_offset=13))
    assert [(9, b"a"), (13, b"e")] == all_values(log)


def test_a_truncated_log_starts_its_age_anew_only_if_empty(
    open_log: OpenLog, clock: ManualClock
) -> None:
    """As LogSegment.truncateTo has it."""
    log = open_log(segment_ms=1000)
    log.append(a_set(b"a", b"b"))
    clock.now_ms += 5000
    log.truncate_to(0)
    log.append(a_set(b"a"))
    log.append(a_set(b"b"))
    assert [0] == bases(log)


def test_delete_removes_the_directory(open_log: OpenLog, background: Deferred) -> None:
    """At once, and a delete that was still to come finds nothing to complain about."""
    log = open_log()
    log.append(a_set(b"a"))
    log.delete_old_segments(TimeRetention(-(10**13)))
    log.delete()
    assert not log.directory.exists()
    background.tasks.pop()[1]()


def test_the_tail_is_found_without_reading(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start of the last set, and every indexed set, needs no look into the file: what tail
    consumers and followers ask for."""
    log = open_log(index_interval_bytes=100)
    for _ in range(4):
        log.append(a_set(b"x" * 100, b"y"))
    log.append(a_set(b"z"))
    monkeypatch.delattr(os, "pread")
    assert [2, 4, 6, 8] == [log.read(offset, 10).offset for offset in (2, 4, 6, 8)]
    assert IndexEntry(8, 612) == log.active_segment.index.last
