"""ClusterStore on a real ZooKeeper and on the model: typed reads and writes of Kafka's state."""

from __future__ import annotations

import pytest

from kafka08.errors import BadVersion, BrokerIdTaken, NodeExists, NoNode, ZooKeeperError
from kafka08.structs import Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Node
from kafka08.zk.store import ClusterStore
from tests.zk.conftest import Sessions


@pytest.fixture
def store(zk: ZkClient) -> ClusterStore:
    return ClusterStore(zk)


def test_an_empty_cluster_reads_as_empty(store: ClusterStore) -> None:
    """Before the first broker starts no znode exists, and no read fails because of it."""
    assert (store.brokers(), store.topics()) == ({}, [])
    assert (store.controller(), store.controller_epoch()) == (None, None)
    assert (store.reassignments(), store.preferred_elections()) == ({}, ())
    assert store.topic_config("t") == {}


def test_common_paths_are_made_with_null_data(store: ClusterStore, zk: ZkClient) -> None:
    """A starting broker creates the captured persistent paths. A second call leaves them as they
    are."""
    store.create_common_paths()
    store.create_common_paths()
    for path in paths.COMMON:
        assert zk.get(path) == Node(None, 0)


def test_brokers_register_and_are_listed_by_number(
    store: ClusterStore, zk: ZkClient, sessions: Sessions
) -> None:
    """Ids sort as numbers, and the text is that of 0.8.2.2. A second registration of an id is an
    error that says so."""
    for broker_id in (10, 9):
        store.register_broker(Broker(broker_id, "127.0.0.1", broker_id), timestamp_ms=5)
    assert zk.get("/brokers/ids/9").data == (
        '{"jmx_port":-1,"timestamp":"5","host":"127.0.0.1","version":1,"port":9}'
    )
    assert list(store.brokers().values()) == [
        Broker(9, "127.0.0.1", 9),
        Broker(10, "127.0.0.1", 10),
    ]
    assert store.broker(11) is None
    with sessions.client() as other, pytest.raises(BrokerIdTaken, match="/brokers/ids/9"):
        ClusterStore(other).register_broker(Broker(9, "elsewhere", 9), timestamp_ms=6)


def test_a_topic_is_created_whole_or_not_at_all(store: ClusterStore, zk: ZkClient) -> None:
    """Of two callers that create a topic the second changes nothing, the configuration included."""
    store.create_topic("t", {0: [1, 2]}, {"retention.ms": "5"})
    with pytest.raises(NodeExists):
        store.create_topic("t", {0: [1], 1: [2]}, {})
    assert (store.assignment("t"), store.topic_config("t")) == ({0: (1, 2)}, {"retention.ms": "5"})


def test_a_recreated_topic_has_another_creation_number(store: ClusterStore, zk: ZkClient) -> None:
    """A topic that was deleted and created again has another creation number; a change of its
    partitions keeps the number. A missing topic has none."""
    store.create_topic("t", {0: [1]}, {})
    (first,) = store.topic_creations(["t", "u"]).values()
    zk.set(paths.topic("t"), nodes.encode_assignment({0: (1,), 1: (1,)}))
    assert store.topic_creations(["t"]) == {"t": first}
    zk.delete_recursive(paths.topic("t"))
    store.create_topic("t", {0: [1]}, {})
    assert store.topic_creations(["t"])["t"] > first


def test_a_configuration_left_behind_is_replaced(store: ClusterStore, zk: ZkClient) -> None:
    """A new topic replaces a configuration that exists already, as AdminUtils.writeTopicConfig
    does."""
    zk.put(paths.topic_config("t"), nodes.encode_topic_config({"retention.ms": "5"}))
    store.create_topic("t", {0: [1]}, {"segment.ms": "6"})
    assert {"segment.ms": "6"} == store.topic_config("t")


def test_brokers_without_an_address_for_us_are_left_out(store: ClusterStore, zk: ZkClient) -> None:
    """A broker with SSL alone is registered, but no 0.8 client can reach it."""
    zk.create("/brokers/ids/3", '{"endpoints":["SSL://h:9"],"host":null,"version":3,"port":-1}')
    assert store.brokers() == {}
    assert store.registrations()[3].endpoints == ("SSL://h:9",)


def test_the_first_cluster_id_wins(store: ClusterStore) -> None:
    """An id is created if there is none. Later ids are ignored."""
    assert "rVp1fIJ2T0y0hgTLbRHLTg" == store.cluster_id(lambda: "rVp1fIJ2T0y0hgTLbRHLTg")
    assert "rVp1fIJ2T0y0hgTLbRHLTg" == store.cluster_id(lambda: "GsL8bJ3zQ9eDkQ0bE1mWwA")


def test_partition_states_are_written_conditionally(store: ClusterStore, zk: ZkClient) -> None:
    """A new state has version 0, and needs its topic. An update needs the version that was read.
    Each one fails by itself."""
    zk.ensure(paths.topic("t"))
    tps = [TopicPartition("t", n) for n in range(3)]
    states = {tp: LeaderAndIsr(1, 0, (1,), -1, 1) for tp in tps[:2]}
    made = store.create_leader_and_isr(states)
    assert made == {tp: LeaderAndIsr(1, 0, (1,), 0, 1) for tp in tps[:2]}
    assert isinstance(store.create_leader_and_isr({tps[0]: states[tps[0]]})[tps[0]], NodeExists)
    gone = TopicPartition("gone", 0)
    assert isinstance(store.create_leader_and_isr({gone: states[tps[0]]})[gone], NoNode)
    assert store.topics() == ["t"]
    assert store.leader_and_isr(tps) == made
    updated = store.update_leader_and_isr(
        {
            tps[0]: LeaderAndIsr(2, 1, (2,), 0, 1),
            tps[1]: LeaderAndIsr(2, 1, (2,), 7, 1),
            tps[2]: LeaderAndIsr(2, 1, (2,), 0, 1),
        }
    )
    assert updated[tps[0]] == LeaderAndIsr(2, 1, (2,), 1, 1)
    assert isinstance(updated[tps[1]], BadVersion)
    assert isinstance(updated[tps[2]], NoNode)


def test_catching_up_is_a_transaction_that_changes_nothing(
    store: ClusterStore, zk: ZkClient
) -> None:
    """It takes a transaction number, so the client's server has applied all before it."""
    store.create_common_paths()
    zk.create("/one")
    before = zk.stat(paths.BROKER_TOPICS)
    store.catch_up()
    assert before == zk.stat(paths.BROKER_TOPICS)
    zk.create("/other")
    one, other = zk.stat("/one"), zk.stat("/other")
    assert one is not None
    assert other is not None
    assert 2 == other.created_zxid - one.created_zxid


def test_assignments_and_configurations_of_many_topics(store: ClusterStore, zk: ZkClient) -> None:
    """Partitions have numeric order, and missing topics are left out."""
    zk.create(paths.topic("b"), '{"version":1,"partitions":{"10":[1],"2":[2,1]}}')
    zk.create(paths.topic("a"), None)
    zk.create(paths.topic_config("b"), nodes.encode_topic_config({"retention.ms": "7"}))
    assert store.assignments() == {"a": {}, "b": {2: (2, 1), 10: (1,)}}
    assert store.assignment("c") is None
    assert store.all_topic_configs() == {"b": {"retention.ms": "7"}}


def test_text_that_cannot_be_read_names_its_path(store: ClusterStore, zk: ZkClient) -> None:
    """A znode that cannot be parsed is an error with path and text."""
    zk.create(paths.topic("t"), "{broken")
    with pytest.raises(ZooKeeperError, match=r"/brokers/topics/t: topic assignment.*\{broken"):
        store.assignments()


@pytest.mark.parametrize(
    "text", ["no json", "", '{"version":1}', "[]"], ids=["no json", "empty", "no fields", "a list"]
)
def test_a_state_that_cannot_be_read_hides_no_other(
    store: ClusterStore, zk: ZkClient, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    """A state that cannot be parsed is left out, and the log has its path. The others are
    returned."""
    bad, good = TopicPartition("bad", 0), TopicPartition("good", 0)
    zk.ensure(paths.topic("good"))
    made = store.create_leader_and_isr({good: LeaderAndIsr(1, 0, (1,), -1, 1)})
    zk.put(paths.partition_state(*bad), text)
    assert store.leader_and_isr([bad, good]) == made
    assert [paths.partition_state(*bad)] == [r.getMessage().split(": ")[0] for r in caplog.records]


def test_a_topic_that_cannot_be_read_hides_no_other(
    store: ClusterStore, zk: ZkClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A topic that cannot be parsed is left out of the readable ones, and the log has its path."""
    zk.create(paths.topic("bad"), '{"partitions":{"0":[-1]}}')
    zk.create(paths.topic("good"), nodes.encode_assignment({0: (1,)}))
    assert {"good": {0: (1,)}} == store.readable_assignments()
    assert [paths.topic("bad")] == [r.getMessage().split(": ")[0] for r in caplog.records]


@pytest.mark.parametrize("text", ["no json", '{"version":1}', '{"version":2,"config":{}}'])
def test_a_configuration_that_cannot_be_read_hides_no_other(
    store: ClusterStore, zk: ZkClient, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    """A configuration that cannot be parsed is left out of a read of many topics, and the log has
    its path. In a read of one topic it is an error."""
    zk.put(paths.topic_config("bad"), text)
    zk.put(paths.topic_config("good"), nodes.encode_topic_config({"retention.ms": "7"}))
    assert store.all_topic_configs() == {"good": {"retention.ms": "7"}}
    assert [paths.topic_config("bad")] == [r.getMessage().split(": ")[0] for r in caplog.records]
    with pytest.raises(ZooKeeperError, match="/config/topics/bad: topic configuration"):
        store.topic_config("bad")
