"""CleanerPoints: up to which offset each log was cleaned, on disk as cleaner-offset-checkpoint.

One file per log directory, written after each cleaning and when a point falls. Points are base
offsets of segments, for 0.8.2.2's cleaner dies of others. Source: kafka.log.LogCleanerManager.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Sequence
from pathlib import Path

from kafka08.errors import CorruptLog
from kafka08.log import crashpoints
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.names import CLEANER_CHECKPOINT
from kafka08.runtime.disk import Disk
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)


class CleanerPoints:
    """The cleaner's checkpoints in `directories` (log.dirs).

    A file that cannot be read counts as empty, with a warning: all it costs is that its logs are
    cleaned from their start again. StorageError if one cannot be written.
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
        self._points = {path: _read(file) for path, file in self._files.items()}

    def create_files(self) -> None:
        """Make the files, empty, where there are none: once there is a cleaner."""
        for file in self._files.values():
            file.create()

    def get(self, directory: Path, topic_partition: TopicPartition) -> int | None:
        """Up to where a log was cleaned (exclusive), None if it never was."""
        return self._points[directory].get(topic_partition)

    def record(self, directory: Path, topic_partition: TopicPartition, offset: int) -> None:
        """The log was cleaned up to `offset`, where a segment begins."""
        self._points[directory][topic_partition] = offset
        self._write(directory)

    def lower(self, directory: Path, topic_partition: TopicPartition, offset: int) -> None:
        """What is above `offset` is going to be written anew."""
        point = self.get(directory, topic_partition)
        if point is not None and point > offset:
            self.record(directory, topic_partition, offset)

    def forget(self, directory: Path, topic_partition: TopicPartition) -> None:
        """The log is gone, or begins anew."""
        if self._points[directory].pop(topic_partition, None) is not None:
            self._write(directory)

    def keep(self, directory: Path, topic_partitions: Container[TopicPartition]) -> None:
        """Drop the points of logs that are not there: one made anew must not inherit them."""
        points = self._points[directory]
        self._points[directory] = {tp: at for tp, at in points.items() if tp in topic_partitions}

    def _write(self, directory: Path) -> None:
        self._files[directory].write(self._points[directory])


def _read(file: OffsetCheckpoint) -> dict[TopicPartition, int]:
    try:
        return file.read()
    except CorruptLog as error:
        logger.warning("%s; compacted logs in there are cleaned from their start again", error)
        return {}
