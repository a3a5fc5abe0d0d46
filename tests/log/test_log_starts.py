"""A log that starts above its first segment's base offset, and the file that keeps where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka08.config import LONG_MAX
from kafka08.errors import OffsetOutOfRange
from kafka08.levels import Level
from kafka08.log.config import LogConfig
from kafka08.log.leader_epochs import EpochStart
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.names import LOG_START_CHECKPOINT
from kafka08.log.retention import Retention
from kafka08.log.slices import AppendInfo
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, TopicPartition
from tests.log.conftest import Deferred, ManualClock, OpenLog
from tests.log.test_log_records import FORMAT_2, end, names, sent

TP = TopicPartition("t", 0)
KEEP = Retention(retention_bytes=-1)

Open = Callable[[], LogManager]


@pytest.fixture
def open_manager(tmp_path: Path, clock: ManualClock, background: Deferred) -> Iterator[Open]:
    """Opens a manager of tmp_path in place of the last one, which counts as killed."""
    managers: list[LogManager] = []

    def open_it() -> LogManager:
        for killed in managers:
            killed._release()
        manager = LogManager(
            [tmp_path],
            LogConfig(**FORMAT_2, retention_ms=LONG_MAX),
            clock=clock,
            background=background,
        )
        managers.append(manager)
        manager.load()
        return manager

    yield open_it
    for manager in managers:
        manager._release()


def filled(log: Log, count: int = 6, *, rolls: int = 2) -> Log:
    """One batch at each offset; a segment has `rolls` of them."""
    for sequence in range(count):
        if sequence and sequence % rolls == 0:
            log.roll()
        log.append(sent(sequence), leader_epoch=sequence)
    return log


def test_records_below_the_start_cannot_be_read(open_log: OpenLog) -> None:
    """Though their segment is there. Searches by time and the former kind of offsets begin at the
    start, too."""
    log = filled(open_log(**FORMAT_2))
    assert log.raise_log_start(3)
    with pytest.raises(OffsetOutOfRange, match="in the range 3 to 6"):
        log.read(2, 1000)
    assert 3 == log.read(3, 1000).offset
    assert (1003, 3) == log.offset_at_time(0)
    assert (1004, 4) == log.offset_at_time(1004)
    assert [3] == log.offsets_before(EARLIEST_OFFSET, 10)
    assert [6, 4, 3, 3] == log.offsets_before(LATEST_OFFSET, 10)


def test_a_record_inside_a_batch_is_not_found_by_time_below_the_start(open_log: OpenLog) -> None:
    """The batch stays whole; the search begins in it."""
    log = open_log(**FORMAT_2)
    log.append(sent(0, 4))
    log.raise_log_start(2)
    assert (1002, 2) == log.offset_at_time(1000)


def test_the_start_does_not_fall(open_log: OpenLog) -> None:
    """A lower offset changes nothing; one above the log end is a defect of the caller."""
    log = filled(open_log(**FORMAT_2))
    log.raise_log_start(3)
    assert not log.raise_log_start(2)
    assert not log.raise_log_start(3)
    assert 3 == log.log_start_offset
    with pytest.raises(AssertionError):
        log.raise_log_start(7)


def test_segments_below_the_start_go_with_retention(open_log: OpenLog) -> None:
    """Those whose successor begins at or below it, whatever the policy keeps."""
    log = filled(open_log(**FORMAT_2))
    log.raise_log_start(3)
    assert 1 == log.delete_old_segments(KEEP)
    assert (2, 3) == (log.first_base_offset, log.log_start_offset)
    log.raise_log_start(6)
    assert 1 == log.delete_old_segments(KEEP)
    assert (4, 6) == (log.first_base_offset, log.log_start_offset)


def test_retention_stops_below_the_high_watermark(open_log: OpenLog) -> None:
    """A start above it would stop followers of 0.11.0.3. Nothing is deleted with an unknown one."""
    log = filled(open_log(**FORMAT_2))
    assert 0 == log.delete_old_segments(Retention(retention_bytes=0), 0)
    assert 2 == log.delete_old_segments(Retention(retention_bytes=0), 5)
    assert 4 == log.log_start_offset
    assert 1 == log.delete_old_segments(Retention(retention_bytes=0), 6)


def test_epochs_begin_at_the_start(open_log: OpenLog) -> None:
    """Earlier ones go; the one that the start is in begins there."""
    log = filled(open_log(**FORMAT_2))
    log.raise_log_start(3)
    assert EpochStart(3, 3) == log.records.epochs.entries[0]


@pytest.mark.parametrize("clean", [True, False])
def test_producers_of_deleted_records_stay_known(open_log: OpenLog, *, clean: bool) -> None:
    """A repeated batch is recognized, and the next one accepted, also after a restart, and after
    the segments have gone. 0.11.0.3 forgets the producer at once."""
    log = filled(open_log(**FORMAT_2))
    log.raise_log_start(6)
    log.delete_old_segments(KEEP)
    if clean:
        log.close()
    log = open_log(**FORMAT_2, clean_shutdown=clean, log_start_offset=6)
    assert AppendInfo(5, 5, 0, 0, 1005) == log.append(sent(5))
    assert 6 == log.append(sent(6)).first_offset


def test_a_kill_inside_the_first_segment_forgets_no_producer(open_log: OpenLog) -> None:
    """Its records are read again for that, though they were deleted."""
    log = filled(open_log(**FORMAT_2), 4, rolls=9)
    log.raise_log_start(4)
    log = open_log(**FORMAT_2, log_start_offset=4)
    assert AppendInfo(3, 3, 0, 0, 1003) == log.append(sent(3))
    assert 4 == log.log_start_offset


def test_an_open_transaction_ends_with_its_records(open_log: OpenLog) -> None:
    """One with a record left begins at the start; the last stable offset follows."""
    log = open_log(**FORMAT_2)
    filled(log, 3)
    producers = log.records.producers
    producers._open[7] = 1
    log.raise_log_start(2)
    assert 2 == producers.last_stable_offset(3, 2)
    log.raise_log_start(3)
    assert 3 == producers.last_stable_offset(3, 3)
    assert 3 == end(log, commits=True)


def test_a_truncation_below_the_start_lowers_it(open_log: OpenLog) -> None:
    """As of 0.11.0.3: the log would be shorter than its start."""
    log = filled(open_log(**FORMAT_2))
    log.raise_log_start(5)
    log.truncate_to(3)
    assert (3, 3) == (log.log_start_offset, log.log_end_offset)
    log.truncate_fully_and_start_at(9)
    assert (9, 9) == (log.log_start_offset, log.log_end_offset)


def test_a_start_above_what_a_power_failure_left_is_the_log_end(open_log: OpenLog) -> None:
    """The deletion was on disk before the records were."""
    filled(open_log(**FORMAT_2))
    log = open_log(**FORMAT_2, log_start_offset=100)
    assert (6, 6) == (log.log_start_offset, log.log_end_offset)


def test_the_file_has_the_starts_inside_the_first_segment(
    open_manager: Open, tmp_path: Path
) -> None:
    """In the format of 0.11.0.3, which leaves out the logs that start with their first segment. It
    is there, empty, from the first start on. The next start reads it."""
    file = tmp_path / LOG_START_CHECKPOINT
    manager = open_manager()
    assert "" == file.read_text()
    log = filled(manager.get_or_create(TP))
    filled(manager.get_or_create(TopicPartition("u", 0)))
    log.raise_log_start(3)
    manager.checkpoint_log_starts()
    assert "0\n1\nt 0 3\n" == file.read_text()
    assert 3 == open_manager().logs[TP].log_start_offset
    manager = open_manager()
    manager.logs[TP].raise_log_start(4)
    manager.retain()
    manager.shutdown()
    assert "0\n0\n" == file.read_text()
    assert 4 == open_manager().logs[TP].log_start_offset


def test_a_new_log_does_not_inherit_a_start(open_manager: Open, tmp_path: Path) -> None:
    """That of a deleted one goes from the file before there is another, so after a kill, too."""
    manager = open_manager()
    filled(manager.get_or_create(TP)).raise_log_start(3)
    manager.checkpoint_log_starts()
    manager.delete(TP)
    filled(manager.get_or_create(TP))
    assert "0\n0\n" == (tmp_path / LOG_START_CHECKPOINT).read_text()
    assert 0 == open_manager().logs[TP].log_start_offset


def test_a_truncation_below_the_start_is_written_before_an_append(open_manager: Open) -> None:
    """Otherwise a kill would hide what was appended below the former start."""
    manager = open_manager()
    log = filled(manager.get_or_create(TP))
    log.raise_log_start(5)
    manager.checkpoint_log_starts()
    assert {} == manager.truncate_to({TP: 2})
    log.append(sent(2))
    log.append(sent(3, 4))
    assert 2 == open_manager().logs[TP].log_start_offset


def test_a_damaged_file_deletes_nothing(open_manager: Open, tmp_path: Path) -> None:
    """With a warning: logs start at their first segments."""
    filled(open_manager().get_or_create(TP))
    (tmp_path / LOG_START_CHECKPOINT).write_text("nonsense\n")
    assert 0 == open_manager().logs[TP].log_start_offset


def test_below_level_0_11_there_is_no_file(tmp_path: Path) -> None:
    """An older level's directory stays as it is."""
    manager = LogManager([tmp_path], LogConfig(level=Level.V0_10_2))
    manager.load()
    manager.shutdown()
    assert not (tmp_path / LOG_START_CHECKPOINT).exists()


def test_snapshots_of_the_first_segment_stay(open_log: OpenLog) -> None:
    """Those that its records are read behind; the ones below it go with their segment."""
    log = filled(open_log(**FORMAT_2))
    log.raise_log_start(5)
    assert ["2.snapshot", "4.snapshot"] == names(log, ".snapshot")
    log.delete_old_segments(KEEP)
    assert ["4.snapshot"] == names(log, ".snapshot")
