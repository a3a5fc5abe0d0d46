"""Topic configurations that change while the broker runs, in a real ZooKeeper."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.topics.topic_config_changes import TopicConfigChanges
from kafka08.errors import SessionLost
from kafka08.log.manager import LogManager
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.broker.world import World


class Changing:
    """A broker, and a tool that changes its topics."""

    def __init__(self, directory: Path, zk: ZkClient, **config: Any) -> None:
        self.world = World(directory, **config)
        self._zk = zk
        runtime: Any = self.world.runtime
        self._changes = TopicConfigChanges(
            runtime,
            ClusterStore(zk),
            self.world.log_manager,
            self.world.config.protocol_version,
        )
        zk.ensure(paths.CONFIG_CHANGES)

    def change(self, topic: str, **config: str) -> None:
        overrides = {key.replace("_", "."): value for key, value in config.items()}
        self._zk.put(paths.topic_config(topic), nodes.encode_topic_config(overrides))
        text = nodes.encode_config_change(nodes.ConfigChange(topic))
        self._zk.create(paths.config_change(), text, sequence=True)

    def process(self) -> None:
        """Handles the changes that are there, until it would wait."""
        with pytest.raises(queue.Empty):
            self._changes.start()

    def retention_ms(self, topic: str) -> int:
        return self.world.log_manager.get_or_create(TopicPartition(topic, 0)).config.retention_ms


@pytest.fixture
def changing(tmp_path: Path, zk: ZkClient) -> Changing:
    return Changing(tmp_path, zk)


def test_logs_get_their_new_configuration(changing: Changing) -> None:
    """Existing logs get the new configuration."""
    changing.world.lead("t")
    changing.change("t", retention_ms="7")
    changing.process()
    assert 7 == changing.retention_ms("t")


@pytest.mark.parametrize("message_format", ["0.9.0", "0.10.0"])
def test_a_format_that_older_brokers_do_not_know(
    tmp_path: Path, zk: ZkClient, caplog: pytest.LogCaptureFixture, message_format: str
) -> None:
    """A message format that older brokers do not know is applied with a warning."""
    keys = {"inter_broker_protocol_version": "0.9.0", "log_message_format_version": "0.9.0"}
    changing = Changing(tmp_path, zk, api_level="0.10.2", **keys)
    changing.world.lead("t")
    changing.change("t", message_format_version=message_format)
    changing.process()
    is_newer = message_format == "0.10.0"
    assert is_newer == bool(changing.world.log_manager.config_of("t").magic)
    warning = "message.format.version 0.10.0 is newer than inter.broker.protocol.version 0.9.0"
    assert is_newer == (warning in caplog.text)


def test_a_log_that_is_about_to_be_made_gets_it_too(changing: Changing) -> None:
    """A log that is created during the change gets the new configuration too. With many logs, their
    configurations are read long before the last one exists."""
    changing.world.log_manager.update_topic_config("t", {"retention.ms": "1"})
    changing.change("t", retention_ms="7")
    changing.process()
    assert 7 == changing.retention_ms("t")


def test_a_change_of_a_topic_without_logs_is_not_kept(changing: Changing) -> None:
    """As in 0.8.2.2, a change counts where the topic has logs. Elsewhere the configuration is read
    before a log of the topic is created. A change that arrives while it is read counts too."""
    manager = changing.world.log_manager
    manager.get_or_create(TopicPartition("u", 0))
    for topic in ("t", "u"):
        changing.change(topic, retention_ms="7")
    changing.process()
    assert not manager.is_configured("t")
    assert 7 == changing.retention_ms("u")
    manager.begin_config("t")
    changing.change("t", retention_ms="8")
    changing.process()
    assert 8 == manager.config_of("t").retention_ms


def test_a_configuration_that_cannot_be_read_changes_nothing(
    changing: Changing, zk: ZkClient
) -> None:
    """If the configuration cannot be parsed, the logs keep theirs: the broker's defaults might
    delete messages."""
    changing.world.log_manager.update_topic_config("t", {"retention.ms": "7"})
    changing.change("t")
    zk.put(paths.topic_config("t"), "no json")
    changing.process()
    assert 7 == changing.retention_ms("t")


def test_a_session_that_is_lost_loses_no_change(
    changing: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change during a lost session is applied once its configuration can be read. (It used to be
    skipped for good.)"""
    changing.world.lead("t")
    changing.change("t", retention_ms="7")
    read = ClusterStore.topic_config
    failures = [SessionLost("/config/topics/t: no reply from ZooKeeper")]

    def topic_config(store: ClusterStore, topic: str) -> dict[str, str]:
        if failures:
            raise failures.pop()
        return read(store, topic)

    monkeypatch.setattr(ClusterStore, "topic_config", topic_config)
    changing.process()
    assert 7 == changing.retention_ms("t")


def test_invalid_notifications_are_ignored(changing: Changing, zk: ZkClient) -> None:
    """A znode with another name and a notification that cannot be parsed are ignored, and later
    notifications are handled."""
    zk.create(f"{paths.CONFIG_CHANGES}/somebody", "")
    zk.create(paths.config_change(), "{", sequence=True)
    changing.world.lead("t")
    changing.change("t", retention_ms="7")
    changing.process()
    assert 7 == changing.retention_ms("t")
    assert zk.exists(f"{paths.CONFIG_CHANGES}/somebody")


@pytest.mark.parametrize("name", ["..", r"\ud800", "a/../b"])
def test_a_change_of_an_illegal_topic_is_ignored(
    changing: Changing, zk: ZkClient, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A notification whose topic cannot be part of a path is ignored, and later notifications are
    handled."""
    zk.create(paths.config_change(), f'"{name}"', sequence=True)
    changing.world.lead("t")
    changing.change("t", retention_ms="7")
    changing.process()
    assert 7 == changing.retention_ms("t")
    assert "Config change 0 is ignored: " in caplog.text


def test_an_unexpected_exception_keeps_no_later_change_from_being_seen(
    changing: Changing, zk: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that meets a bug is logged, and changes of other topics are applied: those of the
    same round, and later ones."""
    update = LogManager.update_topic_config

    def fail_for_one(manager: LogManager, topic: str, overrides: Mapping[str, str]) -> None:
        if topic == "bad":
            raise RuntimeError("a bug")
        update(manager, topic, overrides)

    changing.world.lead("bad")
    changing.world.lead("t")
    monkeypatch.setattr(LogManager, "update_topic_config", fail_for_one)
    for wanted in ("7", "8"):
        changing.change("bad", retention_ms="1")
        changing.change("t", retention_ms=wanted)
        changing.process()
        assert int(wanted) == changing.retention_ms("t")
