"""What tests/broker holds our broker to is what the real one does."""

from __future__ import annotations

import socket
from struct import pack, unpack

from tests.broker.edge_requests import CORRELATION_ID, EDGE_REQUESTS
from tests.interop.jvm import JvmKafka, wait_until


def answer(kafka: JvmKafka, frame: bytes) -> bytes:
    """The payload that the first broker answers; b"" if it closes the connection."""
    with socket.create_connection(("127.0.0.1", kafka.brokers[0].port), timeout=20) as connection:
        connection.sendall(frame)
        answers = connection.makefile("rb")
        size = answers.read(4)
        return answers.read(unpack(">i", size)[0]) if size else b""


def test_requests_without_names_or_partitions(jvm_kafka: JvmKafka) -> None:
    """Answered by 0.8.2.2 with these bytes."""
    jvm_kafka.create_topic("edge")
    head = pack(">i", CORRELATION_ID)
    commits = [request for request in EDGE_REQUESTS if request.name == "one, OffsetCommit v1"]
    coordinator = pack(">hhih", 10, 0, CORRELATION_ID, -1) + pack(">h4s", 4, b"edge")

    def is_loaded() -> bool:
        answer(jvm_kafka, pack(">i", len(coordinator)) + coordinator)
        return all(head + r.answer == answer(jvm_kafka, r.frame) for r in commits)

    wait_until(is_loaded, "the coordinator")
    answers = {request.name: answer(jvm_kafka, request.frame) for request in EDGE_REQUESTS}
    assert {request.name: head + request.answer for request in EDGE_REQUESTS} == answers
