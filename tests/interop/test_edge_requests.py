"""The real broker does what tests/broker expects of ours."""

from __future__ import annotations

import socket
from pathlib import Path
from struct import pack, unpack

import pytest

from kafka08 import kernel
from kafka08.protocol import compression, message_set
from tests.broker.edge_requests import CORRELATION_ID, EDGE_REQUESTS, produce
from tests.broker.world import World
from tests.interop.jvm import JvmKafka
from tests.waiting import until


def exchange(kafka: JvmKafka, frame: bytes) -> bytes:
    """The payload of the first broker's response; b"" if it closes the connection."""
    with socket.create_connection(("127.0.0.1", kafka.brokers[0].port), timeout=20) as connection:
        connection.sendall(frame)
        responses = connection.makefile("rb")
        size = responses.read(4)
        return responses.read(unpack(">i", size)[0]) if size else b""


def test_requests_without_names_or_partitions(jvm_kafka: JvmKafka) -> None:
    """We send the responses of 0.8.2.2, byte for byte, to requests with empty names or without
    partitions."""
    jvm_kafka.create_topic("edge")
    head = pack(">i", CORRELATION_ID)
    commits = [request for request in EDGE_REQUESTS if request.name == "one, OffsetCommit v1"]
    coordinator = pack(">hhih", 10, 0, CORRELATION_ID, -1) + pack(">h4s", 4, b"edge")

    def is_loaded() -> bool:
        exchange(jvm_kafka, pack(">i", len(coordinator)) + coordinator)
        return all(head + r.response == exchange(jvm_kafka, r.frame) for r in commits)

    until(is_loaded, "the coordinator")
    responses = {request.name: exchange(jvm_kafka, request.frame) for request in EDGE_REQUESTS}
    assert {request.name: head + request.response for request in EDGE_REQUESTS} == responses


@pytest.mark.parametrize(("inside", "code"), [(True, 0), (False, 2)])
def test_a_wrong_crc_inside_a_compressed_set_is_stored(
    jvm_kafka: JvmKafka, tmp_path: Path, inside: bool, code: int
) -> None:
    """Like 0.8.2.2 we check the wrapper's CRC alone, and store the inner bytes unchanged. A wrong
    CRC of the wrapper is an error."""
    topic = f"crc-{code}"
    jvm_kafka.create_topic(topic)
    data = bytearray(message_set.encode([(None, b"good"), (None, b"bad")]))
    data[-1] ^= 1
    if inside:
        data = bytearray(kernel.wrap(compression.compress(compression.GZIP, data), 1, 1))
    request = produce((topic, [pack(">ii", 0, len(data)) + data]))
    world = World(tmp_path)
    world.lead(topic)
    world.client.send(request)
    (ours,) = world.client.frames()
    assert code == unpack(">h", ours[-10:-8])[0]
    assert ours == exchange(jvm_kafka, request)
