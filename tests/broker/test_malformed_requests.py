"""Any frame gets a response or closes its connection, and has no other effect.

Every captured request of 0.8.2.2 is cut at each byte and changed at each byte."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.broker.requests.dispatcher import REQUEST_BYTES_MAX
from kafka08.errors import ProtocolError
from kafka08.protocol.metadata import MetadataRequest
from tests.broker.world import Client, World

pytestmark = pytest.mark.usefixtures("no_bug")

EXCHANGES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data" / "api-0.8.2.2.json").read_text()
)
PAYLOADS = sorted(
    {
        bytes.fromhex(exchange["request_hex"])[4:]
        for exchange in EXCHANGES
        if "request_hex" in exchange and len(exchange["request_hex"]) < 600
    }
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("logs"))
    world.lead("ref-plain-33105")
    world.lead("ref-multi-33105", 3)
    return world


def deliver(world: World, payload: bytes) -> None:
    """Sends one frame on a connection of its own: a response, no response, a wait or
    ProtocolError."""
    client = Client(world)
    try:
        client.send(struct.pack(">i", len(payload)) + payload)
    except ProtocolError:
        client.close()
    if client.parked:
        client.close()


def still_serves(world: World) -> bool:
    return len(world.client.call(MetadataRequest(["ref-plain-33105"])).topics) == 1


def test_requests_cut_at_any_byte(world: World) -> None:
    """A frame that ends too early closes its connection alone."""
    for payload in PAYLOADS:
        for end in range(1, len(payload)):
            deliver(world, payload[:end])
    assert still_serves(world)


def test_requests_with_any_byte_changed(world: World) -> None:
    """Wrong keys, counts, lengths and epochs give a response or close the connection."""
    for payload in PAYLOADS:
        for position in range(len(payload)):
            for flip in (0x80, 0xFF, 0x01):
                changed = bytearray(payload)
                changed[position] ^= flip
                deliver(world, bytes(changed))
    assert still_serves(world)


@settings(max_examples=300, deadline=None)
@given(key=st.integers(-2, 20), version=st.integers(-1, 3), rest=st.binary(max_size=60))
def test_any_garbage_behind_a_header(world: World, key: int, version: int, rest: bytes) -> None:
    """The broker survives random bodies for every key."""
    deliver(world, struct.pack(">hhih", key, version, 7, 0) + rest)
    assert still_serves(world)


@pytest.mark.parametrize("key", range(13))
def test_only_produce_and_the_controller_send_large_requests(world: World, key: int) -> None:
    """Other requests of megabytes would block the hub, so they are refused before they are read.
    For Produce and the controller's requests only socket.request.max.bytes counts."""
    negative = b"\xff"  # every count in it is: what gets so far ends for another reason
    payload = bytearray(key.to_bytes(2, "big") + bytes(2) + negative * REQUEST_BYTES_MAX)
    payload[14] = 0x7F  # the newest epoch that a controller can have, behind header and id
    client = Client(world)
    if key in {0, 4, 5, 6}:
        world.handle(memoryview(payload), client)  # which has it decoded in a thread
        assert client.closed
    else:
        with pytest.raises(ProtocolError, match="larger than"):
            world.handle(memoryview(payload), client)
    assert still_serves(world)
