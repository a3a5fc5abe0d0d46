"""Fault rules of an embedded cluster, on its brokers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.embedded import EmbeddedBroker, EmbeddedCluster, fault_rules
from kafka08.embedded.fault_rules import FaultRule
from kafka08.embedded.waits import connection_to
from kafka08.errors import ConfigError, ConnectionFailed, KafkaError, RequestTimeout
from kafka08.network.connection import Connection
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.types import Request
from kafka08.structs import TopicPartition
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2) as cluster:
        cluster.create_topic("t", replication_factor=2)
        yield cluster


@pytest.fixture(autouse=True)
def healed(cluster: EmbeddedCluster) -> Iterator[None]:
    yield
    cluster.heal()
    cluster.check_alive()


def ask(broker: EmbeddedBroker, request: Request, timeout_ms: int = 5000) -> Any:
    connection = Connection(
        broker.host, broker.port, client_id="asked by a test", timeout_ms=timeout_ms
    )
    with connection:
        return connection.send(request)


def fetch(version: int = 0) -> FetchRequest:
    request = FetchRequest(-1, 0, 1, [FetchTopic("t", [FetchPartition(0, 0, 1 << 20)])])
    request.version = version
    return request


def stored(cluster: EmbeddedCluster) -> int:
    """The high watermark of the topic."""
    response = ask(cluster.leader_of("t"), fetch())
    return int(response.topics[0].partitions[0].high_watermark)


def send(cluster: EmbeddedCluster, **config: Any) -> None:
    keys: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "retries": 5}
    keys |= {"retry_backoff_ms": 10, "acks": "all", **config}
    with KafkaProducer(**keys) as producer:
        producer.send(ProducerRecord("t", b"x")).result(10)


def test_an_error_hits_so_often(cluster: EmbeddedCluster) -> None:
    """A producer gets the error twice, and with its third request the record is stored, once."""
    before = stored(cluster)
    rule = cluster.faults.add("Produce", topic="t", error="NOT_LEADER_FOR_PARTITION", times=2)
    send(cluster)
    assert (rule.matches, rule.hits, stored(cluster)) == (2, 2, before + 1)


def test_what_took_effect_before_its_connection_closed(cluster: EmbeddedCluster) -> None:
    """Closed before the request took effect the record is stored once; after it, twice, as the
    producer must send it again, unless it is idempotent."""
    before = stored(cluster)
    with cluster.faults.add("Produce", close="before", times=1):
        send(cluster)
    assert stored(cluster) == before + 1
    with cluster.faults.add("Produce", close="after", times=1):
        # Its response is parked, until the follower has the record.
        send(cluster, enable_idempotence=False)
    assert stored(cluster) == before + 3
    with cluster.faults.add("Produce", close="after", times=1):
        send(cluster)
    assert stored(cluster) == before + 4


def test_a_dropped_response_never_comes(cluster: EmbeddedCluster) -> None:
    """The client waits for its timeout, and the connection stays in order for the next request."""
    broker = cluster.brokers[0]
    with connection_to(broker) as kept, cluster.faults.add("Metadata", drop=True, times=1):
        with pytest.raises(RequestTimeout):
            ask(broker, MetadataRequest(None), timeout_ms=100)
        assert kept.send(MetadataRequest(None))


def test_delays(cluster: EmbeddedCluster) -> None:
    """A delayed request and a throttled response come so much later, and the response says its
    throttle time."""
    leader = cluster.leader_of("t")
    for values, said in (({"delay_ms": 150}, 0), ({"throttle_ms": 150}, 150)):
        with cluster.faults.add("Fetch", client_id="asked by a test", **values) as rule:
            began = time.monotonic()
            response = ask(leader, fetch(version=1))
            assert time.monotonic() - began > 0.14
            assert (response.throttle_ms, rule.hits) == (said, 1)


def test_a_response_is_cut_short(cluster: EmbeddedCluster) -> None:
    """So many bytes come, also of messages in a file, and then the end of the connection."""
    send(cluster)
    leader = cluster.leader_of("t")
    for size in (0, 3, 60):
        with (
            cluster.faults.add("Fetch", client_id="asked by a test", cut_bytes=size),
            pytest.raises(ConnectionFailed),
        ):
            ask(leader, fetch())


def test_an_address_is_changed(cluster: EmbeddedCluster) -> None:
    """Metadata and FindCoordinator name the address of the rule, to all clients of that broker."""
    addresses = {0: "127.0.0.1:1", 1: "127.0.0.1:1"}
    with cluster.faults.add("Metadata", addresses=addresses, broker=0):
        assert {b.port for b in ask(cluster.brokers[0], MetadataRequest(None)).brokers} == {1}
        assert 1 not in {b.port for b in ask(cluster.brokers[1], MetadataRequest(None)).brokers}
    ask(cluster.brokers[0], ConsumerMetadataRequest("g"))
    with cluster.faults.add("FindCoordinator", addresses=addresses) as rule:
        ask(cluster.brokers[0], ConsumerMetadataRequest("g"))
        assert rule.hits == 1


def test_a_rule_for_one_transactional_id(cluster: EmbeddedCluster) -> None:
    """Each step of its transaction is interrupted once, and that of another producer never."""
    apis = (
        "FindCoordinator", "InitProducerId", "AddPartitionsToTxn", "Produce",
        "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn",
    )  # fmt: skip
    rules = [cluster.faults.add(api, transactional_id="a", close="before") for api in apis]
    before = stored(cluster)
    run_transaction(cluster, "b")
    assert [rule.hits for rule in rules] == [0] * len(apis)
    for rule in rules:
        rule.remove()
    rules = [cluster.faults.add(api, transactional_id="a", close="before", times=1) for api in apis]
    run_transaction(cluster, "a")
    assert [rule.hits for rule in rules] == [1] * len(apis)
    # Each with the marker of its end, which is written after the response.
    until(lambda: stored(cluster) >= before + 4)
    assert stored(cluster) == before + 4


def run_transaction(cluster: EmbeddedCluster, transactional_id: str) -> None:
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, transactional_id=transactional_id, retry_backoff_ms=10
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(ProducerRecord("t", b"x"))
        producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")
        producer.commit_transaction(10)


def test_matches_are_counted_over_all_brokers(cluster: EmbeddedCluster) -> None:
    """The third request of the cluster is hit, whichever broker receives it."""
    rule = cluster.faults.add("Metadata", client_id="asked by a test", skip=2, times=1, error=5)
    for number, broker in enumerate(cluster.brokers * 2):
        response = ask(broker, MetadataRequest(["t"]))
        assert response.topics[0].error_code == (5 if number == 2 else 0)
    assert (rule.matches, rule.hits) == (3, 1)


def test_a_broker_keeps_the_rules_when_it_restarts(cluster: EmbeddedCluster) -> None:
    """Counts too; and one that was away when a rule was added has it from its start on."""
    first = cluster.faults.add("Metadata", client_id="asked by a test", error=5, times=2)
    assert ask(cluster.brokers[0], MetadataRequest(["t"])).topics[0].error_code == 5
    cluster.brokers[0].stop()
    second = cluster.faults.add("Metadata", client_id="asked by a test", topic="t", error=9)
    cluster.restart(0)
    codes = [ask(cluster.brokers[0], MetadataRequest(["t"])).topics[0].error_code for _ in range(3)]
    assert codes == [5, 9, 9]
    assert (first.hits, second.hits) == (2, 2)


def test_a_paused_broker_takes_a_rule_when_it_resumes(cluster: EmbeddedCluster) -> None:
    """Adding a rule does not wait for it."""
    cluster.pause(1)
    rule = cluster.faults.add("Metadata", client_id="asked by a test", error=5)
    cluster.resume(1)
    rule_is_known = until_hit(cluster.brokers[1], rule)
    assert rule_is_known


def until_hit(broker: EmbeddedBroker, rule: FaultRule) -> bool:
    """Ask until the rule has hit; the signal and the first request race."""
    give_up_at = time.monotonic() + 10
    while rule.hits == 0 and time.monotonic() < give_up_at:
        ask(broker, MetadataRequest(None))
    return rule.hits > 0


def test_a_rule_that_no_broker_takes_is_not_added(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that does not react in time is named, and has no rule when it does."""
    monkeypatch.setattr(fault_rules, "TAKEN_S", 0.0)
    os.kill(cluster.brokers[1].process.pid or 0, signal.SIGSTOP)  # not by `pause`
    with pytest.raises(KafkaError, match=r"broker (0, )?1 has not taken the rules"):
        cluster.faults.add("Metadata", error=5)
    os.kill(cluster.brokers[1].process.pid or 0, signal.SIGCONT)
    assert len(cluster.faults) == 0
    assert ask(cluster.brokers[1], MetadataRequest(["t"])).topics[0].error_code == 0


def test_a_healed_cluster_has_no_rules(cluster: EmbeddedCluster) -> None:
    """heal removes them, and the brokers' own handlers are back."""
    cluster.faults.add("Metadata", error=5)
    cluster.heal()
    assert len(cluster.faults) == 0
    assert ask(cluster.brokers[0], MetadataRequest(["t"])).topics[0].error_code == 0


def test_waiting_for_hits(cluster: EmbeddedCluster) -> None:
    """An error says how many there were."""
    rule = cluster.faults.add("Heartbeat", error=25)
    seen = r"1 hits of rule \d+ \(api=Heartbeat error=UNKNOWN_MEMBER_ID\)\. It has 0, of 0"
    with pytest.raises(KafkaError, match=seen):
        rule.wait(timeout=0)


def test_a_rule_for_another_cluster_is_refused(cluster: EmbeddedCluster) -> None:
    """With the ids that there are; nothing is added."""
    with pytest.raises(ConfigError, match="broker: 2 is none of 0, 1"):
        cluster.faults.add("Fetch", broker=2, drop=True)
    assert len(cluster.faults) == 0


def test_rules_of_a_killed_cluster_are_not_used(tmp_path: Path) -> None:
    """Its files are removed before the brokers start."""
    left = tmp_path / "faults"
    left.mkdir()
    (left / "rules.json").write_text("{")
    with EmbeddedCluster(brokers=1, data_dir=tmp_path, zookeeper="embedded") as other:
        ask(other.brokers[0], MetadataRequest(None))
        assert os.listdir(left) == ["matches"]


def test_a_stopped_cluster_keeps_its_counts() -> None:
    """Stopped again, it closes no file a second time: the number may be that of another one."""
    with EmbeddedCluster(brokers=1, zookeeper="embedded") as other:
        rule = other.faults.add("Metadata", delay_ms=1)
        ask(other.brokers[0], MetadataRequest(["t"]))
    with open(os.devnull) as innocent:
        other.stop()
        assert innocent.read() == ""
    assert rule.hits == rule.matches == 1
    rule.remove()
