"""A refused request leaves nothing behind: neither in memory nor for the garbage collector.

An exception that is kept holds the frames of its traceback, and with them the request and its
bytes. A cycle through such a frame lives until the collector's next turn, which on a quiet broker
never comes."""

from __future__ import annotations

import gc
import json
import logging
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.protocol.codec import encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.offsets import OffsetsPartition, OffsetsRequest, OffsetsTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.served import SERVED
from kafka08.protocol.types import Request
from tests.broker.world import Client, World
from tests.memory import resident_bytes

EXCHANGES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data" / "api-0.8.2.2.json").read_text()
)
CAPTURED = sorted(
    {bytes.fromhex(exchange["request_hex"]) for exchange in EXCHANGES if "request_hex" in exchange}
)


@pytest.fixture(scope="module", params=list(Level))
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("logs"), api_level=str(request.param))
    world.lead("led")
    world.lead("followed", leader=2, isr=(1, 2), replicas=(1, 2))
    return world


@pytest.fixture(autouse=True)
def no_collector(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The collector runs only when it is called. No line is kept."""
    caplog.set_level(logging.CRITICAL + 1)
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


def refused(topic: str, version: int, size: int = 50) -> Iterator[Request]:
    """Requests that are refused for a partition of `topic`."""
    one_set = ProduceTopic(topic, [ProducePartition(0, bytes(size))])
    yield ProduceRequest(1, 100, [one_set], version=version)
    for replica_id in (-1, 7):
        wanted = FetchTopic(topic, [FetchPartition(0, 99, 100)])
        yield FetchRequest(replica_id, 0, 1, [wanted], version=version)
    asked = OffsetsTopic(topic, [OffsetsPartition(0, 123, 1)])
    yield OffsetsRequest(-1, [asked], version=version)


def deliver(world: World, frame: bytes) -> None:
    client = Client(world)
    try:
        client.send(frame)
    except ProtocolError:
        pass
    client.close()


def frames_of(world: World) -> Iterator[bytes]:
    for topic in ("unknown", "followed", "led"):
        for version in range(4):
            for request in refused(topic, version):
                if SERVED[world.config.level].rows.keys() & {(KEYS[type(request)], version)}:
                    yield encode_request(request, 1, "c")
    yield from CAPTURED


KEYS = {ProduceRequest: 0, FetchRequest: 1, OffsetsRequest: 2}


def test_no_request_leaves_a_cycle(world: World) -> None:
    """Whole or cut off, answered or refused: after each request of the fixtures the collector
    finds nothing. (46 to 95 objects, the request among them, for each refused partition.)"""
    frames = [
        sent
        for frame in frames_of(world)
        for sent in (frame, struct.pack(">i", len(frame) - 7) + frame[4:-3])
    ]
    for frame in frames:
        deliver(world, frame)  # decoders are compiled at their first use
    gc.collect()
    gc.freeze()  # so that a collection looks at the new objects alone
    for frame in frames:
        deliver(world, frame)
        assert 0 == gc.collect(), frame


def test_no_refused_request_keeps_memory(world: World) -> None:
    """A thousand refused requests of each kind, each for another topic and with 20 KB of messages
    where there are any, leave what one leaves. (20 MB of Produce alone.)"""

    def thousand() -> None:
        for number in range(1000):
            for request in refused(f"unknown-{number}", 0, 20_000):
                deliver(world, encode_request(request, 1, "c"))

    thousand()
    before = resident_bytes()
    thousand()
    assert resident_bytes() - before < 2 << 20
