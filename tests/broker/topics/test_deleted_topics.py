"""Topics that were deleted while nobody could tell this broker leave its metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.broker.topics.deleted_topics import DeletedTopics
from kafka08.errors import SessionLost
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.protocol.update_metadata import LiveBroker, UpdateMetadataRequest
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.broker.world import World
from tests.zk.in_process import InProcessWorld


class Broker:
    """A broker that has heard of partitions, beside a model of ZooKeeper with some of them."""

    def __init__(self, directory: Path) -> None:
        self.world = World(directory)
        ensemble = InProcessWorld()
        self.zk = ZkClient("model:1", adapter=ensemble.connect, clock=ensemble)
        self.zk.start()
        self.store = ClusterStore(self.zk)
        self.store.create_common_paths()
        context = self.world.context
        self.deleted = DeletedTopics(
            context.runtime,
            self.store,
            context.metadata_cache,
            context.group_coordinator,
            context.topic_waits,
        )

    def exists(self, topic: str, partitions: int) -> None:
        assignment = nodes.encode_assignment({number: [1] for number in range(partitions)})
        self.zk.put(paths.topic(topic), assignment)

    def hears(self, *partitions: tuple[str, int], controller_epoch: int = 1) -> None:
        states = [PartitionStateInfo(*tp, controller_epoch, 1, 0, [1], 0, [1]) for tp in partitions]
        live = [LiveBroker.plaintext(1, "127.0.0.1", 19091)]
        request = UpdateMetadataRequest(9, controller_epoch, states, live)
        self.deleted.controller_speaks(controller_epoch)
        self.world.cache.update(request)

    def lists(self) -> set[tuple[str, int]]:
        return set(self.world.cache.states())


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


def test_a_topic_deleted_while_the_session_was_over_is_dropped(broker: Broker) -> None:
    """The controller sends what exists when the broker is back; the topic is not in it."""
    broker.exists("stays", 1)
    broker.hears(("stays", 0), ("gone", 0), ("gone", 1))
    broker.deleted.check()
    broker.hears(("stays", 0))
    assert 3 == len(broker.lists())
    broker.deleted.suspect_all()
    broker.hears(("stays", 0))
    broker.world.cache.cache_response(b"request", b"response")
    broker.deleted.check()
    assert {("stays", 0)} == broker.lists()
    assert broker.world.cache.cached_response(b"request") is None


def test_a_topic_deleted_before_another_controller_is_dropped(broker: Broker) -> None:
    """The former controller died before it could tell this broker."""
    broker.exists("stays", 1)
    broker.hears(("stays", 0), ("gone", 0))
    broker.hears(("stays", 0), controller_epoch=2)
    broker.deleted.check()
    assert {("stays", 0)} == broker.lists()


def test_partitions_that_a_topic_of_the_same_name_lacks_are_dropped(broker: Broker) -> None:
    """A topic that was deleted and created again may have fewer partitions."""
    broker.exists("t", 1)
    broker.hears(("t", 0), ("t", 1))
    broker.deleted.suspect_all()
    broker.hears(("t", 0))
    broker.deleted.check()
    assert {("t", 0)} == broker.lists()


def test_what_exists_stays(broker: Broker) -> None:
    """A topic that the controller has not sent again, but that exists, is not dropped."""
    broker.exists("t", 2)
    broker.hears(("t", 0), ("t", 1))
    broker.deleted.suspect_all()
    broker.deleted.check()
    assert 2 == len(broker.lists())


def test_a_topic_that_cannot_be_read_stays_and_keeps_no_other(broker: Broker) -> None:
    """One bad topic znode must not keep deleted topics in the metadata."""
    broker.zk.create(paths.topic("bad"), '{"partitions":{"0":[-1]}}')
    broker.hears(("bad", 0), ("gone", 0))
    broker.deleted.suspect_all()
    broker.deleted.check()
    assert {("bad", 0)} == broker.lists()


def test_a_deletion_that_is_under_way_is_awaited(broker: Broker) -> None:
    """A topic may be in ZooKeeper a moment longer than the requests that name it."""
    broker.exists("t", 1)
    broker.zk.create(paths.delete_topic("t"))
    broker.hears(("t", 0))
    broker.deleted.suspect_all()
    broker.deleted.check()
    assert 1 == len(broker.lists())
    broker.zk.delete(paths.topic("t"))
    broker.zk.delete(paths.delete_topic("t"))
    broker.deleted.check()
    assert not broker.lists()


def test_a_topic_that_was_created_again_meanwhile_stays(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller sends it while ZooKeeper is asked: what was read before is old."""
    broker.hears(("t", 0))
    broker.deleted.suspect_all()

    def hear_meanwhile() -> list[str]:
        broker.hears(("t", 0))
        return []

    monkeypatch.setattr(broker.store, "topics", hear_meanwhile)
    broker.deleted.check()
    assert {("t", 0)} == broker.lists()


def test_without_zookeeper_it_is_checked_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is dropped before ZooKeeper has answered."""
    broker.hears(("gone", 0))
    broker.deleted.suspect_all()

    def fail() -> None:
        raise SessionLost("no ZooKeeper")

    with monkeypatch.context() as patch:
        patch.setattr(broker.store, "catch_up", fail)
        broker.deleted.check()
    assert {("gone", 0)} == broker.lists()
    assert "Cannot check whether 1 partitions were deleted: no ZooKeeper" in caplog.text
    broker.deleted.check()
    assert not broker.lists()


def test_what_was_sent_again_costs_nothing(broker: Broker) -> None:
    """If the controller has sent all of them again, ZooKeeper is not asked."""
    broker.hears(("t", 0), ("u", 0))
    broker.deleted.suspect_all()
    broker.hears(("t", 0), ("u", 0))
    before = broker.zk.requests_sent
    broker.deleted.check()
    assert before == broker.zk.requests_sent
    assert 2 == len(broker.lists())


def test_a_controllers_request_makes_the_cache_suspect(broker: Broker) -> None:
    """The handler of UpdateMetadata tells of each controller before the request is applied."""
    broker.exists("t", 1)
    broker.hears(("t", 0))
    waiting = broker.world.context.deleted_topics
    broker.world.lead("other")
    assert {TopicPartition("t", 0)} == waiting._suspects.keys()
