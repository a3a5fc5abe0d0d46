"""A broker says which registered brokers cannot read its protocol, or it theirs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from kafka08.broker.cluster.inter_broker import inter_broker, readable_by
from kafka08.broker.cluster.peer_protocols import (
    LOSSES,
    SILENCE_S,
    UnreadRequests,
    log_misfits,
    misfits,
    unread,
)
from kafka08.errors import ConnectionFailed, RequestTimeout, SessionLost
from kafka08.levels import LEVELS, Level
from kafka08.network.connection import Connection
from kafka08.protocol.types import Request
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.protocol.write_txn_markers import WriteTxnMarkersRequest
from kafka08.protocol_version import LATEST, ProtocolVersion, parse_protocol_version
from kafka08.structs import Broker
from kafka08.zk.nodes import BrokerRegistration
from tests.in_turn import in_turn
from tests.mock_clock import MockClock


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


PEER = Broker(7, "h", 9092)


def sent_by(level: Level) -> Mapping[type[Request], int]:
    """What a follower of that level sends."""
    return inter_broker(LATEST[level]).of_follower


def unread_by(peer: Level, level: Level) -> str | None:
    return unread(PEER, VersionRanges(level=peer), sent_by(level), LATEST[level])


def test_a_peer_of_an_earlier_level_is_named_with_the_cure() -> None:
    """The requests that it does not serve, and the keys with which it can read this broker."""
    assert unread_by(Level.V0_10_2, Level.V0_11_0) == (
        "broker 7 at h:9092 closes connections on Fetch 5 and OffsetForLeaderEpoch 0, which it "
        "does not serve: it is of an earlier release. To cure it, set "
        "inter.broker.protocol.version=0.10.2 and log.message.format.version=0.10.2 in this "
        "broker's server.properties, and restart it; or raise the level of broker 7"
    )
    found = unread_by(Level.V0_8_2, Level.V0_9_0)
    assert found is not None
    assert "set inter.broker.protocol.version=0.8.2 in this" in found


def test_markers_have_no_earlier_version() -> None:
    """No key of this broker makes a peer of 0.10 read them."""
    sent: Mapping[type[Request], int] = {WriteTxnMarkersRequest: 0}
    served = VersionRanges(level=Level.V0_10_2)
    found = unread(PEER, served, sent, ProtocolVersion.V0_11_0_IV2)
    assert found is not None
    assert found.endswith("of an earlier release. To cure it, raise the level of broker 7")


@in_turn(("level", "peer"), [(level, peer) for level in Level for peer in Level if level <= peer])
def test_a_peer_of_the_same_level_or_a_later_one_reads_all(level: Level, peer: Level) -> None:
    """It is not named, and its level is the newest that it reads."""
    assert unread_by(peer, level) is None
    assert readable_by(VersionRanges(level=level)) == LATEST[level]


class Peer:
    """A runtime with a mock clock, and how often a peer was asked what it serves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, level: Level) -> None:
        self.clock = MockClock()
        self.asked = 0
        monkeypatch.setattr(Connection, "open", self._count)
        monkeypatch.setattr(Connection, "versions", VersionRanges(level=level))
        runtime: Any = self.clock
        self._unread = UnreadRequests(runtime, PEER, ProtocolVersion.V0_11_0_IV2)

    def _count(self) -> None:
        self.asked += 1

    def answer(self) -> None:
        self._unread.losses = 0

    def lose(self, error: Exception | None = None) -> str | None:
        error = error or ConnectionFailed("lost the connection to h:9092")
        return self._unread.explain(error, sent_by(Level.V0_11_0))


def test_a_peer_is_asked_after_some_losses_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that restarts loses a connection or two, or is late: that says nothing of its level."""
    peer = Peer(monkeypatch, Level.V0_10_2)
    for _ in range(3):
        assert [None] * (LOSSES - 1) == [peer.lose() for _ in range(LOSSES - 1)]
        peer.answer()
    assert [None] * LOSSES == [peer.lose(RequestTimeout("late")) for _ in range(LOSSES)]
    assert peer.asked == 0


def test_a_peer_is_named_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four losses a second would fill a log, and each question is a connection."""
    peer = Peer(monkeypatch, Level.V0_10_2)
    for count in (1, 2):
        said = [peer.lose() for _ in range(LOSSES + 20)]
        assert (count, 1) == (peer.asked, len([text for text in said if text]))
        peer.clock.advance(SILENCE_S)


def test_a_peer_that_serves_all_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It closes connections for another reason; it is asked again later all the same."""
    peer = Peer(monkeypatch, Level.V0_11_0)
    assert [None] * 20 == [peer.lose() for _ in range(20)]
    assert peer.asked == 1
