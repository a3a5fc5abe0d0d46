"""HighWatermarkCheckpoints: one file in each log directory."""

from __future__ import annotations

import errno
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gevent
import pytest

from kafka08.broker.replica.partition import Partition
from kafka08.broker.replication.high_watermark_checkpoints import HighWatermarkCheckpoints
from kafka08.errors import FileRefused
from kafka08.log.config import LogConfig
from kafka08.log.manager import LogManager
from kafka08.runtime.greenlets import GeventRuntime
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


def test_an_earlier_checkpoint_does_not_come_last(tmp_path: Path) -> None:
    """A HW that was lowered is written while the disk is slow with the one before."""
    disk = RefusingDisk()
    began, goes_on = threading.Event(), threading.Event()

    def hold_the_first(path: Path) -> bool:
        if not began.is_set():
            began.set()
            goes_on.wait(60)
        return False

    def scenario() -> None:
        runtime = GeventRuntime(native_threads=2)
        manager = LogManager([tmp_path], LogConfig(), clock=runtime, disk=disk)
        manager.load()
        checkpoints = HighWatermarkCheckpoints(runtime, manager)
        partition = Partition(TopicPartition("t", 0), 1)
        partition.attach_log(manager.get_or_create(partition.topic_partition), 0)
        partition.high_watermark = 7
        disk.refuses = hold_the_first
        first = gevent.spawn(checkpoints.write, [partition])
        while not began.is_set():
            gevent.sleep(0.001)
        partition.high_watermark = 3
        second = gevent.spawn(checkpoints.write, [partition])
        gevent.sleep(0.05)
        goes_on.set()
        gevent.joinall([first, second], timeout=60, raise_error=True)
        gevent.get_hub().destroy(destroy_loop=True)

    with ThreadPoolExecutor(1) as thread:  # with a hub of its own
        thread.submit(scenario).result(60)
    assert (tmp_path / "replication-offset-checkpoint").read_text().endswith("t 0 3\n")
