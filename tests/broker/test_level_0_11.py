"""Responses of level 0.11.0 that differ from 0.10.2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka08 import kernel
from kafka08.format import Batch, batches
from kafka08.log.coordinator_batches import transactional_batch
from kafka08.log.producers import TransactionEnd
from kafka08.protocol import compression
from kafka08.protocol.alter_configs import AlterConfigsRequest, AlteredResource, ConfigEntry
from kafka08.protocol.codec import decode_response
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest
from kafka08.protocol.create_topics import CreateTopicsRequest, NewTopic, TopicConfigEntry
from kafka08.protocol.delete_topics import DeleteTopicsRequest
from kafka08.protocol.describe_configs import TOPIC, DescribeConfigsRequest, DescribedConfig
from kafka08.protocol.frame import SIZE
from kafka08.protocol.message_set import encode
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochTopic,
)
from kafka08.protocol.offsets import OffsetsPartition, OffsetsRequest, OffsetsTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.update_metadata import LiveBroker, UpdateMetadataRequest
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from kafka08.zk import paths
from tests.broker.world import CONTROLLER_EPOCH, World

CAPTURED: dict[str, dict[str, Any]] = {
    entry["name"]: entry
    for entry in json.loads(
        (Path(__file__).parents[1] / "data" / "0.11-api-admin.json").read_text(encoding="utf-8")
    )
}


def world_of(tmp_path: Path, **keys: Any) -> World:
    return World(tmp_path, api_level="0.11.0", **keys)


def test_each_leadership_notes_its_epoch_once(tmp_path: Path) -> None:
    """Where its first batch is, though the kernel appends those behind it; also in new segments,
    and after the log was cut."""
    world = world_of(tmp_path)
    batch = kernel.build_from_lists(None, [bytes(60)], 0, 1, 2, world.runtime.time_ms())

    def produce(count: int) -> int:
        """In a new leadership, whose epoch is returned."""
        world.lead("t", config={"segment.bytes": "400"})
        for _ in range(count):
            topic = ProduceTopic("t", [ProducePartition(0, bytearray(batch))])
            (found,) = world.client.call(ProduceRequest(1, 1000, [topic], version=3)).topics
            assert 0 == found.partitions[0].error_code
        return int(world.partition("t").leader_epoch)

    first, second = produce(6), produce(3)
    log = world.partition("t").leader_log()
    parts = [log.read(base, 1 << 20).bytes() for base in (0, 3, 6)]
    stored = [one.leader_epoch for part in parts for one in batches(part)]
    assert [first] * 6 + [second] * 3 == stored
    assert [(first, 0), (second, 6)] == list(log.records.epochs.entries)
    world.lead("t", leader=2, isr=(1, 2), replicas=(1, 2))
    log.truncate_to(7)
    third = produce(3)
    assert [(first, 0), (second, 6), (third, 7)] == list(log.records.epochs.entries)


class TestMetadata:
    @pytest.mark.parametrize(
        ("version", "allows", "code"), [(3, True, 5), (4, True, 5), (4, False, 3)]
    )
    def test_a_request_may_forbid_the_creation(
        self, tmp_path: Path, version: int, allows: bool, code: int
    ) -> None:
        """Version 4 has a flag; without it an unknown topic is 3, and is not created."""
        world = world_of(tmp_path)
        request = MetadataRequest(["new"], allow_auto_topic_creation=allows, version=version)
        (topic,) = world.client.call(request).topics
        assert code == topic.error_code
        assert allows == ("new" in world.store.topics())

    def test_an_internal_topic_is_created_all_the_same(self, tmp_path: Path) -> None:
        """The flag is for topics of clients."""
        world = world_of(tmp_path, offsets_topic_replication_factor=1)
        request = MetadataRequest([OFFSETS_TOPIC], allow_auto_topic_creation=False, version=4)
        (topic,) = world.client.call(request).topics
        assert (5, True) == (topic.error_code, topic.is_internal)
        assert OFFSETS_TOPIC in world.store.topics()

    @pytest.mark.parametrize(("level", "controller"), [("0.10.2", 9), ("0.11.0", -1)])
    def test_a_controller_that_is_not_alive_is_none(
        self, tmp_path: Path, level: str, controller: int
    ) -> None:
        """0.11.0.3 looks it up among the brokers of the response; its id alone is no address."""
        world = World(tmp_path, api_level=level)
        world.lead("t")
        assert controller == world.client.call(MetadataRequest(["t"], version=1)).controller_id
        live = [LiveBroker.plaintext(9, "127.0.0.1", 19099)]
        world.cache.update(UpdateMetadataRequest(9, CONTROLLER_EPOCH, [], live))
        assert 9 == world.client.call(MetadataRequest(["t"], version=1)).controller_id


class TestCreateTopics:
    def test_a_null_value_fails_its_topic_alone(self, tmp_path: Path) -> None:
        """As captured, it is -1 without a text; the other topic is created."""
        world = world_of(tmp_path)
        world.lead("there")
        world.controller.is_active = True
        bad = NewTopic("bad", 1, 1, [], [TopicConfigEntry("retention.ms", None)])
        good = NewTopic("good", 1, 1, [], [])
        request = CreateTopicsRequest([bad, good], 0, version=2)
        results = {one.topic: one for one in world.client.call(request).topics}
        assert (-1, None) == (results["bad"].error_code, results["bad"].message)
        assert ["good"] == world.store.topics()

    def test_a_version_that_nobody_knows_is_refused(self, tmp_path: Path) -> None:
        """0.11.0.3 stores message.format.version=1.0, and no broker of the cluster starts again."""
        world = world_of(tmp_path)
        world.lead("there")
        world.controller.is_active = True
        entry = TopicConfigEntry("message.format.version", "1.0")
        request = CreateTopicsRequest([NewTopic("t", 1, 1, [], [entry])], 0, version=2)
        (result,) = world.client.call(request).topics
        assert (40, []) == (result.error_code, world.store.topics())
        assert "message.format.version" in result.message


def replay(world: World, name: str) -> None:
    """Send a captured request: the response has the captured bytes."""
    world.client.send(bytes.fromhex(CAPTURED[name]["request_hex"]))
    (payload,) = world.client.frames()
    assert CAPTURED[name]["response_hex"] == (SIZE.pack(len(payload)) + payload).hex()


def world_of_configs(tmp_path: Path) -> World:
    """The broker that the recording asked: number 2, where c1 is a topic."""
    world = world_of(
        tmp_path,
        broker_id=2,
        log_retention_ms=-1,
        log_index_size_max_bytes=10 << 20,
        listeners="PLAINTEXT://127.0.0.1:23912",
        zookeeper_connect="127.0.0.1:23901/a",
    )
    world.store.create_topic("c1", {0: [2]}, {})
    return world


class TestConfigs:
    def test_the_captured_exchanges_in_their_order(self, tmp_path: Path) -> None:
        """What a topic has, before and after its overrides are replaced, and each refusal: byte for
        byte."""
        world = world_of_configs(tmp_path)
        for name in (
            "describe-configs-topic-some",
            "describe-configs-topic-empty-list",
            "describe-configs-topic-bad-name",
            "describe-configs-broker-other",
            "describe-configs-broker-not-int",
            "describe-configs-broker-empty",
            "describe-configs-type-0",
            "describe-configs-type-3",
            "describe-configs-type-99",
            "describe-configs-two-same",
            "alter-configs-topic",
            "describe-configs-after-1",
            "alter-configs-topic-replaces",
            "describe-configs-after-2",
            "alter-configs-validate-only",
            "alter-configs-bad-value",
            "alter-configs-unknown-key",
            "alter-configs-null-value",
            "alter-configs-unknown-topic",
            "alter-configs-broker",
            "alter-configs-other-broker-ok",
            "alter-configs-duplicate",
            "alter-configs-type-0",
        ):
            replay(world, name)
        assert {"retention.ms": "6"} == world.store.topic_config("c1")

    def test_all_keys_of_a_topic(self, tmp_path: Path) -> None:
        """The captured keys, values and marks in the captured order."""
        world = world_of_configs(tmp_path)
        theirs = captured_configs("describe-configs-topic-all")
        request = CAPTURED["describe-configs-topic-all"]["request_hex"]
        world.client.send(bytes.fromhex(request))
        (payload,) = world.client.frames()
        ours = configs_in(payload)
        assert theirs == ours

    def test_keys_of_the_broker(self, tmp_path: Path) -> None:
        """The asked keys that exist, as captured: read-only, a password without its value."""
        world = world_of_configs(tmp_path)
        theirs = captured_configs("describe-configs-broker-self")
        world.client.send(bytes.fromhex(CAPTURED["describe-configs-broker-self"]["request_hex"]))
        (payload,) = world.client.frames()
        assert sorted(theirs, key=repr) == sorted(configs_in(payload), key=repr)

    def test_validation_writes_nothing(self, tmp_path: Path) -> None:
        """validate_only has the same response, and the topic keeps its overrides."""
        world = world_of_configs(tmp_path)
        replay(world, "alter-configs-validate-only")
        assert {} == world.store.topic_config("c1")

    def test_a_version_that_nobody_knows_is_refused(self, tmp_path: Path) -> None:
        """As in CreateTopics: 40, and nothing is stored."""
        world = world_of_configs(tmp_path)
        entry = ConfigEntry("message.format.version", "1.0")
        request = AlterConfigsRequest([AlteredResource(TOPIC, "c1", [entry])], False)
        (result,) = world.client.call(request).resources
        assert 40 == result.error_code
        assert {} == world.store.topic_config("c1")


def captured_configs(name: str) -> list[DescribedConfig]:
    return configs_in(bytes.fromhex(CAPTURED[name]["response_hex"])[SIZE.size :])


def configs_in(payload: bytes) -> list[DescribedConfig]:
    _, response = decode_response(DescribeConfigsRequest, payload)
    (resource,) = response.resources
    assert resource.error_code == 0
    configs: list[DescribedConfig] = resource.configs
    return configs


@pytest.mark.parametrize("kind", ["describe", "create", "delete"])
def test_access_control_is_disabled(tmp_path: Path, kind: str) -> None:
    """54 with the captured text, byte for byte."""
    (name,) = (name for name in CAPTURED if name.startswith(f"{kind}-acls"))
    replay(world_of(tmp_path), name)


class TestEpochs:
    @pytest.mark.parametrize(("leads", "code"), [(True, 0), (False, 6), (None, 3)])
    def test_a_log_without_epochs_knows_no_end(
        self, tmp_path: Path, leads: bool | None, code: int
    ) -> None:
        """-1 without an error; a follower is 6, a broker without the partition 3."""
        world = world_of(tmp_path)
        if leads is not None:
            world.lead("t", leader=1 if leads else 2, replicas=(1, 2))
        wanted = [OffsetForLeaderEpochTopic("t", [OffsetForLeaderEpochPartition(0, 0)])]
        (topic,) = world.client.call(OffsetForLeaderEpochRequest(wanted)).topics
        assert [EpochEndOffset(code, 0, -1)] == topic.partitions


def stored(world: World, topic: str) -> list[Batch]:
    """The entries of a log."""
    log = world.partition(topic).log
    return list(batches(log.read(0, 1 << 20).bytes()))


class TestRecordBatches:
    @pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP])
    def test_messages_are_stored_as_one_batch(self, tmp_path: Path, codec: int) -> None:
        """It has the codec of the set, and the epoch of the leader that appended it."""
        world = world_of(tmp_path)
        world.lead("other")
        world.lead("t")  # in epoch 1
        pairs = [(b"k", b"one"), (None, b"two")]
        data = bytearray(encode(pairs, codec, magic=1, timestamps=[5, 6]))
        wanted = [ProduceTopic("t", [ProducePartition(0, data)])]
        (topic,) = world.client.call(ProduceRequest(1, 1000, wanted, version=2)).topics
        assert (0, 0) == (topic.partitions[0].error_code, topic.partitions[0].base_offset)
        (batch,) = stored(world, "t")
        assert (2, codec, 1, 1) == (batch.magic, batch.codec, batch.last_offset, batch.leader_epoch)

    def test_the_broker_stores_its_own_records_in_them(self, tmp_path: Path) -> None:
        """What groups commit."""
        world = world_of(tmp_path, offsets_topic_num_partitions=1)
        world.lead(OFFSETS_TOPIC)
        world.lead("t")
        wanted = [OffsetCommitTopic("t", [OffsetCommitPartition(0, 5, "m")])]
        request = OffsetCommitRequest("g", wanted, version=2)
        (topic,) = world.client.call(request).topics
        assert 0 == topic.partitions[0].error_code
        assert {2} == {batch.magic for batch in stored(world, OFFSETS_TOPIC)}

    def test_a_follower_asks_where_its_epoch_ends(self, tmp_path: Path) -> None:
        """The start of the next epoch with a batch; the LEO for the latest; -1 for others."""
        world = world_of(tmp_path)
        world.lead("other")
        for _ in range(2):  # in epochs 1 and 2
            world.lead("t")
            world.partition("t").append(bytearray(encode([(b"k", b"v")] * 3, magic=1)), 1)
        wanted = [OffsetForLeaderEpochPartition(0, epoch) for epoch in (-1, 0, 1, 2, 3)]
        request = OffsetForLeaderEpochRequest([OffsetForLeaderEpochTopic("t", wanted)])
        (topic,) = world.client.call(request).topics
        assert [-1, -1, 3, 6, -1] == [one.end_offset for one in topic.partitions]

    def test_an_open_transaction_holds_readers_of_committed_messages(self, tmp_path: Path) -> None:
        """Their end of the log is the last stable offset."""
        world = world_of(tmp_path)
        world.lead("t")
        partition = world.partition("t")
        partition.append(bytearray(encode([(b"k", b"v")], magic=1)), 1)
        partition.log.append_prepared(*transactional_batch([(b"k", b"v")] * 2, 7, 0, 1, 0, 1000))
        partition.maybe_raise_high_watermark()
        ends = []
        for isolation in (0, 1):
            wanted = [OffsetsTopic("t", [OffsetsPartition(0, -1, 1)])]
            request = OffsetsRequest(-1, wanted, isolation, version=2)
            (topic,) = world.client.call(request).topics
            ends.append(topic.partitions[0].offset)
        assert [3, 1] == ends


class TestMarkers:
    def write(self, world: World, **fields: Any) -> int:
        codes: list[int] = []
        fields = {"commits": True, "coordinator_epoch": 3} | fields
        end = TransactionEnd(7, 1, **fields)
        writer = world.context.marker_writer
        writer.write(end, [TopicPartition("t", 0)], lambda _, code: codes.append(code))
        (code,) = codes
        return code

    def test_one_that_comes_again_is_not_appended_again(self, tmp_path: Path) -> None:
        """As after a timeout; 0.11.0.3 appends each. One of a former coordinator is 52."""
        world = world_of(tmp_path)
        world.lead("t")
        assert (0, 0) == (self.write(world), self.write(world))
        assert [True] == [batch.is_control for batch in stored(world, "t")]
        assert 52 == self.write(world, coordinator_epoch=2)
        assert 0 == self.write(world, commits=False)
        assert 2 == len(stored(world, "t"))

    def test_a_topic_of_an_older_format_has_none(self, tmp_path: Path) -> None:
        """43, as for a batch of a producer."""
        world = world_of(tmp_path, log_message_format_version="0.10.2")
        world.lead("t")
        assert (43, []) == (self.write(world), stored(world, "t"))


class TestOffsetsTopic:
    def test_it_has_all_of_its_replicas_or_is_not_created(self, tmp_path: Path) -> None:
        """With too few brokers FindCoordinator is 15 and Metadata 38, again and again. (Older
        levels create it with fewer replicas.)"""
        world = world_of(tmp_path, offsets_topic_replication_factor=2)
        assert 15 == world.client.call(ConsumerMetadataRequest("g")).error_code
        (topic,) = world.client.call(MetadataRequest([OFFSETS_TOPIC], version=4)).topics
        assert (38, []) == (topic.error_code, world.store.topics())
        world.store.live.append(2)
        assert 15 == world.client.call(ConsumerMetadataRequest("g")).error_code
        assert [OFFSETS_TOPIC] == world.store.topics()

    def test_it_is_not_deleted(self, tmp_path: Path) -> None:
        """It has the offsets of every group: 17, and the controller is not asked."""
        world = world_of(tmp_path)
        world.lead(OFFSETS_TOPIC)
        world.store.create_topic(OFFSETS_TOPIC, {0: [1]}, {})
        world.controller.is_active = True
        (topic,) = world.client.call(DeleteTopicsRequest([OFFSETS_TOPIC], 0)).topics
        assert 17 == topic.error_code
        assert not world.store.exists(paths.delete_topic(OFFSETS_TOPIC))
