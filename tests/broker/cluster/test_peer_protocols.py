"""A broker says which registered brokers cannot read its protocol, or it theirs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from kafka08.broker.cluster.peer_protocols import log_misfits, misfits
from kafka08.errors import SessionLost
from kafka08.levels import LEVELS, Level
from kafka08.protocol_version import parse_protocol_version
from kafka08.zk.nodes import BrokerRegistration
from tests.in_turn import in_turn


def registered(**versions: int) -> Mapping[int, BrokerRegistration]:
    return {int(i[1:]): BrokerRegistration("h", 9092, version=v) for i, v in versions.items()}


def says(level: str, protocol: str, **versions: int) -> str:
    known = Level.named(level)
    spoken = parse_protocol_version("k", protocol, known)
    return "\n".join(misfits(known, spoken, registered(**versions)))


@in_turn("level", ["0.9.0", "0.10.2", "0.11.0"])
def test_brokers_of_0_8_need_pins(level: str) -> None:
    """A broker that speaks its own protocol to them names them and the keys; one with the pins
    says nothing."""
    found = says(level, level, b1=1, b2=1, b3=2)
    assert "brokers 1, 2 are of 0.8" in found
    assert "inter.broker.protocol.version=0.8.2" in found
    assert ("log.message.format.version=0.8.2" in found) is (level != "0.9.0")
    assert says(level, "0.8.2", b1=1, b2=1, b3=2) == ""


@in_turn("level", ["0.8.2", "0.9.0"])
def test_an_older_broker_beside_later_ones_needs_a_level(level: str) -> None:
    """Those that register as 0.9 may have the pins; higher registrations have not."""
    found = says(level, level, b7=4)
    assert f"broker 7 is of 0.10 or later, whose protocol this broker of api.level={level}" in found
    assert "Set a higher api.level" in found
    assert says(level, "0.8.2", b7=2) == ""


@in_turn("level", LEVELS)
def test_equals_understand_each_other(level: str) -> None:
    """A cluster of one release has nothing to say."""
    own = {"0.8.2": 1, "0.9.0": 2}.get(level, 4)
    assert says(level, level, b1=own, b2=own) == ""


class Store:
    def __init__(self, found: Mapping[int, BrokerRegistration] | Exception) -> None:
        self._found = found

    def registrations(self) -> Any:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


def test_it_is_a_warning_of_the_start(caplog: pytest.LogCaptureFixture) -> None:
    """It ends no start, nor does a session that ended meanwhile."""
    spoken = parse_protocol_version("k", "0.10.2", Level.V0_10_2)
    for found in (SessionLost("gone"), registered(b1=1)):
        assert caplog.records == []
        log_misfits(5, Level.V0_10_2, spoken, Store(found))  # type: ignore[arg-type]
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "[Kafka Server 5], broker 1 is of 0.8 and cannot read" in record.getMessage()
