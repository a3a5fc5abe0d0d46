"""A client that sends bad requests without end does not fill the broker's disk with log lines."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest

from kafka08.broker.process.main import LOG_LIMIT_S
from kafka08.embedded import EmbeddedBroker, EmbeddedCluster
from kafka08.log_limit import LINES_MAX

COUNT = 200


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedCluster(brokers=1, level="0.8.2") as cluster:
        cluster.create_topic("t")
        yield cluster.brokers[0]


def frame(key: int, version: int, body: bytes) -> bytes:
    request = struct.pack(">hhih1s", key, version, 1, 1, b"c") + body
    return struct.pack(">i", len(request)) + request


def topic_name(name: bytes) -> bytes:
    return struct.pack(">ih", 1, len(name)) + name


BAD = {
    "an unknown API": frame(99, 0, b""),
    "not the layout": frame(1, 0, b"\xff"),
    "acks of 7": frame(0, 0, struct.pack(">hii", 7, 100, 0)),
    "an unknown partition, acks 0": frame(
        0,
        0,
        struct.pack(">hi", 0, 100) + topic_name(b"no") + struct.pack(">iii", 1, 5, 0),
    ),
    "a fetch far behind the end": frame(
        1,
        0,
        struct.pack(">iii", -1, 0, 0) + topic_name(b"t") + struct.pack(">iiqi", 1, 0, 10**9, 100),
    ),
    "offsets of an unknown partition": frame(
        2, 0, struct.pack(">i", -1) + topic_name(b"no") + struct.pack(">iiqi", 1, 5, -1, 1)
    ),
    "larger than allowed": struct.pack(">i", 2**31 - 1),
}


PLACES = 5
"""Of the code that logs them."""


def test_lines_do_not_grow_with_the_requests(broker: EmbeddedBroker) -> None:
    """There are a few log lines for each interval and kind of error, and at least one of each
    kind."""
    before = broker.process.log_size
    began = time.monotonic()
    for request in BAD.values():
        for _ in range(COUNT):
            with socket.create_connection((broker.host, broker.port)) as connection:
                connection.sendall(request)
                connection.settimeout(10)
                connection.recv(100)
    said = broker.process.logged_since(before, COUNT * len(BAD))
    for words in (
        "invalid request",
        "deprecated",
        "with Ack=0",
        "processing fetch",
        "Offset request",
    ):
        assert words in said
    intervals = int((time.monotonic() - began) / LOG_LIMIT_S) + 2
    assert len(said.splitlines()) <= intervals * (PLACES + 1) * (LINES_MAX + 1)
