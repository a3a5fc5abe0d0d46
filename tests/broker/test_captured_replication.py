"""The leader gives the responses of a real 0.8.2.2 leader while its follower lags, catches up and
lags again.

The exchanges are those under `client_side` of tests/data/controller-0.8.2.2.json, in order, with
the script's broker 2 as the follower. They show when the HW rises, what consumers see, and when
acks=-1 completes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka08.protocol.codec import decode_request, decode_response
from tests.broker.world import Client, World

CAPTURE: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "data" / "controller-0.8.2.2.json").read_text()
)
EXCHANGES: list[dict[str, Any]] = CAPTURE["client_side"]
BROKER_LEVEL = "broker-level-min.insync.replicas=2-acks-minus1"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, min_insync_replicas=2)
    world.lead("fk-a", 2, isr=(1, 2), replicas=(1, 2))
    world.lead("mi")
    return world


def response_of(exchange: dict[str, Any], frame: bytes) -> Any:
    _, request = decode_request(bytes.fromhex(exchange["request_hex"])[4:])
    return decode_response(type(request), frame, request.version)


def test_the_leader_answers_as_the_real_one_did(world: World) -> None:
    """Each response equals the captured one, as a message and at about the same time."""
    for exchange in EXCHANGES:
        client = Client(world)
        client.send(bytes.fromhex(exchange["request_hex"]))
        frames = client.frames()
        waited = exchange["ms"] > 200
        assert waited == (not frames), exchange["name"]
        if waited:
            world.runtime.advance(exchange["ms"] / 1000)
            frames = client.frames()
        expected = response_of(exchange, bytes.fromhex(exchange["response_hex"])[4:])
        assert [expected] == [response_of(exchange, f) for f in frames], exchange["name"]


def test_the_broker_level_minimum_is_not_applied(world: World) -> None:
    """0.8: only a topic's own min.insync.replicas counts, as the end of the capture shows."""
    assert BROKER_LEVEL == EXCHANGES[-1]["name"]
    assert 2 == world.config.min_insync_replicas
    assert 1 == world.partition("mi").min_in_sync()
