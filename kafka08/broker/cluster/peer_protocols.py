"""The protocol that a broker registers with, and the brokers that cannot read it, or it theirs.

A broker sends requests of its own inter.broker.protocol.version, whatever the others are: 0.9 and
later close the connection of an unknown version, 0.8 one that it cannot decode. Both then go on for
ever, a line of each log at a time. Their registrations show it, except among releases from 0.10 on,
which all register with one version. So UnreadRequests asks a peer that closes connections.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final

from kafka08.broker.cluster.inter_broker import (
    LEAST_REGISTRATION,
    inter_broker,
    readable_by,
    unserved,
)
from kafka08.errors import ClientError, Closed, ConnectionFailed, ProtocolError, ZooKeeperError
from kafka08.levels import Level
from kafka08.listing import brokers_are
from kafka08.network.connection import Connection
from kafka08.protocol.api import DECLARED
from kafka08.protocol.types import Request
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.protocol_version import ProtocolVersion
from kafka08.runtime import Runtime
from kafka08.structs import Broker, Endpoint, host_port
from kafka08.zk.nodes import Advertised, BrokerRegistration
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

OF_0_8: Final = 1
AMBIGUOUS: Final = 2
"""The version of a registration of 0.9, and of a later broker that speaks 0.9's protocol, or
0.8's."""
LOSSES: Final = 3
"""Connections that a peer closes in a row before it is asked what it serves: one that stops or
starts closes some, too."""
SILENCE_S: Final = 30.0
"""Pause between two questions."""
ASK_TIMEOUT_MS: Final = 2000


def advertised(
    level: Level, version: ProtocolVersion, endpoints: tuple[Endpoint, ...], rack: str | None
) -> Advertised:
    """The fields of a broker's registration besides its address."""
    registration = max(LEAST_REGISTRATION[level], inter_broker(version).registration)
    return Advertised(level, registration, endpoints, rack)


def misfits(
    level: Level, version: ProtocolVersion, registrations: Mapping[int, BrokerRegistration]
) -> Iterator[str]:
    """A sentence, with a cure, for the brokers that cannot read what a broker of this level and
    inter.broker.protocol.version sends them, and for those whose requests it cannot read."""
    old = [i for i, found in registrations.items() if found.version <= OF_0_8]
    if old and inter_broker(version).fetch:
        keys = ["inter.broker.protocol.version=0.8.2"]
        if level >= Level.V0_10_2:
            keys.append("log.message.format.version=0.8.2")
        yield (
            f"{brokers_are(old)} of 0.8 and cannot read the protocol of {version}, which this "
            f"broker speaks: no replica here gets in sync with them. Set {' and '.join(keys)} in "
            "this broker's server.properties, and restart it"
        )
    new = [i for i, found in registrations.items() if found.version > AMBIGUOUS]
    if new and level < Level.V0_10_2:
        yield (
            f"{brokers_are(new)} of 0.10 or later, whose protocol this broker of api.level={level} "
            "cannot read: no replica there gets in sync with it. Set a higher api.level in this "
            f"broker's server.properties, or inter.broker.protocol.version={level} and "
            f"log.message.format.version={level} in theirs, and restart it, or them"
        )


def log_misfits(
    broker_id: int, level: Level, version: ProtocolVersion, store: ClusterStore
) -> None:
    """Warn of the registered brokers that cannot read this one's protocol, or it theirs.
    Switches."""
    try:
        registrations = store.registrations()
    except (ZooKeeperError, Closed):
        return  # another start says it, and so does the doctor
    for says in misfits(level, version, registrations):
        logger.warning("[Kafka Server %d], %s", broker_id, says)


class UnreadRequests:
    """Finds out whether a peer closes connections because it does not serve the requests that it
    gets. One for each connection to a peer.

    version   the inter.broker.protocol.version of this broker
    losses    connections that were lost since the last response, after which the owner sets it to 0
    """

    def __init__(self, runtime: Runtime, peer: Broker, version: ProtocolVersion) -> None:
        self._runtime = runtime
        self._peer = peer
        self._version = version
        self._silent_until = 0.0
        self.losses = 0

    def explain(self, error: Exception, sent: Mapping[type[Request], int]) -> str | None:
        """After a request of `sent`, request → version, had no response: which of them the peer
        does not serve, and the cure. None where that is not the reason, before it has happened
        LOSSES times, and for SILENCE_S after each question. Switches."""
        if not isinstance(error, ConnectionFailed):
            return None
        self.losses += 1
        now = self._runtime.monotonic()
        if self.losses < LOSSES or now < self._silent_until:
            return None
        self._silent_until = now + SILENCE_S
        connection = Connection(
            self._peer.host,
            self._peer.port,
            timeout_ms=ASK_TIMEOUT_MS,
            connect_timeout_ms=ASK_TIMEOUT_MS,
            negotiates=True,
            accepts_0_8=True,
            runtime=self._runtime,
        )
        try:
            connection.open()
            return unread(self._peer, connection.versions, sent, self._version)
        except (ClientError, ProtocolError):
            return None
        finally:
            connection.close()


def unread(
    peer: Broker,
    served: VersionRanges,
    sent: Mapping[type[Request], int],
    version: ProtocolVersion,
) -> str | None:
    """A sentence, with a cure, for a peer that does not serve some of these requests; None if it
    does."""
    beyond = unserved(served, sent)
    if not beyond:
        return None
    names = " and ".join(f"{DECLARED[api].name} {number}" for api, number in beyond.items())
    cure = f"raise the level of broker {peer.id}"
    pin = readable_by(served)
    if pin is not None and beyond.keys() <= inter_broker(version).versions.keys():
        keys = [f"inter.broker.protocol.version={pin.release}"]
        if version.magic:
            keys.append(f"log.message.format.version={pin.release}")
        places = "in this broker's server.properties, and restart it"
        cure = f"set {' and '.join(keys)} {places}; or {cure}"
    return (
        f"broker {peer.id} at {host_port(peer.host, peer.port)} closes connections on {names}, "
        f"which it does not serve: it is of an earlier release. To cure it, {cure}"
    )
