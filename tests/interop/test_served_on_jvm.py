"""The table of level 0.10.2 against a live broker of 0.10.2.2: what it reads, what it closes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.protocol.codec import decode_request, encode_response
from kafka08.protocol.frame import SIZE
from kafka08.protocol.served import SERVED, api_versions
from tests.interop.jvm import POM_0_10_2, JvmBroker, JvmZooKeeper, require_jvm

OF_0_10_2 = SERVED[Level.V0_10_2]
ANY_BODY = bytes(60)
"""Zeros are a body of every layout."""
NULL = b"\xff\xff"
NULL_NAMES = {
    "Metadata 0": struct.pack(">hhihi", 3, 0, 5, -1, 1) + NULL,
    "Fetch 0": struct.pack(">hhihiiii", 1, 0, 5, -1, -1, 0, 0, 1) + NULL + bytes(4),
    "OffsetCommit 0": struct.pack(">hhih", 8, 0, 5, -1) + NULL + bytes(4),
    "OffsetCommit 1": struct.pack(">hhihhsi", 8, 1, 5, -1, 1, b"g", -1) + NULL + bytes(4),
    "GroupCoordinator 0": struct.pack(">hhih", 10, 0, 5, -1) + NULL,
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JvmBroker]:
    require_jvm()
    directory = tmp_path_factory.mktemp("kafka-0.10.2.2")
    with (
        JvmZooKeeper(directory) as zookeeper,
        JvmBroker(directory, 1, zookeeper.connect_string, pom=POM_0_10_2) as broker,
    ):
        yield broker


def ask(broker: JvmBroker, payload: bytes) -> bytes:
    """The frame of the answer; empty if the broker closed the connection."""
    with socket.create_connection(("127.0.0.1", broker.port), timeout=10) as connection:
        connection.sendall(SIZE.pack(len(payload)) + payload)
        try:
            return connection.recv(1 << 16)
        except ConnectionResetError:
            return b""


def is_read(payload: bytes) -> bool:
    try:
        decode_request(payload, OF_0_10_2)
    except ProtocolError:
        return False
    return True


@pytest.mark.parametrize("key", range(-1, 24))
def test_versions_beside_the_range_are_read_or_closed_as_there(broker: JvmBroker, key: int) -> None:
    """One below and one above what is served: answered where we read it, closed where we do not."""
    highest = max((version for of, version in OF_0_10_2.rows if of == key), default=0)
    for version in (-1, highest + 1):
        payload = struct.pack(">hhih", key, version, 5, -1) + ANY_BODY
        assert is_read(payload) == bool(ask(broker, payload))


@pytest.mark.parametrize("name", NULL_NAMES)
def test_a_name_that_is_null_closes_the_connection(broker: JvmBroker, name: str) -> None:
    """Ours refuses the same bytes."""
    assert b"" == ask(broker, NULL_NAMES[name])
    assert not is_read(NULL_NAMES[name])


def test_any_flag_but_0_is_true(broker: JvmBroker) -> None:
    """StopReplica with a flag of 2 is answered."""
    payload = struct.pack(">hhihiibi", 5, 0, 5, -1, 1, 0, 2, 0)
    assert ask(broker, payload)
    assert is_read(payload)


def test_api_versions_answers_the_same_bytes(broker: JvmBroker) -> None:
    """The list for version 0, error 35 for version 3."""
    for version in (0, 3):
        answer = ask(broker, struct.pack(">hhih", 18, version, 101, -1))
        assert encode_response(api_versions(OF_0_10_2, version), 101) == answer
