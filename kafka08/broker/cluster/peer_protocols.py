"""The protocol that a broker registers with, and the brokers that cannot read it, or it theirs.

A broker sends requests of its own inter.broker.protocol.version, whatever the others are: 0.9 and
later close the connection of an unknown version, 0.8 one that it cannot decode. Both then go on for
ever, a line of each log at a time. Their registrations show it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final

from kafka08.broker.cluster.inter_broker import LEAST_REGISTRATION, inter_broker
from kafka08.errors import Closed, ZooKeeperError
from kafka08.levels import Level
from kafka08.listing import brokers_are
from kafka08.protocol_version import ProtocolVersion
from kafka08.structs import Endpoint
from kafka08.zk.nodes import Advertised, BrokerRegistration
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

OF_0_8: Final = 1
AMBIGUOUS: Final = 2
"""The version of a registration of 0.9, and of a later broker that speaks 0.9's protocol, or
0.8's."""


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
