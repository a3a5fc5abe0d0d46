"""Broker registrations of each level, byte for byte as live brokers wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.levels import Level
from kafka08.zk import nodes

DATA = Path(__file__).parent.parent / "data"
CAPTURES = {
    "controller-0.8.2.2.json": (Level.V0_8_2, 1),
    "controller-0.9.0.1-pinned.json": (Level.V0_9_0, 2),
    "controller-0.9.0.1.json": (Level.V0_9_0, 2),
    "controller-0.10.2.2-pinned.json": (Level.V0_10_2, 2),
    "controller-0.10.2.2.json": (Level.V0_10_2, 4),
}


def registrations(value: object) -> Iterator[str]:
    """Every registration in a capture."""
    if isinstance(value, dict):
        for path, inner in value.items():
            if path == "/brokers/ids/1":
                yield inner if isinstance(inner, str) else inner["data"]
            else:
                yield from registrations(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from registrations(inner)


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_level_writes_its_releases_registration(capture: str) -> None:
    """A registration that is read and written again keeps every byte, and the order of its keys is
    the release's."""
    level, version = CAPTURES[capture]
    captured = set(registrations(json.loads((DATA / capture).read_text())))
    assert captured
    for text in captured:
        registration = nodes.decode_broker(text)
        assert version == registration.version
        assert text == nodes.encode_broker(registration, level)


def test_a_rack_is_written_where_0_10_2_writes_it() -> None:
    """The rack has the place that a live 0.11.0.3, pinned to 0.10.2, gives it."""
    text = (
        '{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        '"endpoints":["PLAINTEXT://127.0.0.1:23916"],"rack":"rack-6","jmx_port":-1,'
        '"host":"127.0.0.1","timestamp":"1795312616637","port":23916,"version":4}'
    )
    assert text == nodes.encode_broker(nodes.decode_broker(text), Level.V0_10_2)
