"""What the system refuses for a reason that is not the disk's touches one log; nothing is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.errors import FileRefused, StorageError
from kafka08.format import batches
from kafka08.kernel.types import EMPTY_ENTRY_BYTES
from kafka08.levels import Level
from kafka08.log.aborted_transactions import AbortedTransaction
from kafka08.log.config import LogConfig
from kafka08.log.coordinator_batches import marker_batch
from kafka08.log.files import NOT_THE_DISK, no_way_back, storage_errors
from kafka08.log.manager import LogManager
from kafka08.log.producers import TransactionEnd
from kafka08.structs import TopicPartition
from tests.log.conftest import Deferred, ManualClock, a_set, all_values
from tests.log.refusing_disk import RefusingDisk, below

T0 = TopicPartition("t", 0)
U1 = TopicPartition("u", 1)


@pytest.fixture
def disk() -> RefusingDisk:
    return RefusingDisk()


@pytest.fixture
def manager(tmp_path: Path, disk: RefusingDisk, clock: ManualClock) -> Iterator[LogManager]:
    """Rolls after a set of 90 bytes, and keeps one."""
    config = LogConfig(segment_bytes=145, retention_bytes=145, file_delete_delay_ms=0)
    manager = LogManager([tmp_path / "a"], config, clock=clock, disk=disk)
    manager.load()
    yield manager
    disk.refuses = lambda _: False
    manager.shutdown()


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_one_place_says_which_errors_are_those_of_a_disk(number: int) -> None:
    """Everything that is not listed halts a broker."""
    kind = FileRefused if number in NOT_THE_DISK else StorageError
    with pytest.raises(kind, match="cannot open x: ") as caught, storage_errors("open", "x"):
        raise OSError(number, os.strerror(number))
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    "name", ["EIO", "ENOSPC", "EROFS", "EDQUOT", "ENOENT", "ENODEV", "ESTALE", "EBADF"]
)
def test_a_bad_disk_is_not_excused(name: str) -> None:
    """On these nothing may be acknowledged any more."""
    assert getattr(errno, name) not in NOT_THE_DISK


def test_in_the_middle_of_a_change_every_refusal_halts() -> None:
    """The next start finishes or undoes the change."""
    with pytest.raises(StorageError, match="in the middle of a change"), no_way_back():
        raise FileRefused("cannot rename x: Permission denied")


def test_what_a_refused_new_log_has_left_is_deleted_with_its_partition(
    manager: LogManager, disk: RefusingDisk, tmp_path: Path
) -> None:
    """Its directory was made. After a restart it would be the log of a topic that is gone."""
    directory = tmp_path / "a" / "t-0"
    disk.refuses = below(directory)
    with pytest.raises(FileRefused):
        manager.get_or_create(T0)
    assert directory.is_dir()
    assert manager.has_directory(T0)
    disk.refuses = lambda _: False
    assert manager.delete(T0)
    assert not directory.exists()
    assert not manager.has_directory(T0)
    assert manager.get_or_create(T0).log_end_offset == 0
    assert manager.delete(T0)


def test_a_refused_roll_appends_nothing_and_is_repeated(
    manager: LogManager, disk: RefusingDisk
) -> None:
    """The full descriptor table of a broker with many connections: the producer tries again."""
    log = manager.get_or_create(T0)
    log.append(a_set(bytes(90)))
    disk.refuses = lambda path: path.suffix == ".log"
    with pytest.raises(FileRefused, match="Too many open files"):
        log.append(a_set(b"refused"))
    with pytest.raises(FileRefused):  # it would fit: but the segment is sealed
        log.append(a_set(b""))
    assert 1 == log.log_end_offset
    disk.refuses = lambda _: False
    log.append(a_set(b"later"))
    assert [(0, bytes(90)), (1, b"later")] == all_values(log)


@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_10_2])
def test_an_index_entry_is_left_out_rather_than_the_set(
    manager: LogManager, disk: RefusingDisk, level: Level
) -> None:
    """The set is written before its entry, and may have been acknowledged. Lookups scan."""
    manager.update_topic_config("t", {"segment.bytes": "100000", "index.interval.bytes": "0"})
    log = manager.get_or_create(T0)
    disk.refuses = lambda path: "index" in path.suffix
    for number in range(5):
        log.append(a_set(b"%d" % number * EMPTY_ENTRY_BYTES))
    disk.refuses = lambda _: False
    log.append(a_set(b"5" * EMPTY_ENTRY_BYTES))
    expected = [(number, b"%d" % number * EMPTY_ENTRY_BYTES) for number in range(6)]
    assert expected == all_values(log)
    assert log.read(3, 1000).size


def test_a_marker_whose_index_is_refused_is_not_appended(
    tmp_path: Path, disk: RefusingDisk, clock: ManualClock
) -> None:
    """Its bytes stayed in the file, and the next set had its offset again: replicas differed."""
    config = LogConfig(level=Level.V0_11_0, message_format_version="0.11.0")
    manager = LogManager([tmp_path / "a"], config, clock=clock, disk=disk)
    manager.load()
    log = manager.get_or_create(T0)

    def append(commits: bool) -> None:
        end = TransactionEnd(7, 0, commits, 3)
        log.append_prepared(*marker_batch(end, log.log_end_offset, 0, 2000))

    append(commits=True)
    disk.refuses = lambda path: path.suffix == ".txnindex"
    for _ in range(2):
        with pytest.raises(FileRefused, match="Too many open files"):
            append(commits=False)
    append(commits=True)
    disk.refuses = lambda _: False
    append(commits=False)
    stored = memoryview(log.read(0, 10_000).bytes())
    assert [0, 1, 2] == [batch.base_offset for batch in batches(stored)]
    assert [AbortedTransaction(7, 2, 2, 3)] == log.all_aborted()
    manager.shutdown()


def test_one_refused_log_does_not_keep_others_from_retention_and_flushes(
    manager: LogManager, disk: RefusingDisk, clock: ManualClock
) -> None:
    """A missing permission of one directory is that log's."""
    manager.update_topic_config("u", {"flush.ms": "0"})
    refused, other = manager.get_or_create(T0), manager.get_or_create(U1)
    for log in (refused, other):
        for _ in range(3):
            log.append(a_set(bytes(90)))
    disk.number = errno.EACCES
    disk.refuses = lambda path: path.parent.name == "t-0"
    clock.now_ms += 1
    assert 1 == manager.retain()
    assert (3, 2) == (refused.segment_count, other.segment_count)
    other.append(a_set(b"x"))
    assert 1 == manager.flush_dirty()
    assert other.recovery_point == other.log_end_offset


def test_a_flush_whose_end_is_refused_is_repeated(
    tmp_path: Path, disk: RefusingDisk, clock: ManualClock, background: Deferred
) -> None:
    """The log counted as being flushed for ever, so that flush.ms did nothing any more."""
    config = LogConfig(segment_bytes=145, flush_ms=0)
    manager = LogManager([tmp_path / "a"], config, clock=clock, disk=disk, background=background)
    manager.load()
    log = manager.get_or_create(T0)
    for _ in range(2):
        log.append(a_set(bytes(90)))  # the second one rolls, and leaves a mark
    clock.now_ms += 1
    background.flushes.clear()
    assert 1 == manager.flush_dirty()
    disk.refuses = lambda path: "unsynced" in path.name
    with pytest.raises(FileRefused):
        background.flushes.pop().run()
    disk.refuses = lambda _: False
    assert 1 == manager.flush_dirty()
    background.flushes.pop().run()
    assert 2 == log.recovery_point
    manager.shutdown()


def test_a_refused_directory_keeps_no_other_from_its_checkpoints(
    tmp_path: Path, disk: RefusingDisk, clock: ManualClock
) -> None:
    """The files of the others grew old, so that a crash cost more than it had to."""
    directories = [tmp_path / "a", tmp_path / "b"]
    manager = LogManager(directories, LogConfig(), clock=clock, disk=disk)
    manager.load()
    logs = [manager.get_or_create(TopicPartition("t", number)) for number in range(2)]
    for log in logs:
        log.append(a_set(b"x"))
        log.flush()
    assert directories == [log.log_directory for log in logs]
    disk.number = errno.EACCES
    for refused, other in (directories, directories[::-1]):
        disk.refuses = below(refused)
        with pytest.raises(FileRefused):
            manager.checkpoint_recovery_points()
        checkpoint = other / "recovery-point-offset-checkpoint"
        assert checkpoint.read_text().endswith(f"t {directories.index(other)} 1\n")
    disk.refuses = lambda _: False
    manager.shutdown()


def test_nothing_is_truncated_without_its_checkpoint(
    manager: LogManager, disk: RefusingDisk
) -> None:
    """Else a crash would leave a recovery point above offsets that were written again."""
    log = manager.get_or_create(T0)
    for _ in range(3):
        log.append(a_set(bytes(90)))
    log.flush()
    manager.checkpoint_recovery_points()
    disk.refuses = lambda path: path.name.startswith("recovery-point")
    assert [T0] == list(manager.truncate_to({T0: 1}))
    assert 3 == log.log_end_offset
    with pytest.raises(FileRefused):
        manager.truncate_fully_and_start_at(T0, 7)
    assert 3 == log.log_end_offset
    disk.refuses = lambda _: False
    assert {} == manager.truncate_to({T0: 1})
    assert 1 == log.log_end_offset


def test_a_directory_that_could_not_be_removed_is_no_start_for_the_next_log(
    manager: LogManager, disk: RefusingDisk
) -> None:
    """Its messages are those of a deleted topic."""
    manager.get_or_create(T0).append(a_set(b"old"))
    disk.number = errno.EPERM
    disk.refuses = lambda path: path.name == "t-0"
    for _ in range(2):
        with pytest.raises(FileRefused, match="Operation not permitted"):
            manager.delete(T0)
    with pytest.raises(FileRefused):
        manager.get_or_create(T0)
    disk.refuses = lambda _: False
    assert [] == all_values(manager.get_or_create(T0))


def test_a_deletion_is_finished_when_it_is_asked_for_again(
    manager: LogManager, disk: RefusingDisk
) -> None:
    """As a controller does."""
    manager.get_or_create(T0)
    disk.refuses = lambda path: path.name == "t-0"
    with pytest.raises(FileRefused):
        manager.delete(T0)
    disk.refuses = lambda _: False
    assert manager.delete(T0)
    assert not manager.delete(T0)


def test_a_deletion_that_could_not_be_synced_is_synced_by_the_next_call(
    manager: LogManager, disk: RefusingDisk, synced: list[str]
) -> None:
    """The controller asks again, and must not get success for a log that a power failure could
    bring back."""
    manager.get_or_create(T0)
    manager.delete(T0)
    synced.clear()
    disk.refuses = lambda path: path.name == "a"
    with pytest.raises(FileRefused):
        manager.sync_deletions()
    disk.refuses = lambda _: False
    manager.sync_deletions()
    assert ["a"] == synced
