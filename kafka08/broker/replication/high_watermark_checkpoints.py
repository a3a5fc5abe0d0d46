"""The HWs of a broker's partitions on disk: a `replication-offset-checkpoint` per log directory.

Source: kafka.server.ReplicaManager 0.8.2.2, highWatermarkCheckpoints.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from kafka08.broker.replica.partition import Partition
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.files import in_each
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.names import HIGH_WATERMARK_CHECKPOINT
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.yielding import yielding
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)


class HighWatermarkCheckpoints:
    """The checkpoint files of one broker.

    stored  the HWs that a start after a crash finds, without those of deleted partitions
    """

    def __init__(self, runtime: BrokerRuntime, log_manager: LogManager) -> None:
        self._runtime = runtime
        self._files = {
            directory: OffsetCheckpoint(
                directory / HIGH_WATERMARK_CHECKPOINT, disk=log_manager.disk
            )
            for directory in log_manager.directories
        }
        self._lock = runtime.rlock()
        self.stored: dict[TopicPartition, int] = {}

    def load(self) -> None:
        """Read the files, creating missing ones. One that is damaged has no entries: 0.8.2.2 and
        0.10.2.2 start with it, but then lead and follow none of its partitions. Switches."""
        in_turns = partial(yielding, runtime=self._runtime)
        without = "each replica compares its whole log with its leader's"
        for file in self._files.values():
            file.create()
            self.stored.update(file.read_or_reset(without, in_turns))

    def high_watermark(self, log: Log) -> int:
        """The HW of a log that was just opened; 0 if the last run has left none."""
        if log.log_end_offset and log.topic_partition not in self.stored:
            logger.warning(
                "No checkpointed highwatermark is found for partition %s", log.topic_partition
            )
        return self.stored.get(log.topic_partition, 0)

    def write(self, partitions: Iterable[Partition]) -> None:
        """Write the HW of every partition that has a log. Switches: the fsync may wait for other
        writes to the disk. FileRefused, when the others are written."""
        # One at a time, each with the HWs of its own time: an earlier one must not come last.
        with self._lock:
            by_directory: dict[Path, dict[TopicPartition, int]] = {d: {} for d in self._files}
            for partition in partitions:
                if partition.log is not None:
                    by_directory[partition.log.log_directory][partition.topic_partition] = (
                        partition.high_watermark
                    )
            in_each(by_directory, lambda one: self._write(one, by_directory[one]))

    def _write(self, directory: Path, offsets: dict[TopicPartition, int]) -> None:
        self._runtime.run_native(self._files[directory].write, offsets)
        self.stored.update(offsets)
