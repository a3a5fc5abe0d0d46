"""Edges of levels 0.9.0 and 0.10.2 that a comparison with the JVM's brokers found.

tests/interop/test_differences_on_jvm.py compares them with the real ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.config import LONG_MAX
from kafka08.protocol import compression, message_set
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.structs import OFFSETS_TOPIC
from tests.broker.world import Client, World

LEVELS = ("0.8.2", "0.9.0", "0.10.2")
PLAIN = message_set.encode([(b"k", b"v" * 50)] * 3)


def world_of(tmp_path: Path, level: str, **keys: Any) -> World:
    return World(tmp_path, api_level=level, **keys)


def produce(world: World, topic: str, data: bytes) -> tuple[int, bytes]:
    """The error code, and what the log has then."""
    request = ProduceRequest(1, 1000, [ProduceTopic(topic, [ProducePartition(0, data)])])
    code = world.client.call(request).topics[0].partitions[0].error_code
    return code, fetch(world, topic)[0][3]


def fetch(world: World, *topics: str, offset: int = 0, **fields: Any) -> list[Any]:
    """(topic, error code, HW, set) in the order of the response."""
    wanted = [FetchTopic(topic, [FetchPartition(0, offset, 1 << 20)]) for topic in topics]
    response = world.client.call(FetchRequest(fields.pop("replica", -1), 0, 0, wanted, **fields))
    return [
        (topic.topic, one.error_code, one.high_watermark, bytes(one.message_set))
        for topic in response.topics
        for one in topic.partitions
    ]


@pytest.mark.parametrize(
    ("level", "codes"), [("0.8.2", [5, 17]), ("0.9.0", [5, 17]), ("0.10.2", [17, 17])]
)
def test_names_are_shorter_from_0_10_2_on(tmp_path: Path, level: str, codes: list[int]) -> None:
    """Automatic creation refuses names of more than 255 characters, 249 at 0.10.2."""
    world = world_of(tmp_path, level)
    assert 5 == world.client.call(MetadataRequest(["x" * 249])).topics[0].error_code
    found = [
        world.client.call(MetadataRequest([name])).topics[0].error_code
        for name in ("x" * 250, "x" * 256)
    ]
    assert codes == found


@pytest.mark.parametrize(("level", "code"), [("0.8.2", 5), ("0.9.0", 17), ("0.10.2", 17)])
def test_colliding_names_are_illegal_from_0_9_on(tmp_path: Path, level: str, code: int) -> None:
    """Automatic creation refuses a name that differs from an existing one only in . and _; the
    existing one is no error, though its broker does not know it yet."""
    world = world_of(tmp_path, level)
    names = ("a.b_c", "a.b_c", "a_b_c")
    topics = [world.client.call(MetadataRequest([name])).topics[0] for name in names]
    assert [5, 5, code] == [topic.error_code for topic in topics]


@pytest.mark.parametrize("version", range(4))
def test_unknown_topics_come_last_in_every_fetch(tmp_path: Path, version: int) -> None:
    """A Fetch response of 0.10.2 has the known topics first."""
    world = world_of(tmp_path, "0.10.2")
    world.lead("known")
    found = fetch(world, "nosuch", "known", version=version)
    assert [("known", 0), ("nosuch", 3)] == [one[:2] for one in found]


@pytest.mark.parametrize(
    ("level", "version"),
    [("0.8.2", 0), ("0.9.0", 1), *(("0.10.2", version) for version in range(4))],
)
def test_an_unknown_topic_ends_no_wait_at_0_10_2(tmp_path: Path, level: str, version: int) -> None:
    """A Fetch waits for data of its known topics, if it has any. An unknown partition of a known
    topic ends the wait, as every error does before 0.10.2."""
    world = world_of(tmp_path, level)
    world.lead("known")

    def waits(*wanted: tuple[str, int]) -> bool:
        topics = [FetchTopic(name, [FetchPartition(one, 0, 1 << 20)]) for name, one in wanted]
        client = Client(world)
        client.send(encode_request(FetchRequest(-1, 1000, 1, topics, version=version), 1, "c"))
        if is_parked := client.parked:
            assert 0 == produce(world, "known", PLAIN)[0]
        [frame] = client.frames()
        _, response = decode_response(FetchRequest, frame, version)
        assert 3 in {one.error_code for topic in response.topics for one in topic.partitions}
        return is_parked

    assert not waits(("nosuch", 0))
    assert not waits(("known", 9), ("nosuch", 0))
    assert waits(("nosuch", 0), ("known", 0)) == (level == "0.10.2")


def test_an_unknown_topic_that_becomes_known_ends_no_wait(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Even with data: the Fetch waits for the topics that were known when it came."""
    world = world_of(tmp_path, "0.10.2")
    world.lead("known")
    topics = [FetchTopic(name, [FetchPartition(0, 0, 1 << 20)]) for name in ("nosuch", "known")]
    client = Client(world)
    client.send(encode_request(FetchRequest(-1, 1000, 1, topics, version=3), 1, "c"))

    world.lead("nosuch")
    assert 0 == produce(world, "nosuch", PLAIN)[0]
    assert client.parked
    assert 0 == produce(world, "known", PLAIN)[0]
    assert 1 == len(client.frames())
    assert "Uncaught" not in caplog.text


@pytest.mark.parametrize("level", LEVELS)
def test_a_fetcher_that_is_no_replica_gets_one_error(tmp_path: Path, level: str) -> None:
    """Its offset does not matter: -1, not "out of range"."""
    world = world_of(tmp_path, level)
    world.lead("t")
    codes = [fetch(world, "t", offset=offset, replica=5)[0][1] for offset in (0, 99)]
    assert [-1, -1] == codes
    assert 1 == fetch(world, "t", offset=99)[0][1]


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize("version", [1, 2])
def test_a_retention_without_end_overflows(tmp_path: Path, level: str, version: int) -> None:
    """The largest time that a client can send is committed, as in Java's arithmetic."""
    world = world_of(tmp_path, level, offsets_topic_num_partitions=1)
    for topic in ("t", OFFSETS_TOPIC):
        world.lead(topic)
    one = OffsetCommitPartition(0, 5, "", timestamp_ms=LONG_MAX if version == 1 else -1)
    request = OffsetCommitRequest(
        "g", [OffsetCommitTopic("t", [one])], retention_ms=LONG_MAX, version=version
    )
    response = world.client.call(request)
    assert [0] == [p.error_code for topic in response.topics for p in topic.partitions]


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize("codec", [compression.NONE, compression.SNAPPY])
def test_sets_are_stored_in_the_codec_of_the_topic(tmp_path: Path, level: str, codec: int) -> None:
    """From 0.9 on compression.type says how plain and compressed sets are stored."""
    world = world_of(tmp_path, level)
    sent = message_set.encode([(b"k", b"v" * 50)] * 3, codec)
    world.lead("zipped", config={"compression.type": "gzip"})
    world.lead("flat", config={"compression.type": "uncompressed"})
    for topic, is_packed in (("zipped", True), ("flat", False)):
        for _ in range(2):
            code, stored = produce(world, topic, sent)
            assert 0 == code
        entries = list(message_set.decode(stored))
        assert [b"v" * 50] * 6 == [bytes(entry.value or b"") for entry in entries]
        assert [*range(6)] == [entry.offset for entry in entries]
        if level == "0.9.0":
            assert message_set.begins_compressed(stored) == is_packed


@pytest.mark.parametrize(("level", "code"), [("0.8.2", 17), ("0.9.0", 0), ("0.10.2", 0)])
def test_an_admin_client_may_write_to_internal_topics_from_0_9_on(
    tmp_path: Path, level: str, code: int
) -> None:
    """Other clients must not. Its name is that of kafka.admin.AdminUtils."""
    world = world_of(tmp_path, level)
    world.lead(OFFSETS_TOPIC)
    request = ProduceRequest(1, 1000, [ProduceTopic(OFFSETS_TOPIC, [ProducePartition(0, PLAIN)])])
    for client_id, expected in (("other", 17), ("__admin_client", code)):
        world.client.send(encode_request(request, 1, client_id))
        [frame] = world.client.frames()
        _, response = decode_response(ProduceRequest, frame)
        assert expected == response.topics[0].partitions[0].error_code
    assert [PLAIN, b""][code != 0] == fetch(world, OFFSETS_TOPIC)[0][3]


def test_at_0_8_2_the_codec_is_the_producers(tmp_path: Path) -> None:
    """0.8.2.2 does not know compression.type."""
    world = world_of(tmp_path, "0.8.2")
    world.lead("zipped", config={"compression.type": "gzip"})
    assert (0, PLAIN) == produce(world, "zipped", PLAIN)


@pytest.mark.parametrize(("level", "code"), [("0.8.2", 0), ("0.9.0", 2), ("0.10.2", 2)])
@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP])
def test_a_compacted_topic_takes_keys_alone(
    tmp_path: Path, level: str, code: int, codec: int
) -> None:
    """From 0.9 on a message without a key is refused there, in a wrapper too."""
    world = world_of(tmp_path, level)
    world.lead("compacted", config={"cleanup.policy": "compact"})
    for _ in range(2):
        keyed = message_set.encode([(b"k", b"v")], codec)
        assert 0 == produce(world, "compacted", keyed)[0]
        keyless = message_set.encode([(b"k", b"v"), (None, b"v")], codec)
        assert code == produce(world, "compacted", keyless)[0]
