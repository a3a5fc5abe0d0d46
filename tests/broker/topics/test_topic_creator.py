"""Topics that a Metadata request creates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.protocol.metadata import MetadataRequest
from kafka08.structs import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kafka08.zk import nodes, paths
from tests.broker.world import World


def test_asking_creates_a_topic_with_the_brokers_defaults(tmp_path: Path) -> None:
    """A new topic has the configuration and assignment that 0.8.2.2 writes. The response is 5 until
    it has leaders."""
    world = World(tmp_path, num_partitions=2)
    (topic,) = world.client.call(MetadataRequest(["new"])).topics
    assert (5, []) == (topic.error_code, topic.partitions)
    assert '{"version":1,"config":{}}' == world.store.znodes[paths.topic_config("new")]
    assignment = json.loads(world.store.znodes[paths.topic("new")])
    assert {"version": 1, "partitions": {"0": [1], "1": [1]}} == assignment


def test_a_topic_that_another_broker_created_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """If two brokers create a topic at once, both answer 5, and the znodes of the first stay."""
    world = World(tmp_path)
    world.store.znodes[paths.topic("new")] = "of another broker"
    assert 5 == world.client.call(MetadataRequest(["new"])).topics[0].error_code
    assert {paths.topic("new"): "of another broker"} == world.store.znodes


def test_as_many_replicas_as_configured(tmp_path: Path) -> None:
    """With fewer brokers than replicas nothing is created, and the whole response is -1."""
    world = World(tmp_path, default_replication_factor=2)
    response = world.client.call(MetadataRequest(["new"]))
    assert ([], -1) == (response.brokers, response.topics[0].error_code)
    assert paths.topic("new") not in world.store.znodes
    world.store.live = [1, 2, 3]
    world.client.call(MetadataRequest(["new"]))
    assert 2 == len(nodes.decode_assignment(world.store.znodes[paths.topic("new")])[0])


@pytest.mark.parametrize(
    ("level", "racks", "is_spread"),
    [
        ("0.10.2", {1: "a", 2: "a", 3: "a", 4: "b"}, True),
        ("0.10.2", {1: "a", 2: "a", 4: "b"}, False),
        ("0.8.2", {1: "a", 2: "a", 3: "a", 4: "b"}, False),
    ],
)
def test_replicas_are_spread_over_racks(
    tmp_path: Path, level: str, racks: dict[int, str], is_spread: bool
) -> None:
    """From 0.10 on replicas are spread over racks if all live brokers have one
    (RackAwareMode.Safe)."""
    world = World(tmp_path, api_level=level, default_replication_factor=2, num_partitions=20)
    world.store.live = [1, 2, 3, 4]
    world.store.racks = racks
    world.client.call(MetadataRequest(["new"]))
    assignment = nodes.decode_assignment(world.store.znodes[paths.topic("new")])
    assert is_spread == all(4 in replicas for replicas in assignment.values())


def test_the_offsets_topic_makes_do_with_the_brokers_there_are(tmp_path: Path) -> None:
    """The offsets topic gets min(offsets.topic.replication.factor, live brokers) replicas."""
    world = World(tmp_path, offsets_topic_num_partitions=2)
    world.store.live = [1, 2]
    world.client.call(MetadataRequest([OFFSETS_TOPIC]))
    assert 2 == len(nodes.decode_assignment(world.store.znodes[paths.topic(OFFSETS_TOPIC)])[0])


@pytest.mark.parametrize(("level", "added"), [("0.9.0", "uncompressed"), ("0.10.2", "producer")])
def test_the_offsets_topic_says_how_it_is_compressed(
    tmp_path: Path, level: str, added: str
) -> None:
    """From 0.9 on the offsets topic has an override for its compression."""
    world = World(tmp_path, api_level=level)
    world.client.call(MetadataRequest([OFFSETS_TOPIC]))
    config = json.loads(world.store.znodes[paths.topic_config(OFFSETS_TOPIC)])["config"]
    expected = {"segment.bytes": "104857600", "cleanup.policy": "compact"}
    assert expected | {"compression.type": added} == config


def test_the_topic_of_transactions_is_created_from_0_11_on(tmp_path: Path) -> None:
    """It has the overrides of 0.11.0.3, and all of its replicas or none. Below 0.11 it is unknown
    without automatic creation."""
    world = World(tmp_path / "new", api_level="0.11.0", auto_create_topics_enable=False)
    ask = MetadataRequest([TRANSACTIONS_TOPIC])
    assert 38 == world.client.call(ask).topics[0].error_code
    world.store.live = [1, 2, 3]
    assert 5 == world.client.call(ask).topics[0].error_code
    assert 50 == world.store.created_partitions(TRANSACTIONS_TOPIC)
    config = json.loads(world.store.znodes[paths.topic_config(TRANSACTIONS_TOPIC)])["config"]
    assert config == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
    }
    old = World(tmp_path / "old", api_level="0.10.2", auto_create_topics_enable=False)
    assert 3 == old.client.call(ask).topics[0].error_code


def test_without_auto_creation_only_the_offsets_topic_is_created(tmp_path: Path) -> None:
    """Other topics get 3, while the offsets topic is created for the coordinator."""
    world = World(tmp_path, auto_create_topics_enable=False, offsets_topic_num_partitions=7)
    response = world.client.call(MetadataRequest(["absent", OFFSETS_TOPIC]))
    assert {"absent": 3, OFFSETS_TOPIC: 5} == {t.topic: t.error_code for t in response.topics}
    assert 7 == world.store.created_partitions(OFFSETS_TOPIC)
    config = json.loads(world.store.znodes[paths.topic_config(OFFSETS_TOPIC)])["config"]
    assert {"segment.bytes": "104857600", "cleanup.policy": "compact"} == config
    assert paths.topic("absent") not in world.store.znodes


def test_one_illegal_name_spoils_the_response_and_creates_nothing(tmp_path: Path) -> None:
    """With one illegal name the response has no brokers and 17 for every topic (captured:
    metadata-invalid-plus-valid)."""
    world = World(tmp_path)
    world.lead("known")
    response = world.client.call(MetadataRequest(["fresh", "known", "b/d"]))
    assert [] == response.brokers
    assert {"fresh": 17, "known": 17, "b/d": 17} == {t.topic: t.error_code for t in response.topics}
    assert {} == world.store.znodes


def test_without_a_registered_broker_nothing_can_be_created(tmp_path: Path) -> None:
    """Without a registered broker the response is -1, as for the JVM's AdminOperationException."""
    world = World(tmp_path)
    world.store.live = []
    assert -1 == world.client.call(MetadataRequest(["new"])).topics[0].error_code


def test_under_the_safe_profile_topics_carry_its_overrides(tmp_path: Path) -> None:
    """A topic that is created under the safe profile carries its overrides, so that JVM brokers
    apply them too. With one replica it needs no more than that one."""
    world = World(tmp_path, kafka08_profile="safe", offsets_topic_num_partitions=1)
    world.store.live = [1, 2]
    world.client.call(MetadataRequest(["one", OFFSETS_TOPIC]))
    one, offsets = (
        nodes.decode_topic_config(world.store.znodes[paths.topic_config(topic)])
        for topic in ("one", OFFSETS_TOPIC)
    )
    assert {"unclean.leader.election.enable": "false"} == one
    assert ("2", "compact") == (offsets["min.insync.replicas"], offsets["cleanup.policy"])
