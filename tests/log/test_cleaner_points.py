"""CleanerPoints: cleaner-offset-checkpoint, as LogManager keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.config import LogConfig
from kafka08.log.manager import LogManager
from kafka08.structs import TopicPartition
from tests.log.compaction import captured, keyed
from tests.log.conftest import ManualClock

TP = TopicPartition("cmp", 0)
FILE = "cleaner-offset-checkpoint"


def open_manager(path: Path) -> LogManager:
    manager = LogManager([path], LogConfig(cleanup_policy="compact"), clock=ManualClock())
    manager.load()
    return manager


def reopen(manager: LogManager) -> LogManager:
    manager.shutdown()
    return open_manager(manager.directories[0])


def test_the_file_is_kafkas(tmp_path: Path) -> None:
    """The file equals, byte for byte, the one that a JVM cleaner left. There is no file before the
    first cleaning."""
    manager = open_manager(tmp_path)
    manager.get_or_create(TP)
    assert not (tmp_path / FILE).exists()
    manager.cleaner_points.record(tmp_path, TP, 53)
    assert captured()["cleaner-offset-checkpoint"] == (tmp_path / FILE).read_text()
    assert 53 == reopen(manager).cleaner_points.get(tmp_path, TP)


def test_a_truncation_lowers_the_point_to_its_segment(tmp_path: Path) -> None:
    """A truncation lowers the point to the start of the segment that it cuts, because later
    messages there were never cleaned. A gap belongs to the segment before it."""
    manager = open_manager(tmp_path)
    log = manager.get_or_create(TP)
    for _ in range(3):
        log.append_as_follower(keyed((b"k", b"v"), base_offset=log.log_end_offset + 5))
        log.roll()
    assert [0, 6, 12, 18] == [facts.base_offset for facts in log.segment_facts]
    manager.cleaner_points.record(tmp_path, TP, 18)
    manager.truncate_to({TP: 18})
    assert 18 == manager.cleaner_points.get(tmp_path, TP)
    manager.truncate_to({TP: 19})
    assert 18 == manager.cleaner_points.get(tmp_path, TP)
    manager.truncate_to({TP: 10})
    assert 6 == manager.cleaner_points.get(tmp_path, TP)
    assert "cmp 0 6\n" in (tmp_path / FILE).read_text()
    manager.truncate_fully_and_start_at(TP, 40)
    assert manager.cleaner_points.get(tmp_path, TP) is None
    manager.shutdown()


def test_a_deleted_log_has_no_point(tmp_path: Path) -> None:
    """The line of a deleted log leaves the checkpoint file at the latest when the broker stops."""
    manager = open_manager(tmp_path)
    manager.get_or_create(TP)
    manager.cleaner_points.record(tmp_path, TP, 0)
    manager.delete(TP)
    assert manager.cleaner_points.get(tmp_path, TP) is None
    manager.shutdown()
    assert "0\n0\n" == (tmp_path / FILE).read_text()


def test_a_log_made_again_does_not_inherit_a_point(tmp_path: Path) -> None:
    """The deleted log's line is gone from the file before the new log exists, because a crash may
    follow at any time."""
    manager = open_manager(tmp_path)
    manager.get_or_create(TP)
    manager.cleaner_points.record(tmp_path, TP, 0)
    manager.delete(TP)
    assert (tmp_path / FILE).read_text().endswith("cmp 0 0\n")
    manager.get_or_create(TP)
    assert "0\n0\n" == (tmp_path / FILE).read_text()
    manager.shutdown()


def test_deleting_many_logs_writes_the_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting many logs writes the file once. One write per log took five seconds for a thousand
    logs."""
    manager = open_manager(tmp_path)
    for number in range(20):
        manager.get_or_create(TopicPartition("cmp", number))
        manager.cleaner_points.record(tmp_path, TopicPartition("cmp", number), 0)
    written: list[int] = []
    write = OffsetCheckpoint.write

    def counted(file: OffsetCheckpoint, offsets: Mapping[TopicPartition, int]) -> None:
        if file.path.name == FILE:
            written.append(len(offsets))
        write(file, offsets)

    monkeypatch.setattr(OffsetCheckpoint, "write", counted)
    for number in range(15):
        manager.delete(TopicPartition("cmp", number))
    manager.shutdown()
    assert [5] == written


def test_a_removed_log_leaves_no_cleaner_point(tmp_path: Path) -> None:
    """If a directory was removed by hand and its topic created again, the new log does not count as
    clean."""
    (tmp_path / FILE).write_text("0\n1\ncmp 0 53\n")
    manager = open_manager(tmp_path)
    manager.get_or_create(TP)
    assert manager.cleaner_points.get(tmp_path, TP) is None
    manager.shutdown()


def test_a_broken_file_is_as_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A broken checkpoint counts as a missing one. That costs work but no messages, so a broker
    starts."""
    (tmp_path / FILE).write_text("0\n7\ncmp 0 53\n")
    manager = open_manager(tmp_path)
    assert manager.cleaner_points.get(tmp_path, TP) is None
    assert "expected 7 entries but found 1" in caplog.text
    manager.shutdown()


def test_a_log_made_again_after_a_kill_does_not_inherit_a_point(tmp_path: Path) -> None:
    """The line of a deleted log is still in the file when the process is killed. It leaves the file
    before a new log of that name exists, because the next process may be killed too. The cleaner
    would drop tombstones of the new log below that point without having seen them, and deleted
    values would come back."""
    (tmp_path / FILE).write_text("0\n1\ncmp 0 53\n")
    manager = open_manager(tmp_path)
    manager.get_or_create(TP)
    assert "0\n0\n" == (tmp_path / FILE).read_text()
    manager.shutdown()
