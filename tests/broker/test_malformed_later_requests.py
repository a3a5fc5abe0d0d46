"""At levels 0.9.0 and 0.10.2 too, any frame gets a response or closes its connection: captured
requests of 0.10.2.2, one of each key, version and length, cut and changed at each byte."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka08.protocol.metadata import MetadataRequest
from tests.broker.test_malformed_requests import deliver
from tests.broker.world import World

pytestmark = pytest.mark.usefixtures("no_bug")

DATA = Path(__file__).parent.parent / "data"
LONGEST = 200
KEY_AND_VERSION = slice(0, 4)


def captured() -> list[bytes]:
    """One request of each key, version and length."""
    found = {}
    for name in ("admin", "data", "groups"):
        for exchange in json.loads((DATA / f"0.10-api-{name}.json").read_text()):
            payload = bytes.fromhex(exchange["request_hex"])[4:]
            if len(payload) <= LONGEST:
                found[payload[KEY_AND_VERSION], len(payload)] = payload
    return sorted(found.values())


PAYLOADS = captured()
KEYS = sorted({payload[1] for payload in PAYLOADS})


@pytest.fixture(scope="module", params=["0.9.0", "0.10.2"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("logs"), api_level=request.param)
    for topic in ("b-plain", "b-gzip", "t"):
        world.lead(topic)
    world.lead("__consumer_offsets", 50)
    return world


def still_serves(world: World) -> bool:
    return len(world.client.call(MetadataRequest(["t"])).topics) == 1


@pytest.mark.parametrize("key", KEYS)
def test_requests_cut_at_any_byte(world: World, key: int) -> None:
    """A frame that ends too early closes its connection alone."""
    for payload in PAYLOADS:
        if payload[1] == key:
            for end in range(1, len(payload)):
                deliver(world, payload[:end])
    assert still_serves(world)


@pytest.mark.parametrize("key", KEYS)
def test_requests_with_any_byte_changed(world: World, key: int) -> None:
    """Wrong keys, versions, counts, lengths and generations give a response or close the
    connection."""
    for payload in PAYLOADS:
        if payload[1] == key:
            for position in range(len(payload)):
                for flip in (0x80, 0x01):
                    changed = bytearray(payload)
                    changed[position] ^= flip
                    deliver(world, bytes(changed))
    assert still_serves(world)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(key=st.integers(-2, 22), version=st.integers(-1, 4), rest=st.binary(max_size=60))
def test_any_garbage_behind_a_header(world: World, key: int, version: int, rest: bytes) -> None:
    """The broker survives random bodies for every key."""
    deliver(world, struct.pack(">hhih", key, version, 7, 0) + rest)
    assert still_serves(world)


def test_every_key_is_among_them() -> None:
    """The captured requests have every key that a client may send."""
    assert {*range(4), *range(8, 21)} <= set(KEYS)
