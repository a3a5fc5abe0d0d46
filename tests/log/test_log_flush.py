"""Log.flush: what an fsync puts on disk, and the recovery point."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka08.errors import (
    StorageError,
)
from tests.log.conftest import (
    OpenLog,
    a_set,
)


def test_it_flushes_after_flush_messages(open_log: OpenLog) -> None:
    """flush.messages counts the messages above the recovery point."""
    log = open_log(flush_messages=3)
    log.append(a_set(b"a", b"b"))
    assert (0, 2) == (log.recovery_point, log.log_end_offset)
    log.append(a_set(b"c"))
    assert (3, 3) == (log.recovery_point, log.log_end_offset)


def test_a_flush_syncs_messages_index_and_names(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush syncs the segments above the recovery point, and the directory if it has new
    files."""
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
    """The active segment is synced before it rolls after a truncation. A power failure that undid
    the truncation later would leave two segments with the same offsets, and nothing below the
    recovery point is checked again."""
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


@pytest.mark.parametrize("clean_shutdown", [False, True])
def test_the_first_flush_after_a_kill_syncs_what_was_found(
    open_log: OpenLog, synced: list[str], *, clean_shutdown: bool
) -> None:
    """After a kill the active segment is synced before it rolls: the process may have cut it, and a
    power failure would bring back what was cut, below the recovery point of the next segment. A
    clean stop has synced it, and a new log has nothing to sync."""
    log = open_log()
    assert log.begin_flush() is None
    log.append(a_set(b"a", b"b"))
    log.flush()
    log.truncate_to(1)
    log = open_log(recovery_point=1, clean_shutdown=clean_shutdown)
    synced.clear()
    log.roll()
    assert ([] if clean_shutdown else [f"{0:020d}.log", f"{0:020d}.index"]) == synced[:2]


def test_a_stop_syncs_a_truncation(open_log: OpenLog, synced: list[str]) -> None:
    """A stop syncs a truncation. Otherwise the clean-shutdown marker would make the next start
    trust messages that a power failure brings back."""
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
    """A flush that moves the recovery point syncs the directory entry of the new segment itself, if
    the fsync of the roll still waits in a thread."""
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
    """A flush that failed leaves the directory to the next flush; only a completed one counts."""
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
    """The first flush of a new log syncs the parent directory, because a power failure could undo
    the creation of the log's directory."""
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
    """A truncation syncs the directory after it deletes segments. Otherwise a power failure brings
    them back behind what is appended next. In the case 5 the whole log starts again above its end.
    """
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
    """A topic may be deleted while a thread syncs a rolled segment of it."""
    log = open_log()
    log.append(a_set(b"a"))
    flush = log.begin_flush()
    assert flush is not None
    log.delete()
    flush.run()


def test_a_flush_that_was_overtaken_by_a_truncation_moves_nothing(open_log: OpenLog) -> None:
    """A flush that a truncation overtook does not move the recovery point, since the log no longer
    has what it synced."""
    log = open_log()
    log.append(a_set(b"a", b"b"))
    flush = log.begin_flush()
    assert flush is not None
    flush.sync()
    log.truncate_to(1)
    log.append(a_set(b"c"))
    flush.complete()
    assert 0 == log.recovery_point
