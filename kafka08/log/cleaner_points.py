"""CleanerPoints: the offset up to which each log was cleaned, in cleaner-offset-checkpoint files.

One file per log directory, written after each cleaning and when a point is lowered. Points are base
offsets of segments, since 0.8.2.2's cleaner dies of others. Source: kafka.log.LogCleanerManager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from kafka08.log import crashpoints
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.names import CLEANER_CHECKPOINT
from kafka08.runtime.disk import Disk
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.structs import TopicPartition


class CleanerPoints:
    """The cleaner's checkpoints in `directories` (log.dirs).

    A file that cannot be read counts as empty, with a warning: its logs are cleaned again from
    their start. StorageError if one cannot be written.
    """

    def __init__(
        self,
        directories: Sequence[Path],
        crash: crashpoints.CrashPoint = crashpoints.never,
        disk: Disk = SYSTEM_DISK,
    ) -> None:
        self._files = {
            path: OffsetCheckpoint(path / CLEANER_CHECKPOINT, crash, disk) for path in directories
        }
        self._points = {
            path: file.read_or_reset("its compacted logs are cleaned again from their start")
            for path, file in self._files.items()
        }
        self._left: dict[Path, set[TopicPartition]] = {path: set() for path in directories}
        """Deleted logs with points still in the files."""

    def create_files(self) -> None:
        """Create missing files, empty: once there is a cleaner."""
        for file in self._files.values():
            file.create()

    def get(self, directory: Path, topic_partition: TopicPartition) -> int | None:
        """The offset up to which a log was cleaned (exclusive), None if it never was."""
        return self._points[directory].get(topic_partition)

    def record(self, directory: Path, topic_partition: TopicPartition, offset: int) -> None:
        """The log was cleaned up to `offset`, the base offset of a segment."""
        self._points[directory][topic_partition] = offset
        self._write(directory)

    def lower(self, directory: Path, topic_partition: TopicPartition, offset: int) -> None:
        """Offsets above `offset` are about to be written again."""
        point = self.get(directory, topic_partition)
        if point is not None and point > offset:
            self.record(directory, topic_partition, offset)

    def forget(self, directory: Path, topic_partition: TopicPartition) -> None:
        """The log starts over."""
        self.forget_deleted(directory, topic_partition)
        self.write_deletion(directory, topic_partition)

    def forget_deleted(self, directory: Path, topic_partition: TopicPartition) -> None:
        """The log was deleted. Its point may stay in the file until `write_deletion`: no other log
        has it, and writing all points for each of many deleted logs would take seconds."""
        if self._points[directory].pop(topic_partition, None) is not None:
            self._left[directory].add(topic_partition)

    def write_deletion(self, directory: Path, topic_partition: TopicPartition) -> None:
        """Remove points of deleted logs of this name from the file: a new one is about to be
        created, which must not inherit them after a crash."""
        if topic_partition in self._left[directory]:
            self._write(directory)

    def write_deletions(self) -> None:
        """Remove the points of all deleted logs from the files."""
        for directory, left in self._left.items():
            if left:
                self._write(directory)

    def keep(self, has_log: Callable[[Path, TopicPartition], bool]) -> None:
        """Drop the points of missing logs: a new log of the same name must not inherit them. In the
        file they may stay until `write_deletion`."""
        for directory, points in self._points.items():
            for topic_partition in [tp for tp in points if not has_log(directory, tp)]:
                self.forget_deleted(directory, topic_partition)

    def _write(self, directory: Path) -> None:
        self._files[directory].write(self._points[directory])
        self._left[directory].clear()
