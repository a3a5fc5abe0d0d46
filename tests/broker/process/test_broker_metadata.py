"""meta.properties: the broker id of log directories, as KafkaServer.getBrokerId 0.9.0.1 decides."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from kafka08.broker.process.broker_metadata import claim_broker_id, read_id, render, write
from kafka08.broker.settings.config import BrokerConfig
from kafka08.clock import SYSTEM_CLOCK
from kafka08.errors import ConfigError
from kafka08.levels import Level
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.simulation.memory_disk import MemoryDisk

NOW = datetime(2026, 11, 21, 3, 34, 6, tzinfo=UTC)


def settled(level: str, *directories: Path, broker_id: int | None = None) -> BrokerConfig:
    for directory in directories:
        directory.mkdir(exist_ok=True)
    keys = {} if broker_id is None else {"broker.id": broker_id}
    config = BrokerConfig(
        {
            "api.level": level,
            "zookeeper.connect": "z:1",
            "log.dirs": ",".join(map(str, directories)),
            **keys,
        }
    )
    return claim_broker_id(config, lambda: 1001, NOW.timestamp(), SYSTEM_DISK)


def test_the_file_is_the_one_of_the_jvm(tmp_path: Path) -> None:
    """The file equals the captured one in controller-0.9.0.1.json."""
    settled("0.9.0", tmp_path, broker_id=1)
    captured = "#\n#Sat Nov 21 03:34:06 UTC 2026\nbroker.id=1\nversion=0\n"
    assert captured == render(1, NOW) == (tmp_path / "meta.properties").read_text()


def test_0_8_2_does_not_write_it(tmp_path: Path) -> None:
    """0.8.2 neither writes nor reads the file."""
    assert 1 == settled("0.8.2", tmp_path, broker_id=1).broker_id
    assert [] == [*tmp_path.iterdir()]
    (tmp_path / "meta.properties").write_text(render(7, NOW))
    assert 1 == settled("0.8.2", tmp_path, broker_id=1).broker_id


def test_a_broker_without_id_takes_a_new_one_and_keeps_it(tmp_path: Path) -> None:
    """A broker without broker.id takes a new id, and finds it in the directory at its next
    start."""
    first = settled("0.10.2", tmp_path)
    assert 1001 == first.broker_id
    assert first.level is Level.V0_10_2
    (tmp_path / "meta.properties").write_text(render(1002, NOW))
    assert 1002 == settled("0.10.2", tmp_path).broker_id


def test_a_new_directory_gets_the_id_of_the_others(tmp_path: Path) -> None:
    """A new directory gets the id of the others, so that each one has it."""
    settled("0.9.0", tmp_path / "a", broker_id=3)
    settled("0.9.0", tmp_path / "a", tmp_path / "b")
    assert 3 == read_id(SYSTEM_DISK, tmp_path / "b")


def test_the_directories_of_another_broker_are_refused(tmp_path: Path) -> None:
    """Directories of another broker are refused (InconsistentBrokerIdException of the JVM)."""
    settled("0.9.0", tmp_path / "a", broker_id=3)
    with pytest.raises(ConfigError, match=r"broker\.id: 4 is not the id 3"):
        settled("0.9.0", tmp_path / "a", broker_id=4)
    settled("0.9.0", tmp_path / "b", broker_id=4)
    with pytest.raises(ConfigError, match=r"several brokers, 3, 4"):
        settled("0.9.0", tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("text", ["", "version=0\n", "broker.id=x\nversion=0\n", "broker.id=1\n"])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    """A damaged file is an error with its path. A guess could give this broker another one's
    logs."""
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(ConfigError, match=r"meta\.properties: broker\.id"):
        settled("0.9.0", tmp_path, broker_id=1)


@pytest.mark.parametrize("seed", range(20))
def test_a_power_failure_leaves_the_id_or_no_file(tmp_path: Path, seed: int) -> None:
    """A power failure leaves the id or no file: a file without an id would stop the next start."""
    disk = MemoryDisk(SYSTEM_CLOCK.time_ms)
    disk.make_directories(tmp_path)
    disk.sync_everything()
    write(disk, [tmp_path], 7, NOW.timestamp())
    disk.lose_power(Random(seed))
    assert 7 == read_id(disk, tmp_path)
