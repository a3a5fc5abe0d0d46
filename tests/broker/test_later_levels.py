"""Responses of levels 0.9.0 and 0.10.2 that differ from 0.8.2.2."""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kafka08 import kernel
from kafka08.broker.requests.handlers import create_topics
from kafka08.broker.requests.handlers.list_offsets import (
    SEARCHED_AT_LEAST_BYTES,
    SEARCHED_AT_ONCE_BYTES,
    UNPACKED_AT_ONCE_BYTES,
)
from kafka08.errors import CorruptLog, ProtocolError
from kafka08.kernel.types import STRING_BYTES_MAX
from kafka08.log.time_index import TimestampOffset
from kafka08.log_limit import LINES_MAX, LineLimit
from kafka08.protocol import compression, message_set
from kafka08.protocol.api_versions import ApiVersionsRequest
from kafka08.protocol.codec import encode_request
from kafka08.protocol.create_topics import (
    NO_COUNT,
    CreateTopicsRequest,
    NewTopic,
    ReplicaAssignment,
    TopicConfigEntry,
)
from kafka08.protocol.delete_topics import DeleteTopicsRequest
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionStateInfo
from kafka08.protocol.metadata import BrokerEndpoint, MetadataRequest
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offsets import OffsetsPartition, OffsetsRequest, OffsetsTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.sasl_handshake import SaslHandshakeRequest
from kafka08.protocol.served import SERVED
from kafka08.protocol.update_metadata import (
    ListenerEndpoint,
    LiveBroker,
    UpdateMetadataRequest,
)
from kafka08.structs import OFFSETS_TOPIC
from kafka08.zk import nodes, paths
from tests.broker.world import CONTROLLER_EPOCH, Client, World
from tests.cpu_speed import slowdown

SET = message_set.encode([(None, b"v" * 100)], magic=1)


def world_of(tmp_path: Path, level: str = "0.10.2", **keys: Any) -> World:
    return World(tmp_path, api_level=level, **keys)


def produce(world: World, topic: str, partition: int = 0, data: bytes = SET) -> Any:
    request = ProduceRequest(1, 1000, [ProduceTopic(topic, [ProducePartition(partition, data)])])
    return world.client.call(request)


def fetch(world: World, *wanted: tuple[str, int, int], max_bytes: int, version: int = 3) -> Any:
    """Fetches partitions as (topic, partition, maximum bytes), each from offset 0."""
    topics = [FetchTopic(t, [FetchPartition(p, 0, size)]) for t, p, size in wanted]
    return world.client.call(FetchRequest(-1, 0, 0, topics, max_bytes=max_bytes, version=version))


def sizes(response: Any) -> list[tuple[str, int, int, int]]:
    """(topic, partition, error, size) in the order of the response."""
    return [
        (topic.topic, p.partition, p.error_code, len(p.message_set))
        for topic in response.topics
        for p in topic.partitions
    ]


class TestApiVersions:
    def test_served_versions_are_listed(self, tmp_path: Path) -> None:
        """The response lists every key of 0.10.2.2 with its versions."""
        world = world_of(tmp_path)
        response = world.client.call(ApiVersionsRequest())
        assert 0 == response.error_code
        assert [*range(21)] == [item.key for item in response.apis]

    def test_an_unknown_version_is_answered_in_the_first_layout(self, tmp_path: Path) -> None:
        """An unknown version gets a response of version 0, and the connection stays open: newer
        clients try their newest version first."""
        world = world_of(tmp_path)
        world.client.send(bytes.fromhex("0000000b 0012 0003 00000007 0001 63".replace(" ", "")))
        assert ["000000070023" + "00000000"] == [f.hex() for f in world.client.frames()]
        assert 0 == world.client.call(ApiVersionsRequest()).error_code

    def test_0_8_2_closes_the_connection(self, tmp_path: Path) -> None:
        """0.8.2 does not know the key and closes the connection."""
        world = World(tmp_path)
        with pytest.raises(ProtocolError):
            world.client.send(bytes.fromhex("0000000b0012000000000007000163"))


def test_sasl_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The response is 34 with the mechanisms, the connection stays open, and the log says who tried
    it."""
    caplog.set_level("INFO")
    response = world_of(tmp_path).client.call(SaslHandshakeRequest("PLAIN"))
    assert (34, ["GSSAPI"]) == (response.error_code, response.mechanisms)
    assert "Refused SASL PLAIN of client" in caplog.text


def test_refused_topics_do_not_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The lines of one CreateTopics with many illegal names are limited."""
    caplog.set_level("INFO")
    world = world_of(tmp_path)
    world.controller.is_active = True
    topics = [NewTopic(f"{'#' * 5000}{n}", 1, 1, [], []) for n in range(100)]
    response = world.client.call(CreateTopicsRequest(topics, 0))
    assert all(topic.error_code for topic in response.topics)
    lines = [record for record in caplog.records if record.name == create_topics.__name__]
    limit = LineLimit(10)
    assert LINES_MAX == sum(limit.filter(record) for record in lines)


@pytest.mark.parametrize("level", ["0.9.0", "0.10.2"])
def test_acks_other_than_minus_1_0_and_1_are_refused(tmp_path: Path, level: str) -> None:
    """Illegal acks get 21, and nothing is appended. 0.8.2 accepts them."""
    world = world_of(tmp_path, level)
    world.lead("t")
    request = ProduceRequest(2, 1, [ProduceTopic("t", [ProducePartition(0, SET)])])
    response = world.client.call(request)
    assert 21 == response.topics[0].partitions[0].error_code
    assert 0 == world.partition("t").log.log_end_offset


def test_illegal_acks_of_an_unknown_topic(tmp_path: Path) -> None:
    """An unknown topic gets 3, as in 0.10.2.2, once for a partition that is listed twice."""
    world = world_of(tmp_path)
    world.lead("t")
    sets = [ProducePartition(0, SET)] * 2
    topics = [ProduceTopic("t", sets), ProduceTopic("nosuch", sets)]
    response = world.client.call(ProduceRequest(2, 1, topics))
    codes = [(t.topic, [p.error_code for p in t.partitions]) for t in response.topics]
    assert [("t", [21]), ("nosuch", [3])] == codes


NOISE: Final = random.Random(1).randbytes(100_000)


class TestProduce:
    @pytest.mark.parametrize("value", [b"v" * 100, b"v" * 100_000], ids=["inline", "native"])
    @pytest.mark.parametrize("acks", [1, -1])
    def test_the_response_has_the_append_time(
        self, tmp_path: Path, acks: int, value: bytes
    ) -> None:
        """The response has the time of the append under LogAppendTime, else -1: for small sets, and
        for sets that a native thread checks."""
        for kind, given in (("LogAppendTime", True), ("CreateTime", False)):
            world = world_of(tmp_path / kind, log_message_timestamp_type=kind)
            world.lead("t", replicas=(1, 2), isr=(1,))
            # A stored block: gzip of level 0 keeps its size.
            data = gzip.compress(message_set.encode([(None, value)], magic=1), 0)
            sent = bytes(kernel.wrap(data, 0, compression.GZIP, 1, -1))
            request = ProduceRequest(
                acks, 1000, [ProduceTopic("t", [ProducePartition(0, sent)])], version=2
            )
            (answered,) = world.client.call(request).topics[0].partitions
            now_ms = world.runtime.time_ms()
            assert (0, now_ms if given else -1) == (
                answered.error_code,
                answered.log_append_time_ms,
            )

    def test_bytes_in_are_those_of_the_producer(self, tmp_path: Path) -> None:
        """bytesin counts the producer's bytes (records.sizeInBytes in 0.10.2.2), whatever the log
        stores: after a conversion to magic 1, and after a new compression, inline and in a thread.
        """
        world = world_of(tmp_path)
        world.lead("t")
        sent = 0
        for value, codec in ((b"v", 0), (b"v", 0), (b"v" * 300_000, 0), (b"v", 1), (NOISE, 1)):
            data = message_set.encode([(None, value)] * 2, codec)
            sent += len(data)
            topics = [ProduceTopic("t", [ProducePartition(0, data)])]
            (answered,) = world.client.call(ProduceRequest(1, 1000, topics)).topics[0].partitions
            assert 0 == answered.error_code
        partition = world.partition("t")
        assert (10, sent) == (partition.messages_in, partition.bytes_in)
        assert sent != partition.log.size

    def test_a_timestamp_that_is_too_far_is_refused(self, tmp_path: Path) -> None:
        """The partition gets 32, and nothing is appended."""
        world = world_of(tmp_path, log_message_timestamp_difference_max_ms=1000)
        world.lead("t")
        response = produce(world, "t")
        assert 32 == response.topics[0].partitions[0].error_code
        assert 0 == world.partition("t").log.log_end_offset


def test_offsets_are_stored_with_the_time_of_the_commit(tmp_path: Path) -> None:
    """A commit is stored with magic 1, so that no limit on timestamps refuses it; below 0.10 with
    magic 0."""
    for level, stored in (("0.10.2", 1), ("0.9.0", 0)):
        keys = {"log_message_timestamp_difference_max_ms": 1000} if stored else {}
        world = world_of(tmp_path / level, level, **keys, offsets_topic_num_partitions=1)
        world.lead("t")
        world.lead(OFFSETS_TOPIC)
        topics = [OffsetCommitTopic("t", [OffsetCommitPartition(0, 5, "")])]
        response = world.client.call(OffsetCommitRequest("g", topics, version=2))
        assert 0 == response.topics[0].partitions[0].error_code
        data = world.partition(OFFSETS_TOPIC).log.read(0, 9999).bytes()
        (entry,) = kernel.entries(data)
        time = world.runtime.time_ms() if stored else -1
        assert (stored, time) == (entry.magic, entry.timestamp_ms)


class TestFetch:
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        world = world_of(tmp_path)
        for topic in ("a", "b"):
            world.lead(topic, 2)
            produce(world, topic)
            produce(world, topic)
        return world

    def test_the_response_has_the_order_of_the_request(self, world: World) -> None:
        """Partitions of a topic that are not adjacent in the request have separate entries."""
        wanted = (("b", 0, 9999), ("a", 0, 9999), ("b", 1, 9999))
        response = fetch(world, *wanted, max_bytes=9999)
        assert ["b", "a", "b"] == [topic.topic for topic in response.topics]

    def test_a_negative_limit_fails_only_the_first_partition(self, world: World) -> None:
        """A negative limit is an error of the partition that is read first. The next one gets its
        first message whole."""
        found = sizes(fetch(world, ("a", 0, 9999), ("b", 0, 9999), max_bytes=-1))
        assert [("a", 0, -1, 0), ("b", 0, 0, len(SET))] == found
        found = sizes(fetch(world, ("a", 7, 9999), ("b", 0, 9999), max_bytes=-1))
        assert [("a", 7, 3, 0), ("b", 0, 0, len(SET))] == found

    def test_a_debugging_consumer_asks_for_an_unknown_topic(self, world: World) -> None:
        """A debugging consumer gets 3 for an unknown topic, not 9."""
        topics = [FetchTopic("nosuch", [FetchPartition(0, 0, 100)])]
        response = world.client.call(FetchRequest(-2, 0, 0, topics, version=3))
        assert [("nosuch", 0, 3, 0)] == sizes(response)

    def test_unknown_topics_come_last(self, world: World) -> None:
        """Unknown topics are at the end, as in 0.10.2.2."""
        response = fetch(world, ("x", 0, 9999), ("a", 0, 9999), max_bytes=9999)
        assert [("a", 0, 0, 2 * len(SET)), ("x", 0, 3, 0)] == sizes(response)

    def test_the_whole_response_is_limited(self, world: World) -> None:
        """Each partition gets at most what is left of the limit, in the order of the request. With
        0 left its set is empty."""
        response = fetch(world, ("a", 0, 9999), ("b", 0, 9999), max_bytes=2 * len(SET))
        assert [("a", 0, 0, 2 * len(SET)), ("b", 0, 0, 0)] == sizes(response)
        response = fetch(world, ("b", 0, 9999), ("a", 0, 9999), max_bytes=3 * len(SET))
        assert [("b", 0, 0, 2 * len(SET)), ("a", 0, 0, len(SET))] == sizes(response)

    @pytest.mark.parametrize(("most", "max_bytes"), [(10, 9999), (9999, 10), (0, 0)])
    def test_the_first_message_comes_whole(self, world: World, most: int, max_bytes: int) -> None:
        """The first message is sent whole, whatever the limits. The next partition then gets no
        message instead of a cut one."""
        response = fetch(world, ("a", 0, most), ("b", 0, 10), max_bytes=max_bytes)
        assert [("a", 0, 0, len(SET)), ("b", 0, 0, 0)] == sizes(response)

    def test_an_empty_partition_leaves_the_right_to_the_next(self, world: World) -> None:
        """If the first partition is empty, the next one's first message is sent whole."""
        response = fetch(world, ("a", 1, 10), ("b", 0, 10), max_bytes=10)
        assert [("a", 1, 0, 0), ("b", 0, 0, len(SET))] == sizes(response)

    def test_versions_before_cut_heads(self, world: World) -> None:
        """Up to version 2 each partition has its own limit, which cuts messages."""
        response = fetch(world, ("a", 0, 10), ("b", 0, 10), max_bytes=5, version=2)
        assert [("a", 0, 0, 10), ("b", 0, 0, 10)] == sizes(response)

    @pytest.mark.parametrize(("most", "max_bytes"), [(-1, 9999), (9999, -1)])
    def test_negative_limits_are_errors(self, world: World, most: int, max_bytes: int) -> None:
        """A negative limit of a partition is error -1."""
        assert [("a", 0, -1, 0)] == sizes(fetch(world, ("a", 0, most), max_bytes=max_bytes))

    @pytest.mark.parametrize(("level", "code"), [("0.8.2", -1), ("0.9.0", -1), ("0.10.2", 0)])
    def test_between_hw_and_leo(self, tmp_path: Path, level: str, code: int) -> None:
        """Between HW and LEO a consumer gets an empty set at 0.10.2, because a new leader's HW may
        lag for a moment."""
        world = world_of(tmp_path / "other", level)
        world.lead("t", isr=(1, 2), replicas=(1, 2))
        for _ in range(3):
            produce(world, "t")
        topics = [FetchTopic("t", [FetchPartition(0, 1, 9999)])]
        response = world.client.call(FetchRequest(-1, 0, 0, topics))
        assert [("t", 0, code, 0)] == sizes(response)


class TestMetadata:
    def test_null_is_all_and_empty_is_none(self, tmp_path: Path) -> None:
        """From version 1 on null means all topics and an empty list none. In version 0 an empty
        list means all."""
        world = world_of(tmp_path)
        world.lead("t")
        for version, asked, expected in ((0, None, ["t"]), (1, None, ["t"]), (2, [], [])):
            response = world.client.call(MetadataRequest(asked, version=version))
            assert expected == [topic.topic for topic in response.topics], version
            assert [1] == [broker.broker_id for broker in response.brokers]

    def test_fields_of_each_version(self, tmp_path: Path) -> None:
        """Version 1 has controller, rack and internal topics; version 2 also the cluster id."""
        world = world_of(tmp_path)
        world.lead("__consumer_offsets")
        live = [LiveBroker(1, [ListenerEndpoint(9, "h", "PLAINTEXT", 0)], "r1")]
        world.client.call(UpdateMetadataRequest(9, CONTROLLER_EPOCH, [], live, version=3))
        response = world.client.call(MetadataRequest(None, version=2))
        assert (9, "pC_UvGuMS9yjg9-rNYsVvQ") == (response.controller_id, response.cluster_id)
        assert [("h", 9, "r1")] == [(b.host, b.port, b.rack) for b in response.brokers]
        assert [True] == [topic.is_internal for topic in response.topics]

    @pytest.mark.parametrize(("version", "code", "replicas"), [(0, 9, [1]), (1, 0, [1, 7])])
    def test_a_dead_replica(
        self, tmp_path: Path, version: int, code: int, replicas: list[int]
    ) -> None:
        """A dead replica is left out with an error in version 0, and listed without error from
        version 1 on."""
        world = world_of(tmp_path)
        world.lead("t", isr=(1, 7), replicas=(1, 7))
        (topic,) = world.client.call(MetadataRequest(["t"], version=version)).topics
        (partition,) = topic.partitions
        assert (code, replicas, replicas) == (
            partition.error_code,
            partition.replicas,
            partition.isr,
        )

    def test_one_bad_name_fails_alone(self, tmp_path: Path) -> None:
        """A bad topic name fails alone. In 0.8.2.2 it fails the whole response."""
        world = world_of(tmp_path)
        world.lead("t")
        request = MetadataRequest(["t", "a b", "new"], version=1)
        response = world.client.call(request)
        assert [("t", 0), ("a b", 17), ("new", 5)] == [
            (topic.topic, topic.error_code) for topic in response.topics
        ]
        assert [1] == [broker.broker_id for broker in response.brokers]

    def test_each_listener_has_its_own_addresses(self, tmp_path: Path) -> None:
        """Each listener gets its own addresses, also from a cached response."""
        world = world_of(
            tmp_path,
            listeners="PLAINTEXT://:1,INNER://:2",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT",
        )
        inner = world.at_listener("INNER")
        ends = [ListenerEndpoint(n, "h", name, 0) for n, name in ((1, "PLAINTEXT"), (2, "INNER"))]
        live = [LiveBroker(1, ends, None)]
        world.client.call(UpdateMetadataRequest(9, CONTROLLER_EPOCH, [], live, version=3))
        for _ in range(2):
            for client, port in ((world.client, 1), (inner, 2)):
                response = client.call(MetadataRequest([], version=1))
                assert [port] == [broker.port for broker in response.brokers]


class TestListOffsets:
    @pytest.mark.parametrize(
        ("replica", "time_ms", "found"),
        [(-1, -1, (1, -1)), (2, -1, (3, -1)), (-1, -2, (0, -1)), (2, 6, (2, 8)), (-1, 8, (-1, -1)),
         (-1, 5, (1, 6)), (-1, 9, (-1, -1)), (2, 9, (-1, -1))],
    )  # fmt: skip
    def test_ends_and_times(
        self, tmp_path: Path, replica: int, time_ms: int, found: tuple[int, int]
    ) -> None:
        """A consumer gets the HW and a follower the LEO. By time the response is the first message
        at or after it, for a consumer below the HW."""
        world = world_of(tmp_path)
        world.lead("t", isr=(1, 2), replicas=(1, 2))
        times = [4, 5 if time_ms == 6 else 6, 8]
        data = message_set.encode([(None, b"v")] * 3, magic=1, timestamps=times)
        produce(world, "t", data=data)
        world.partition("t").high_watermark = 1
        topics = [OffsetsTopic("t", [OffsetsPartition(0, time_ms, 1)])]
        response = world.client.call(OffsetsRequest(replica, topics, version=1))
        (partition,) = response.topics[0].partitions
        assert (0, *found) == (partition.error_code, partition.offset, partition.timestamp_ms)

    def test_a_leader_that_changed_during_a_search(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A search that unpacks much runs in a thread. If this broker no longer leads then, or
        leads again, the messages that it read may have been cut off: error 6, whatever it found."""
        world = world_of(tmp_path)
        world.lead("t", replicas=(1, 2))
        much = [(None, bytes(UNPACKED_AT_ONCE_BYTES))]
        data = message_set.encode(much, compression.GZIP, magic=1, timestamps=[5])
        produce(world, "t", data=data)
        searched: list[object] = []

        def run_native(search: Callable[[], object]) -> object:
            world.lead("t", replicas=(1, 2))
            searched.append(search())
            if len(searched) > 1:
                raise CorruptLog("cut off")
            return searched[-1]

        monkeypatch.setattr(world.runtime, "run_native", run_native)
        topics = [OffsetsTopic("t", [OffsetsPartition(0, 5, 1)])]
        for _ in range(2):
            response = world.client.call(OffsetsRequest(-1, topics, version=1))
            assert [6] == [p.error_code for p in response.topics[0].partitions]
        assert [TimestampOffset(5, 0)] * 2 == searched

    @staticmethod
    def threads_to_find(world: World, monkeypatch: pytest.MonkeyPatch, partitions: int) -> int:
        """Find the time 5 in each of these partitions; how many searches took a thread."""
        in_thread: list[object] = []

        def run_native(search: Callable[[], object]) -> object:
            in_thread.append(search)
            return search()

        monkeypatch.setattr(world.runtime, "run_native", run_native)
        topics = [OffsetsTopic("t", [OffsetsPartition(n, 5, 1) for n in range(partitions)])]
        response = world.client.call(OffsetsRequest(-1, topics, version=1))
        assert [5] * partitions == [p.timestamp_ms for p in response.topics[0].partitions]
        return len(in_thread)

    @pytest.mark.parametrize("partitions", [1, 2])
    def test_a_search_that_unpacks_little_takes_no_thread(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int
    ) -> None:
        """It would take longer to begin. All searches of a request share a limit."""
        world = world_of(tmp_path)
        world.lead("t", partitions)
        values = [(None, bytes(UNPACKED_AT_ONCE_BYTES * 2 // 3))]
        data = message_set.encode(values, compression.GZIP, magic=1, timestamps=[5])
        sets = [ProducePartition(number, data) for number in range(partitions)]
        world.client.call(ProduceRequest(1, 1000, [ProduceTopic("t", sets)], version=2))
        assert (0 if partitions == 1 else 2) == self.threads_to_find(world, monkeypatch, partitions)

    @pytest.mark.parametrize(
        ("partitions", "size", "threads"),
        [(1, SEARCHED_AT_ONCE_BYTES * 2 // 3, 0), (2, SEARCHED_AT_ONCE_BYTES * 2 // 3, 2),
         (1, SEARCHED_AT_ONCE_BYTES * 3 // 2, 1), (300, SEARCHED_AT_LEAST_BYTES * 2 // 3, 0)],
    )  # fmt: skip
    def test_a_search_that_reads_much_takes_a_thread(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        partitions: int,
        size: int,
        threads: int,
    ) -> None:
        """No time index leads past messages without timestamps. A search that would read much of
        them does not hold the event loop. All searches of a request share a limit, but each may
        read about two index intervals."""
        world = world_of(tmp_path)
        world.lead("t", partitions)
        untimed = message_set.encode([(None, bytes(1000))] * (size // 1000), magic=1)
        timed = message_set.encode([(None, b"v")], magic=1, timestamps=[5])
        sets = [ProducePartition(number, untimed + timed) for number in range(partitions)]
        world.client.call(ProduceRequest(1, 1000, [ProduceTopic("t", sets)], version=2))
        assert threads == self.threads_to_find(world, monkeypatch, partitions)

    def test_magic_0_has_no_times(self, tmp_path: Path) -> None:
        """A log of magic 0 gets 43."""
        world = world_of(tmp_path, log_message_format_version="0.9.0")
        world.lead("t")
        topics = [OffsetsTopic("t", [OffsetsPartition(0, 5, 1)])]
        response = world.client.call(OffsetsRequest(-1, topics, version=1))
        assert [43] == [p.error_code for p in response.topics[0].partitions]

    def test_a_partition_named_twice(self, tmp_path: Path) -> None:
        """A partition that is listed twice gets 42 once."""
        world = world_of(tmp_path)
        world.lead("t")
        topics = [OffsetsTopic("t", [OffsetsPartition(0, -1, 1)] * 2)]
        response = world.client.call(OffsetsRequest(-1, topics, version=1))
        assert [42] == [p.error_code for p in response.topics[0].partitions]


class TestTopics:
    """Requests that only the controller accepts."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        world = world_of(tmp_path)
        world.lead("there")
        world.lead("a.b")
        for topic in ("there", "a.b"):
            world.store.create_topic(topic, {0: [1]}, {})
        world.controller.is_active = True
        return world

    @pytest.mark.parametrize(
        ("wanted", "code"),
        [
            (NewTopic("t", 1, 1, [], [TopicConfigEntry("nonsense", "1")]), 40),
            (NewTopic("t", 1, 1, [], [TopicConfigEntry("segment.bytes", "x")]), -1),
            (NewTopic("t", 1, 1, [ReplicaAssignment(0, [1])], []), 42),
            (NewTopic("t", 0, 1, [], []), 37),
            (NewTopic("t", 20_001, 1, [], []), 37),
            (NewTopic("t", 2**31 - 1, 1, [], []), 37),
            (NewTopic("t", 1, 0, [], []), 38),
            (NewTopic("t", 1, 2, [], []), 38),
            (NewTopic("t", NO_COUNT, NO_COUNT, [], []), 37),
            (NewTopic("a b", 1, 1, [], []), 17),
            (NewTopic("t" * 250, 1, 1, [], []), 17),
            (NewTopic("there", 1, 1, [], []), 36),
            (NewTopic("a_b", 1, 1, [], []), 17),
            (NewTopic("t", -1, -1, [ReplicaAssignment(0, [1, 1])], []), 39),
            (NewTopic("t", -1, -1, [ReplicaAssignment(0, [])], []), 39),
            (NewTopic("t", -1, -1, [ReplicaAssignment(0, [-1])], []), 39),
            (NewTopic("t", -1, -1, [ReplicaAssignment(-1, [1])], []), 39),
            (NewTopic("t", -1, -1, [ReplicaAssignment(0, [*range(1001)])], []), 39),
            (
                NewTopic("t", -1, -1, [ReplicaAssignment(0, [1]), ReplicaAssignment(1, [])], []),
                39,
            ),
            (NewTopic("t", 1, 1, [], []), 0),
        ],
    )
    def test_checks(self, world: World, wanted: NewTopic, code: int) -> None:
        """Errors have the codes of AdminManager. A request that only validates creates nothing."""
        request = CreateTopicsRequest([wanted], 0, validate_only=True, version=1)
        (result,) = world.client.call(request).topics
        assert code == result.error_code
        assert (result.message is None) == (code == 0)
        assert paths.topic("t") not in world.store.znodes

    @pytest.mark.parametrize(
        ("wanted", "text"),
        [
            (NewTopic("there", 1, 1, [], []), "Topic 'there' already exists."),
            (NewTopic("a_b", 1, 1, [], []), "Topic 'a_b' collides with existing topics: a.b"),
            (NewTopic("", 1, 1, [], []), "topic name is illegal, can't be empty"),
            (NewTopic("t", 0, 1, [], []), "number of partitions must be larger than 0"),
            (NewTopic("t", 1, 2, [], []), "replication factor: 2 larger than available brokers: 1"),
            (
                NewTopic("t", 1, 1, [], [TopicConfigEntry("no.such", "1")]),
                "Unknown Log configuration no.such.",
            ),
        ],
    )
    def test_texts(self, world: World, wanted: NewTopic, text: str) -> None:
        """A client shows the text of 0.10.2.2 beside its own name of the code. (Ours was in front
        of it: "TopicAlreadyExists (36): Topic …".)"""
        request = CreateTopicsRequest([wanted], 0, validate_only=True, version=1)
        (result,) = world.client.call(request).topics
        assert text == result.message

    @pytest.mark.parametrize(
        ("topics", "begin"),
        [
            (
                [NewTopic("t", 1, 1, [], [TopicConfigEntry("segment.bytes", "é" * 16_350)])],
                "Invalid value ééé",
            ),
            (
                [NewTopic(f"{n % 200}-{'t' * 240}", 1, 1, [], []) for n in range(400)],
                "Create topics request from client",
            ),
        ],
        ids=["a long value", "many names"],
    )
    def test_a_long_text_is_cut(self, world: World, topics: list[NewTopic], begin: str) -> None:
        """The other topics of the request may have been created, so it must have a response."""
        response = world.client.call(CreateTopicsRequest(topics, 0, version=1))
        text = str(response.topics[0].message)
        assert text.startswith(begin)
        assert STRING_BYTES_MAX - 1 <= len(text.encode()) <= STRING_BYTES_MAX

    @pytest.mark.parametrize(
        ("racks", "code", "replicas"),
        [(("a", "a", "b"), 0, {3}), (("a", None, "b"), -1, None), ((None,) * 3, 0, set())],
    )
    def test_replicas_are_spread_over_racks(
        self, world: World, racks: Any, code: int, replicas: set[int] | None
    ) -> None:
        """If only some brokers have a rack, the code is -1. Otherwise replicas are spread over
        racks; without any rack, over all brokers."""
        live = [
            LiveBroker(n, [ListenerEndpoint(n, "h", "PLAINTEXT", 0)], rack)
            for n, rack in enumerate(racks, 1)
        ]
        world.client.call(UpdateMetadataRequest(9, CONTROLLER_EPOCH, [], live, version=3))
        response = world.client.call(CreateTopicsRequest([NewTopic("t", 12, 2, [], [])], 0))
        (result,) = response.topics
        assert result.error_code == (code or 7)
        if replicas is not None:
            assignment = nodes.decode_assignment(world.store.znodes[paths.topic("t")])
            assert replicas == set.intersection(*map(set, assignment.values()))

    def test_one_named_twice_fails_alone(self, world: World) -> None:
        """A topic that is named twice fails, and the others are created."""
        topics = [NewTopic(name, 1, 1, [], []) for name in ("t", "u", "t")]
        response = world.client.call(CreateTopicsRequest(topics, 0, version=1))
        assert {"t": 42, "u": 7} == {r.topic: r.error_code for r in response.topics}
        assert 1 == world.store.created_partitions("u")
        assert paths.topic("t") not in world.store.znodes

    @pytest.mark.parametrize("validate_only", [True, False])
    def test_the_topics_of_one_request_are_bounded_together(
        self, world: World, validate_only: bool
    ) -> None:
        """1.9 KB named 2,000,000 partitions, whose replicas were all chosen and listed."""
        topics = [NewTopic(f"large-{n}", 20_000, 1, [], []) for n in range(8)]
        request = CreateTopicsRequest(topics, 0, validate_only=validate_only, version=1)
        began = time.process_time()
        codes = [result.error_code for result in world.client.call(request).topics]
        assert [0 if validate_only else 7] * 5 + [37] * 3 == codes
        if validate_only:
            assert time.process_time() - began < 0.1 * slowdown()

    def test_a_client_that_leaves_ends_its_request(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is not done of it is left."""
        monkeypatch.setattr(Client, "is_abandoned", lambda self: "t" in world.store.topics())
        topics = [NewTopic(name, 1, 1, [], []) for name in ("t", "u", "v")]
        world.client.call(CreateTopicsRequest(topics, 0, version=1))
        assert paths.topic("t") in world.store.znodes
        assert paths.topic("u") not in world.store.znodes

    def test_the_texts_of_a_response_are_bounded_together(self, world: World) -> None:
        """Each of 10,000 topics that are named twice had the names of all: 300 MB for 300 KB."""
        topics = [NewTopic(f"topic-{n % 10_000}", 1, 1, [], []) for n in range(20_000)]
        world.client.send(encode_request(CreateTopicsRequest(topics, 0, version=1), 7, "test"))
        world.runtime.run_native_jobs()
        (frame,) = world.client.frames()
        assert len(frame) < 20 << 20

    def test_another_broker_is_asked_in_vain(self, world: World) -> None:
        """A broker that is not the controller answers 41 for each topic, in both requests."""
        world.controller.is_active = False
        response = world.client.call(CreateTopicsRequest([NewTopic("t", 1, 1, [], [])], 1))
        assert [("t", 41)] == [(r.topic, r.error_code) for r in response.topics]
        response = world.client.call(DeleteTopicsRequest(["there", "nowhere"], 1))
        assert [("there", 41), ("nowhere", 41)] == [
            (r.topic, r.error_code) for r in response.topics
        ]


class TestErrorCodes:
    @pytest.mark.parametrize(
        ("level", "stale", "elsewhere"),
        [("0.8.2", 13, None), ("0.9.0", 13, 3), ("0.10.2", 11, 3)],
    )
    def test_states_that_are_not_obeyed(
        self, tmp_path: Path, level: str, stale: int, elsewhere: int | None
    ) -> None:
        """A leader epoch that is not higher is refused, and so is a partition without a replica on
        this broker."""
        world = world_of(tmp_path, level)
        world.lead("t")
        states = [
            PartitionStateInfo("t", 0, CONTROLLER_EPOCH, 1, 0, [1], 0, [1]),
            PartitionStateInfo("u", 0, CONTROLLER_EPOCH, 2, 0, [2], 0, [2]),
        ]
        leaders = [BrokerEndpoint(n, "127.0.0.1", n) for n in (1, 2)]
        response = world.client.call(LeaderAndIsrRequest(9, CONTROLLER_EPOCH, states, leaders))
        found = {item.topic: item.error_code for item in response.partitions}
        expected = {"t": stale} | ({} if elsewhere is None else {"u": elsewhere})
        assert (0, expected) == (response.error_code, found)
        old = LeaderAndIsrRequest(9, CONTROLLER_EPOCH - 1, states, leaders)
        assert 11 == world.client.call(old).error_code

    @pytest.mark.parametrize(("level", "code"), [("0.8.2", -1), ("0.9.0", 11), ("0.10.2", 11)])
    def test_metadata_of_an_old_controller(self, tmp_path: Path, level: str, code: int) -> None:
        """The response to UpdateMetadata of an old controller has the code of the cause from 0.9
        on."""
        world = world_of(tmp_path, level)
        world.lead("t")
        request = UpdateMetadataRequest(8, CONTROLLER_EPOCH - 1, [], [])
        assert code == world.client.call(request).error_code

    def test_every_level_reads_its_own_versions_of_metadata(self, tmp_path: Path) -> None:
        """Each level accepts its own versions of UpdateMetadata, whatever
        inter.broker.protocol.version is."""
        state = PartitionStateInfo("t", 0, CONTROLLER_EPOCH, 1, 0, [1], 0, [1])
        for level, newest in (("0.8.2", 0), ("0.9.0", 1), ("0.10.2", 3)):
            world = world_of(tmp_path / level, level)
            for version in range(newest + 1):
                live = [LiveBroker.plaintext(1, "h", version + 1)]
                request = UpdateMetadataRequest(9, CONTROLLER_EPOCH, [state], live, version=version)
                assert 0 == world.client.call(request).error_code
                assert version + 1 == world.cache.live_brokers()[0].port
            assert (6, newest) == max(k for k in SERVED[world.config.level].rows if k[0] == 6)
