"""The table of level 0.10.2 against a live broker of 0.10.2.2: what it reads, what it closes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.protocol.codec import decode_request, encode_request, encode_response
from kafka08.protocol.create_topics import CreateTopicsRequest, NewTopic
from kafka08.protocol.frame import SIZE
from kafka08.protocol.served import SERVED, api_versions
from kafka08.structs import OFFSETS_TOPIC
from tests.broker.edge_requests import (
    CORRELATION_ID,
    EDGE_REQUESTS,
    FETCHED,
    PARTITION,
    PRODUCED,
    commit,
    fetch,
    fetch_offsets,
    frame,
    produce,
    text,
)
from tests.broker.edge_requests import topics as topics_of
from tests.broker.world import Client, World
from tests.interop.jvm import POM_0_10_2, JvmBroker, JvmKafka
from tests.waiting import until

OF_0_10_2 = SERVED[Level.V0_10_2]
ANY_BODY = bytes(60)
"""Zeros are a body of every layout."""
NULL = b"\xff\xff"
TWENTY_S = 20.0
COORDINATOR = struct.pack(">hhih", 10, 0, CORRELATION_ID, -1) + text("edge")
ASKED_OF_ONE = struct.pack(">iq", 0, -1)
"""A partition of ListOffsets 1: its end."""
NULL_NAMES = {
    "Metadata 0": struct.pack(">hhihi", 3, 0, 5, -1, 1) + NULL,
    "Fetch 0": struct.pack(">hhihiiii", 1, 0, 5, -1, -1, 0, 0, 1) + NULL + bytes(4),
    "OffsetCommit 0": struct.pack(">hhih", 8, 0, 5, -1) + NULL + bytes(4),
    "OffsetCommit 1": struct.pack(">hhihhsi", 8, 1, 5, -1, 1, b"g", -1) + NULL + bytes(4),
    "GroupCoordinator 0": struct.pack(">hhih", 10, 0, 5, -1) + NULL,
}


LATER_COMMITTED = struct.pack(">iq", 0, 5) + text("m")
LATER_EDGES = {
    **{
        f"{name}, OffsetCommit v2": commit(2, group, *topics)
        for name, group, topics in (
            ("no topic", "edge", ()),
            ("twice", "edge", (("edge", [LATER_COMMITTED] * 2),)),
            ("empty group", "", (("edge", [LATER_COMMITTED]),)),
            ("unknown topic", "edge", (("nosuch", [LATER_COMMITTED]),)),
        )
    },
    **{
        f"{name}, OffsetFetch v2": fetch_offsets(2, group, *topics)
        for name, group, topics in (
            ("no topic", "edge", ()),
            ("unknown topic", "edge", (("nosuch", [PARTITION]),)),
            ("empty group", "", (("edge", [PARTITION]),)),
        )
    },
    **{
        f"acks 2, unknown topic and twice, Produce v{version}": produce(
            ("edge", [PRODUCED] * 2), ("nosuch", [PRODUCED]), acks=2, version=version
        )
        for version in range(3)
    },
    **{
        f"{name}, Fetch v{version}": fetch(version, replica, most, *topics)
        for version in range(4)
        for name, replica, most, topics in (
            ("unknown topic", -1, 100, (("nosuch", [FETCHED]),)),
            ("unknown topic of a debugger", -2, 100, (("nosuch", [FETCHED]),)),
            ("twice", -1, 100, (("edge", [FETCHED] * 2), ("edge", [FETCHED]))),
            ("a negative limit", -1, -1, (("edge", [FETCHED]), ("nosuch", [FETCHED]))),
        )
    },
    **{
        f"{name}, Offsets v1": frame(2, 1, struct.pack(">i", -1) + topics_of(*topics))
        for name, topics in (
            ("unknown topic", (("nosuch", [ASKED_OF_ONE]),)),
            ("twice", (("edge", [ASKED_OF_ONE] * 2),)),
        )
    },
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JvmBroker]:
    with JvmKafka(tmp_path_factory.mktemp("kafka-0.10.2.2"), pom=POM_0_10_2) as kafka:
        yield kafka.brokers[0]


def ask(broker: JvmBroker, payload: bytes) -> bytes:
    """The frame of the response; empty if the broker closed the connection."""
    with socket.create_connection(("127.0.0.1", broker.port), timeout=10) as connection:
        connection.sendall(SIZE.pack(len(payload)) + payload)
        response = b""
        try:
            while (
                len(response) < SIZE.size
                or len(response) < SIZE.size + SIZE.unpack_from(response)[0]
            ):
                received = connection.recv(1 << 16)
                if not received:
                    break
                response += received
        except ConnectionResetError:
            return b""
        return response


def is_read(payload: bytes) -> bool:
    try:
        decode_request(payload, OF_0_10_2)
    except ProtocolError:
        return False
    return True


@pytest.mark.parametrize("key", range(-1, 24))
def test_versions_beside_the_range_are_handled_alike(broker: JvmBroker, key: int) -> None:
    """One version below and one above the range get the JVM's reaction: a response or a closed
    connection."""
    highest = max((version for of, version in OF_0_10_2.rows if of == key), default=0)
    for version in (-1, highest + 1):
        payload = struct.pack(">hhih", key, version, 5, -1) + ANY_BODY
        assert is_read(payload) == bool(ask(broker, payload))


@pytest.mark.parametrize("name", NULL_NAMES)
def test_a_name_that_is_null_closes_the_connection(broker: JvmBroker, name: str) -> None:
    """Both brokers close the connection after the same bytes."""
    assert b"" == ask(broker, NULL_NAMES[name])
    assert not is_read(NULL_NAMES[name])


def test_edge_requests_are_answered_alike(broker: JvmBroker, tmp_path: Path) -> None:
    """The requests of tests/broker/edge_requests.py and those of later versions get the JVM's
    response byte for byte, or a closed connection, as for a null name in 0.10.2.2."""
    world = World(tmp_path, api_level="0.10.2", offsets_topic_num_partitions=1)
    for topic in ("edge", OFFSETS_TOPIC):
        world.lead(topic)
    ask(broker, create("edge"))
    ask(broker, COORDINATOR)
    loaded = commit(2, "edge", ("edge", [LATER_COMMITTED]))
    expected = ours(world, loaded)
    until(lambda: expected == ask(broker, loaded[SIZE.size :]), "the coordinator", TWENTY_S)
    frames = {request.name: request.frame for request in EDGE_REQUESTS} | LATER_EDGES
    theirs = {name: ask(broker, frame[SIZE.size :]) for name, frame in frames.items()}
    assert theirs == {name: ours(world, frame) for name, frame in frames.items()}
    assert 5 < list(theirs.values()).count(b"") < len(theirs) / 2


def create(topic: str) -> bytes:
    request = CreateTopicsRequest([NewTopic(topic, 1, 1, [], [])], 10_000)
    return encode_request(request, CORRELATION_ID, "c")[SIZE.size :]


def ours(world: World, frame: bytes) -> bytes:
    """The frame of our response; empty if the connection is closed."""
    client = Client(world)
    try:
        client.send(frame)
    except ProtocolError:
        return b""
    return b"".join(SIZE.pack(len(response)) + response for response in client.frames())


def test_any_flag_but_0_is_true(broker: JvmBroker) -> None:
    """A StopReplica with a delete flag of 2 gets a response."""
    payload = struct.pack(">hhihiibi", 5, 0, 5, -1, 1, 0, 2, 0)
    assert ask(broker, payload)
    assert is_read(payload)


def test_api_versions_returns_the_same_bytes(broker: JvmBroker) -> None:
    """Version 0 gets the list and version 3 error 35, in the JVM's bytes."""
    for version in (0, 3):
        response = ask(broker, struct.pack(">hhih", 18, version, 101, -1))
        assert encode_response(api_versions(OF_0_10_2, version), 101) == response
