"""Log: retention, truncation and deletion."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka08.errors import StorageError
from kafka08.log.retention import Retention
from kafka08.protocol import message_set
from kafka08.runtime.system_disk import SystemDisk
from tests.log.conftest import (
    Deferred,
    ManualClock,
    OpenLog,
    a_set,
    all_values,
    bases,
    index_entries,
    names_in,
    set_times,
)

# Retention


def test_retention_renames_first_and_deletes_later(open_log: OpenLog, background: Deferred) -> None:
    """Retention renames files to *.deleted and deletes them after file.delete.delay.ms. The start
    offset moves at once."""
    log = open_log(file_delete_delay_ms=777)
    for value in (b"a", b"b"):
        log.append(a_set(value))
        log.roll()
    log.append(a_set(b"c"))
    log.flush()
    set_times(log, 300, 200, 100)
    assert 1 == log.delete_old_segments(Retention(250))
    assert 1 == log.log_start_offset
    deleted = [f"{0:020d}.index.deleted", f"{0:020d}.log.deleted"]
    assert deleted == [name for name in names_in(log.directory) if name.endswith(".deleted")]
    assert [777] == [delay_ms for delay_ms, _ in background.tasks]
    background.run_all()
    assert [] == [name for name in names_in(log.directory) if name.endswith(".deleted")]


def test_a_reader_keeps_its_slice(open_log: OpenLog, background: Deferred) -> None:
    """A slice still reads its bytes after its segment was renamed and removed. Its descriptor is
    closed with it, in the background, because freeing the pages of a deleted file takes long."""
    log = open_log()
    log.append(a_set(b"old"))
    found = log.read(0, 1000)
    descriptor = found.file.fd  # type: ignore[attr-defined]  # of a SystemFile
    set_times(log, 1)
    log.delete_old_segments(Retention(-1))
    background.run_all()
    assert [f"{1:020d}.index", f"{1:020d}.log"] == names_in(log.directory)
    assert b"old" == next(message_set.decode(found.bytes())).value
    assert 0 == background.closed
    del found
    assert 1 == background.closed
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_retention_of_everything_rolls_first(open_log: OpenLog) -> None:
    """If every segment expires, the log rolls first and continues at its end. An empty log is left
    alone."""
    log = open_log()
    assert 0 == log.delete_old_segments(Retention(-1))
    log.append(a_set(b"a"))
    assert 1 == log.delete_old_segments(Retention(-1000 * 86_400 * 365 * 20))
    assert ([1], 1) == (bases(log), log.log_end_offset)


def test_retention_looks_at_no_file_of_an_empty_log(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most of thousands of partitions may be empty. The empty segment behind a full one may be
    looked at."""
    looks: list[Path] = []
    modified_ns = SystemDisk.modified_ns

    def counted(disk: SystemDisk, path: Path) -> int:
        looks.append(path)
        return modified_ns(disk, path)

    monkeypatch.setattr(SystemDisk, "modified_ns", counted)
    log = open_log()
    assert 0 == log.delete_old_segments(Retention(-1000 * 86_400 * 365 * 20))
    assert [] == looks
    log.append(a_set(b"a"))
    log.roll()
    assert 1 == log.delete_old_segments(Retention(-1000 * 86_400 * 365 * 20))
    assert [1] == bases(log)
    assert looks


# Truncation


def test_truncation_drops_the_target_and_later_messages(open_log: OpenLog) -> None:
    """A truncation removes the target and all messages behind it, across segments. The log
    continues at the target."""
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
    """A truncation above the end does nothing. A follower may get one after an unclean election."""
    log = open_log()
    log.append(a_set(b"a"))
    log.truncate_to(5)
    log.truncate_to(1)
    assert 1 == log.log_end_offset
    with pytest.raises(AssertionError):
        log.truncate_to(-1)


def test_truncation_below_the_start_empties_the_log(open_log: OpenLog) -> None:
    """A truncation below the start empties the log. It continues at the target."""
    log = open_log()
    log.truncate_fully_and_start_at(10)
    log.append(a_set(b"a"))
    log.truncate_to(7)
    assert ([7], 7, 0) == (bases(log), log.log_end_offset, log.size)
    log.append(a_set(b"b"))
    assert [(7, b"b")] == all_values(log)


def test_truncation_inside_a_wrapper_takes_the_wrapper(open_log: OpenLog) -> None:
    """A truncation to an offset within a wrapper removes the wrapper, and the log ends before it.
    In 0.8.2.2 the log end is the target, although the messages before that are gone."""
    log = open_log()
    log.append(a_set(b"a"))
    log.append(a_set(b"b", b"c", b"d", codec=2))
    log.truncate_to(3)
    assert (1, 27) == (log.log_end_offset, log.size)
    log.append_as_follower(a_set(b"b", b"c", b"d", codec=2, base_offset=1))
    assert [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")] == all_values(log)


@pytest.mark.parametrize("target", [11, 12])
def test_no_index_entry_stays_behind_a_truncation(open_log: OpenLog, target: int) -> None:
    """The index entry of a wrapper that contains the target, or of a set behind a gap, is below the
    target and goes with its set. Otherwise it would lead beyond the end. (Found by the model.)"""
    log = open_log(index_interval_bytes=0)
    log.append_as_follower(a_set(b"a", base_offset=9))
    log.append_as_follower(a_set(b"b", b"c", b"d", codec=1, base_offset=11))
    log.truncate_to(target)
    assert [] == index_entries(log.active_segment.index)
    log.append_as_follower(a_set(b"e", base_offset=13))
    assert [(9, b"a"), (13, b"e")] == all_values(log)


def test_a_truncated_log_restarts_its_age_only_if_empty(
    open_log: OpenLog, clock: ManualClock
) -> None:
    """A truncation restarts the age of a segment only if it empties it, as LogSegment.truncateTo
    does."""
    log = open_log(segment_ms=1000)
    log.append(a_set(b"a", b"b"))
    clock.now_ms += 5000
    log.truncate_to(0)
    log.append(a_set(b"a"))
    log.append(a_set(b"b"))
    assert [0] == bases(log)


def test_delete_removes_the_directory(open_log: OpenLog, background: Deferred) -> None:
    """`delete` removes the directory at once. A file deletion that was scheduled before finds
    nothing and reports no error."""
    log = open_log()
    log.append(a_set(b"a"))
    log.delete_old_segments(Retention(-(10**13)))
    log.delete()
    assert not log.directory.exists()
    background.tasks.pop()[1]()


@pytest.mark.parametrize("removals", range(8))
def test_an_interrupted_delete_leaves_the_first_messages(
    open_log: OpenLog, removals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the process dies or the disk fails during a deletion, the first messages remain. The
    partition may return to this broker, which then continues at the log's end and may lead. (A
    simulated run lost the first 95 messages.)"""
    log = open_log()
    for value in (b"a", b"b", b"c"):
        log.append(a_set(value))
        log.roll()
    left = removals
    remove = log.disk.remove

    def fail_late(path: Path) -> None:
        nonlocal left
        if not left:
            raise OSError(5, "Input/output error")
        left -= 1
        remove(path)

    monkeypatch.setattr(log.disk, "remove", fail_late)
    monkeypatch.setattr(log.disk, "remove_tree", fail_late)
    with pytest.raises(StorageError):
        log.delete()
    monkeypatch.undo()
    rest = open_log()
    assert 0 == rest.log_start_offset
    assert [(0, b"a"), (1, b"b"), (2, b"c")][: rest.log_end_offset] == all_values(rest)
