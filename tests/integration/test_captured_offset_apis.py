"""The offset APIs of a real broker process, beside what 0.8.2.2 answered to the same bytes.

The exchanges are those of tests/data/api-0.8.2.2.json from `offset-fetch-v1-none` on, in their
order. Only the refused metadata differs on purpose (docs/compatibility.md): there the responses are
compared with what the cache would say had the refused commits not been made.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.protocol.codec import decode_response
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest
from kafka08.protocol.offset_fetch import OffsetFetchRequest
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.store import ClusterStore
from tests.waiting import until

EXCHANGES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "api-0.8.2.2.json").read_text(encoding="utf-8")
)
REPLAYED = (7, 8, 9)
"""ControlledShutdown (of a broker that does not exist), OffsetCommit, OffsetFetch."""
TOPIC = "ref-multi-33105"
GROUP = "ref-g1"
AFTER_REFUSAL = {"offset-fetch-v1-after-big-metadata", "offset-fetch-v2-to-0.8.2.2"}
"""Fetches of partition 0 after its commits with too long metadata: 0.8.2.2 answers the refused
offset 6, we the stored offset 4 with metadata "x"."""


def exchange(address: tuple[str, int], request: bytes) -> bytes | None:
    """The response's frame, or None if the broker closes the connection."""
    with (
        socket.create_connection(address, 10) as connection,
        connection.makefile("rb") as stream,
    ):
        connection.sendall(request)
        prefix = stream.read(4)
        return prefix + stream.read(struct.unpack(">i", prefix)[0]) if prefix else None


class Live(NamedTuple):
    address: tuple[str, int]
    store: ClusterStore


@pytest.fixture
def live() -> Iterator[Live]:
    """A broker with id 1's part played by 0, the topic of the captures, and a known coordinator."""
    with (
        EmbeddedCluster(brokers=1, level="0.8.2") as cluster,
        ZkClient(cluster.zookeeper.connect_string) as zk,
    ):
        store = ClusterStore(zk)
        zk.create(paths.topic_config(TOPIC), nodes.encode_topic_config({}))
        zk.create(paths.topic(TOPIC), nodes.encode_assignment(dict.fromkeys(range(3), (0,))))
        broker = cluster.brokers[0]
        await_coordinator((broker.host, broker.port))
        tps = [TopicPartition(TOPIC, number) for number in range(3)]
        assert set(store.leader_and_isr(tps)) == set(tps)
        yield Live((broker.host, broker.port), store)


def await_coordinator(address: tuple[str, int]) -> None:
    """Repeat the captured `group-coordinator` request until it is answered without 15."""
    request = bytes.fromhex(next(e for e in EXCHANGES if e.get("api_key") == 10)["request_hex"])

    def is_answered() -> bool:
        frame = exchange(address, request)
        assert frame is not None
        _, response = decode_response(ConsumerMetadataRequest, frame[4:])
        if response.error_code == 0:
            assert (response.coordinator_id, response.host, response.port) == (0, *address)
            return True
        assert (response.error_code, response.coordinator_id) == (15, -1)
        return False

    until(is_answered, "leaders of the offsets topic")


def check_znodes(store: ClusterStore) -> None:
    """The offsets of version 0, and the offsets topic's configuration as 0.8.2.2 writes it."""
    assert GroupStore(store.zk).offsets(
        GROUP, [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 99)]
    ) == {
        TopicPartition(TOPIC, 0): 2,
        TopicPartition(TOPIC, 99): 2,
    }
    config = store.zk.get(paths.topic_config("__consumer_offsets")).data
    assert config == (
        '{"version":1,"config":{"cleanup.policy":"compact","segment.bytes":"104857600"}}'
    )


def test_every_captured_exchange(live: Live) -> None:
    """The same requests get the same bytes, or a closed connection where it was closed. Afterwards
    ZooKeeper has the same znodes."""
    replayed = [captured for captured in EXCHANGES if captured.get("api_key") in REPLAYED]
    assert set(REPLAYED) == {captured["api_key"] for captured in replayed}
    assert {captured["name"] for captured in replayed} >= AFTER_REFUSAL
    for captured in replayed:
        response = exchange(live.address, bytes.fromhex(captured["request_hex"]))
        if captured["name"] in AFTER_REFUSAL:
            assert response is not None
            _, body = decode_response(OffsetFetchRequest, response[4:])
            found = body.topics[0].partitions[0]
            assert (found.offset, found.metadata, found.error_code) == (4, "x", 0)
        else:
            wanted = captured.get("response_hex")
            assert (response.hex() if response else None) == wanted, captured["name"]
    check_znodes(live.store)
