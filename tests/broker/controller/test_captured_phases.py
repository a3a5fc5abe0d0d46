"""The requests that our controller sends to broker 2 equal those of a real 0.8.2.2 controller.

The phases are those of tests/data/controller-0.8.2.2.json: broker 1 is controller and leader,
broker 2 is scripted. Only ports differ, and the order of partitions, which is Scala's hash order.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionStateInfo
from kafka08.protocol.metadata import BrokerEndpoint
from kafka08.protocol.stop_replica import StopReplicaRequest
from kafka08.protocol.update_metadata import LiveBroker, UpdateMetadataRequest
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from tests.broker.controller.conftest import Cluster
from tests.broker.scripted_broker import Received
from tests.waiting import until

CAPTURED = json.loads(
    (Path(__file__).parents[2] / "data" / "controller-0.8.2.2.json").read_text(encoding="utf-8")
)
FETCH = 1


def captured(phase: str) -> list[dict[str, Any]]:
    """The controller's requests of a phase, without the fetches of broker 1 as a follower."""
    return [
        {"key": e["api_key"], "client_id": e["request"]["client_id"], **without_ports(e)}
        for e in CAPTURED["to_fake_broker_2"]
        if e["name"] == phase and e["api_key"] != FETCH
    ]


def without_ports(exchange: dict[str, Any]) -> dict[str, Any]:
    body = exchange["request"]["body"]
    for brokers in ("leaders", "brokers"):
        if brokers in body:
            body[brokers] = [broker["id"] for broker in body[brokers]]
    return dict(body)


def sent(received: Received) -> dict[str, Any]:
    """One of our requests in the same form."""
    header, request = received
    body: dict[str, Any] = {
        "key": header.key,
        "client_id": header.client_id,
        "controller": request.controller_id,
        "cepoch": request.controller_epoch,
    }
    if isinstance(request, LeaderAndIsrRequest):
        body["states"] = [state_of(state) for state in request.partition_states]
        body["leaders"] = ids(request.leaders)
    elif isinstance(request, UpdateMetadataRequest):
        body["states"] = [state_of(state) for state in request.partition_states]
        body["brokers"] = ids(request.live_brokers)
    elif isinstance(request, StopReplicaRequest):
        body["delete"] = request.delete_partitions
        body["parts"] = [{"topic": p.topic, "part": p.partition} for p in request.partitions]
    return body


def state_of(state: PartitionStateInfo) -> dict[str, Any]:
    return {
        "topic": state.topic,
        "part": state.partition,
        "cepoch": state.controller_epoch,
        "leader": state.leader,
        "lepoch": state.leader_epoch,
        "isr": state.isr,
        "zkver": state.zk_version,
        "replicas": state.replicas,
    }


def ids(brokers: list[LiveBroker] | list[BrokerEndpoint]) -> list[int]:
    return [broker.broker_id for broker in brokers]


def test_created_gone_back_elected_and_moved(cluster: Cluster) -> None:
    """Requests, epochs, versions and znodes are those of the capture: creation, death and return of
    broker 2, a preferred election and a move, with the leader's ISR changes in between. This is one
    test because each phase begins with the epochs of the one before."""
    cluster.broker(1)
    two = cluster.broker(2)
    controller = cluster.active_controller(1)
    assert controller.epoch == 1
    assert two.take() == [], "0.8.2.2 sends nothing while the cluster has no partition"

    cluster.create_topic("fk-a", {0: (1, 2), 1: (2, 1)})
    received = two.wait_for(UpdateMetadataRequest)
    assert [sent(r) for r in received] == captured("topic-created-[1,2]-[2,1]")
    assert len({r.header.correlation_id for r in received}) == 1, "one batch, one correlation id"
    check_znodes(cluster, "fk-a after creation")

    cluster.change_isr("fk-a", 0, (1,))
    cluster.change_isr("fk-a", 0, (1, 2))
    two.leave()
    cluster.wait_for_state("fk-a", 0, 1, (1,))
    cluster.wait_for_state("fk-a", 1, 1, (1,))
    check_znodes(cluster, "fk-a after broker 2 gone")

    two.register()
    received = two.wait_for(UpdateMetadataRequest, 2)
    assert [sent(r) for r in received] == captured("fake-broker-2-back")

    cluster.change_isr("fk-a", 1, (1, 2))
    check_znodes(cluster, "fk-a/1 before preferred")
    election = nodes.encode_preferred_election([TopicPartition("fk-a", 1)])
    cluster.zk.create(paths.PREFERRED_ELECTION, election)
    received = two.wait_for(UpdateMetadataRequest)
    assert [sent(r) for r in received] == captured("preferred-election-p1")
    check_znodes(cluster, "fk-a/1 after preferred")
    until(lambda: not cluster.zk.exists(paths.PREFERRED_ELECTION), "the election to be done")

    expected = captured("reassign-p0-to-[2]")
    # 0.8: told from a cache that the new epoch has not reached; brokers refuse it (13). Ours tells
    # what the znode says.
    [widened, *caught_up] = expected[1:4]
    widened["states"][0].update(lepoch=2, zkver=4)
    for request in caught_up:
        request["states"][0].update(lepoch=2, zkver=5, isr=[1, 2])
    move = nodes.encode_reassignment({TopicPartition("fk-a", 0): (2,)})
    cluster.zk.create(paths.REASSIGN_PARTITIONS, move)
    received = two.wait_for(UpdateMetadataRequest)
    check_znodes(cluster, "reassign in progress")
    cluster.change_isr("fk-a", 0, (1, 2))
    received += two.wait_for(UpdateMetadataRequest, 4)
    assert [sent(r) for r in received] == expected
    until(lambda: not cluster.zk.exists(paths.REASSIGN_PARTITIONS), "the move to be done")
    check_znodes(cluster, "reassign done")


def check_znodes(cluster: Cluster, phase: str) -> None:
    """Compares the znodes below /brokers/topics: text and version."""
    for path, znode in CAPTURED["znodes"][phase].items():
        if path.startswith(paths.BROKER_TOPICS):
            node = cluster.zk.get(path)
            assert (node.data, node.version) == (znode["data"], znode["zk_version"]), path


def test_topic_created_and_deleted(cluster: Cluster) -> None:
    """A deletion sends the metadata marker, stops the followers, deletes the logs, and then removes
    the znodes."""
    cluster.broker(1)
    two = cluster.broker(2)
    cluster.active_controller(1, delete_topic_enable=True)
    cluster.create_topic("fk-d", {0: (1, 2)})
    received = two.wait_for(UpdateMetadataRequest)
    assert [sent(r) for r in received] == captured("topic-fk-d-created")

    cluster.zk.create(paths.delete_topic("fk-d"), nodes.encode_delete_topic())
    received = two.wait_for(StopReplicaRequest, 2)
    assert [sent(r) for r in received] == captured("topic-fk-d-deleted")
    until(lambda: cluster.store.topics_to_delete() == [], "the deletion to finish")
    assert cluster.store.topics() == []
    assert cluster.store.all_topic_configs() == {}
