"""Dispatcher: every API of the level has a handler, and a fast path gets only its own versions."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kafka08.broker import dispatcher
from kafka08.broker.dispatcher import handlers_at
from kafka08.broker.fallback import FALL_BACK, Fallback
from kafka08.broker.fast_fetch import FastFetch
from kafka08.levels import Level
from kafka08.protocol.apis import APIS
from kafka08.protocol.codec import encode_request
from kafka08.protocol.fetch import FetchRequest
from kafka08.protocol.frame import SIZE
from kafka08.protocol.metadata import MetadataRequest
from tests.broker.world import Client, World


@pytest.mark.parametrize("level", Level)
def test_every_api_of_the_level_has_a_handler(level: Level) -> None:
    """Every request that can be decoded has a handler."""
    served = {api.request for api in APIS if any(row.exists_at(level) for row in api.versions)}
    assert set() == served - handlers_at(level).keys()


def test_a_fast_path_sees_its_own_version_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetch 0 goes to the fast path. Fetch 1, which 0.8.2.2 reads as 0, goes to the handler."""
    seen: list[bytes] = []

    def fetch(self: FastFetch, payload: memoryview, _link: object) -> Fallback:
        seen.append(bytes(payload[2:4]))
        return FALL_BACK

    monkeypatch.setattr(FastFetch, "__call__", fetch)
    client = Client(World(tmp_path))
    for version in (1, 0):
        payload = bytearray(encode_request(FetchRequest(-1, 0, 0, []), 7, "c")[SIZE.size :])
        payload[2:4] = struct.pack(">h", version)
        client.send(SIZE.pack(len(payload)) + payload)
    assert [struct.pack(">h", 0)] == seen
    assert [struct.pack(">ii", 7, 0)] * 2 == client.frames()


@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_10_2])
def test_a_metadata_response_is_encoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: Level
) -> None:
    """What the cache keeps is sent: that of 10,000 topics takes 10 ms. The next request gets the
    same from the cache."""

    def encode_response(*_: object) -> bytes:
        raise AssertionError("encoded again")

    world = World(tmp_path, api_level=str(level))
    world.lead("t", 3)
    monkeypatch.setattr(dispatcher, "encode_response", encode_response)
    client = Client(world)
    for _ in range(2):
        client.send(encode_request(MetadataRequest(["t"]), 7, "test"))
    first, second = client.frames()
    assert bytes(first) == bytes(second)
