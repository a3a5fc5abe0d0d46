"""Faults in real log directories and properties files: the reader has to find them there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kafka08.doctor import SnapshotReader, findings_of
from kafka08.log.names import CLEAN_SHUTDOWN_FILE, CLEANER_CHECKPOINT
from kafka08.zk.client import ZkClient
from tests.doctor.test_injected_faults import Znodes, configured, healthy, write

SEGMENTS = 7
FILES: Mapping[str, str] = {
    "broker": "broker.id=1\nzookeeper.connect=h:2181\nlog.dirs=/data\nlog.cleaner.enable=true\n",
    "consumer": "group.id=g\nzookeeper.connect=h:2181\n",
    "producer": "bootstrap.servers=h:9092\nacks=1\n",
}
FULL = shutil._ntuple_diskusage(100, 95, 5)


class Place:
    """A directory with a broker's logs, and the three kinds of files."""

    def __init__(self, directory: Path) -> None:
        self.logs = directory / "logs"
        self.directories = [self.logs]
        self.files = {directory / f"{kind}.properties": kind for kind in FILES}
        for path, kind in self.files.items():
            path.write_text(FILES[kind])
        log = self.log("compacted-0")
        for n in range(SEGMENTS):
            (log / f"{n:020d}.log").write_bytes(b"x" * 100)
        self.log("t-0")
        (self.logs / CLEAN_SHUTDOWN_FILE).touch()
        self.clean_to(SEGMENTS - 1)

    def log(self, name: str) -> Path:
        made = self.logs / name
        made.mkdir(parents=True)
        (made / f"{0:020d}.log").touch()
        return made

    def clean_to(self, offset: int) -> None:
        (self.logs / CLEANER_CHECKPOINT).write_text(f"0\n1\ncompacted 0 {offset}\n")

    def add(self, kind: str, line: str) -> None:
        """A later line counts."""
        [path] = [path for path, of in self.files.items() if of == kind]
        path.write_text(f"{FILES[kind]}{line}\n")

    def findings(self, connect: str) -> set[str]:
        directories = [str(path) for path in self.directories]
        files = {str(path): kind for path, kind in self.files.items()}
        with SnapshotReader(connect, log_directories=directories, files=files) as reader:
            return {finding.check for finding in findings_of(reader.read_snapshot())}


def in_cluster() -> Znodes:
    return {
        **healthy(),
        **configured("compacted", 1, 2, cleanup_policy="compact", max_message_bytes="500000"),
    }


def share_disk(place: Place) -> None:
    more = place.logs.parent / "more"
    more.mkdir()
    place.directories.append(more)


FAULTS: Mapping[str, Callable[[Place], object]] = {
    "log-directory-unusable": lambda place: place.directories.append(place.logs / "absent"),
    "log-directories-share-disk": share_disk,
    "broker-crashed": lambda place: (place.logs / CLEAN_SHUTDOWN_FILE).unlink(),
    "logs-left-behind": lambda place: place.log("gone-0"),
    "cleaner-dead": lambda place: place.clean_to(0),
    "properties-invalid": lambda place: place.add("broker", "port=x"),
    "properties-unknown": lambda place: place.add("broker", "log.retension.hours=5"),
    "properties-without-effect": lambda place: place.add("broker", "num.io.threads=8"),
    "logs-in-tmp": lambda place: place.add("broker", "log.dirs=/tmp/kafka-logs"),
    "session-too-short": lambda place: place.add("broker", "zookeeper.session.timeout.ms=1000"),
    "replica-fetch-too-small": lambda place: place.add(
        "broker", "message.max.bytes=300000\nreplica.fetch.max.bytes=400000"
    ),
    "offsets-replication-one": lambda place: place.add(
        "broker", "offsets.topic.replication.factor=1"
    ),
    "cleaner-off": lambda place: place.add("broker", "log.cleaner.enable=false"),
    "rebalance-formula": lambda place: place.add("consumer", "rebalance.backoff.ms=100"),
    "fetch-too-small": lambda place: place.add("consumer", "fetch.message.max.bytes=400000"),
    "producer-without-acks": lambda place: place.add("producer", "acks=0"),
}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_in_files_is_found(
    name: str, zk: ZkClient, zk_connect: str, tmp_path: Path
) -> None:
    """Only after it was written, and no other check of files has a finding before."""
    write(zk, in_cluster())
    place = Place(tmp_path)
    assert not {*FAULTS, "disk-nearly-full"} & place.findings(zk_connect)
    FAULTS[name](place)
    assert name in place.findings(zk_connect)


def test_a_disk_that_is_nearly_full_is_found(
    zk: ZkClient, zk_connect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the file system says."""
    write(zk, in_cluster())
    place = Place(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: FULL)
    assert "disk-nearly-full" in place.findings(zk_connect)
