"""This broker gives the responses that a real 0.8.2.2 broker gave, request by request.

The exchanges of tests/data/api-0.8.2.2.json are sent in order to one broker with the topics of the
capture. Responses are compared as decoded messages, without the order of topics and partitions,
which is a hash map's in the JVM; compressed sets by their messages."""

from __future__ import annotations

import json
import os
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import ProtocolError
from kafka08.protocol import message_set
from kafka08.protocol.codec import decode_request, decode_response, encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.structs import OFFSETS_TOPIC
from tests.broker.world import Client, World

EXCHANGES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data" / "api-0.8.2.2.json").read_text()
)
CAPTURE_TIME = 1_795_233_112.0
"""When the capture asked for offsets by time."""
CLOSED = "connection closed by broker"

DEPARTURES = {
    "offset-fetch-v1-after-big-metadata": "a refused offset does not reach the cache here",
    "offset-fetch-v2-to-0.8.2.2": "as above",
}
"""Exchanges in which we answer differently on purpose (docs/compatibility.md)."""

SUFFIX = "-33105"
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "ref-plain": (1, {}),
    "ref-multi": (3, {}),
    "ref-gzip": (1, {}),
    "ref-snappy": (1, {}),
    "ref-lz4": (1, {}),
    "ref-acks": (1, {}),
    "ref-small": (1, {"max.message.bytes": "200"}),
    "ref-isr": (1, {"min.insync.replicas": "2"}),
    "ref-idx": (1, {"segment.bytes": "20000"}),
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, num_partitions=4)
    world.runtime.now = CAPTURE_TIME
    for name, (partitions, config) in TOPICS.items():
        world.lead(name + SUFFIX, partitions, config)
    world.lead(OFFSETS_TOPIC, 50)
    return world


def test_responses_are_those_of_a_real_broker(world: World) -> None:
    """One broker gets all requests. A failure lists every difference."""
    differences = []
    for exchange in EXCHANGES:
        name = exchange["name"]
        if name == "pipelining-order":
            assert [1, 2, 3] == pipelined(world)
        if "request_hex" not in exchange or name in DEPARTURES:
            continue
        got, expected = replay(world, exchange), wanted(exchange)
        if got != expected:
            differences.append(f"{name}\n  expected {expected}\n  got      {got}")
        after(world, name, exchange)
    assert not differences, "\n".join(differences)


def replay(world: World, exchange: dict[str, Any]) -> Any:
    """The outcome here: the decoded response, CLOSED, or None for no response."""
    client = Client(world)
    try:
        client.send(bytes.fromhex(exchange["request_hex"]))
    except ProtocolError:
        return CLOSED
    if client.closed:
        return CLOSED
    if client.parked:
        world.runtime.advance(5)
    frames = client.frames()
    assert len(frames) <= 1
    return plain(exchange, frames[0]) if frames else None


def wanted(exchange: dict[str, Any]) -> Any:
    if exchange.get("outcome") == CLOSED:
        return CLOSED
    response = exchange.get("response_hex")
    return plain(exchange, bytes.fromhex(response)[4:]) if response else None


def plain(exchange: dict[str, Any], frame: bytes) -> Any:
    """A response as nested dictionaries, with sorted lists and unpacked sets."""
    request = bytes.fromhex(exchange["request_hex"])
    _, asked = decode_request(request[4:])
    correlation_id, response = decode_response(type(asked), frame, asked.version)
    return correlation_id, simplified(response)


def simplified(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: simplified(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list) and value and is_dataclass(value[0]):
        return sorted((simplified(part) for part in value), key=str)
    return contents(value) if isinstance(value, memoryview) else value


def contents(data: memoryview) -> Any:
    """The messages of a set; its bytes if it has none."""
    try:
        messages = [(m.offset, m.key, m.value) for m in message_set.decode(data)]
    except ValueError:
        return bytes(data)
    return messages or bytes(data)


def pipelined(world: World) -> list[int]:
    """Three requests are sent back to back, the first a long poll. Returns the correlation ids in
    the order of the responses."""
    plain_topic = "ref-plain" + SUFFIX
    pipe = message_set.encode([(None, b"pipe")])
    long_poll = FetchPartition(0, world.partition(plain_topic).log.log_end_offset, 65536)
    requests = [
        FetchRequest(-1, 700, 1, [FetchTopic(plain_topic, [long_poll])]),
        MetadataRequest([plain_topic]),
        ProduceRequest(1, 1000, [ProduceTopic(plain_topic, [ProducePartition(0, pipe)])]),
    ]
    client = Client(world)
    client.send(b"".join(encode_request(r, i, "ref") for i, r in enumerate(requests, 1)))
    assert [] == client.frames()
    world.runtime.advance(0.701)
    return [int.from_bytes(frame[:4], "big") for frame in client.frames()]


def after(world: World, name: str, exchange: dict[str, Any]) -> None:
    """Does what happened besides in the capture: repeats a request, acts as the controller, or lets
    time pass."""
    if name == "metadata-auto-create":
        topic = "ref-auto" + SUFFIX
        world.lead(topic, world.store.created_partitions(topic))
    if name == "idx":
        for _ in range(59):
            replay(world, exchange)
        for path in world.log_manager.directories[0].glob("ref-idx*/*.log"):
            os.utime(path, (CAPTURE_TIME - 60, CAPTURE_TIME - 60))
        world.runtime.now = CAPTURE_TIME
