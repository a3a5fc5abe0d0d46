"""HighWatermarkCheckpoints: one file in each log directory."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kafka08.broker.replica.partition import Partition
from kafka08.broker.replication.high_watermark_checkpoints import HighWatermarkCheckpoints
from kafka08.errors import FileRefused
from kafka08.log import LogConfig, LogManager
from kafka08.structs import TopicPartition
from tests.broker.fake_runtime import FakeRuntime
from tests.log.refusing_disk import RefusingDisk, below


def test_a_refused_directory_keeps_no_other_from_its_checkpoint(tmp_path: Path) -> None:
    """A broker cuts its logs at these after a restart: old ones cost acknowledged messages when
    the leader fails, too."""
    disk, runtime = RefusingDisk(), FakeRuntime()
    directories = [tmp_path / "a", tmp_path / "b"]
    manager = LogManager(directories, LogConfig(), clock=runtime, disk=disk)
    manager.load()
    checkpoints = HighWatermarkCheckpoints(runtime, manager)
    checkpoints.load()
    partitions = []
    for number in range(2):
        tp = TopicPartition("t", number)
        partition = Partition(tp, 1)
        partition.attach_log(manager.get_or_create(tp), 0)
        partitions.append(partition)
    disk.number = errno.EACCES
    for refused, other in (directories, directories[::-1]):
        disk.refuses = below(refused)
        with pytest.raises(FileRefused):
            checkpoints.write(partitions)
        written = (other / "replication-offset-checkpoint").read_text()
        assert written.endswith(f"t {directories.index(other)} 0\n")
