"""InterBroker: request versions between brokers for an `inter.broker.protocol.version`.

Source: ReplicaFetcherThread, ControllerChannelManager, KafkaServer and ZkUtils 0.10.2.2 and
0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kafka08.levels import ByLevel, Level
from kafka08.protocol.controlled_shutdown import ControlledShutdownRequest
from kafka08.protocol.fetch import FetchRequest
from kafka08.protocol.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka08.protocol.offsets import OffsetsRequest
from kafka08.protocol.types import Request
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.protocol_version import ProtocolVersion


@dataclass(frozen=True, slots=True)
class InterBroker:
    """The requests between brokers from a protocol version on: the version of each request, and of
    the registration in ZooKeeper."""

    since: ProtocolVersion
    registration: int
    fetch: int
    list_offsets: int
    update_metadata: int
    controlled_shutdown: int
    asks_for_epochs: bool = False
    """Whether followers send OffsetForLeaderEpoch."""

    @property
    def versions(self) -> Mapping[type[Request], int]:
        """The version of each request that depends on the protocol."""
        return {
            **self.of_follower,
            UpdateMetadataRequest: self.update_metadata,
            ControlledShutdownRequest: self.controlled_shutdown,
        }

    @property
    def of_follower(self) -> Mapping[type[Request], int]:
        """The version of each request to a leader."""
        sent: dict[type[Request], int] = {
            FetchRequest: self.fetch,
            OffsetsRequest: self.list_offsets,
        }
        if self.asks_for_epochs:
            sent[OffsetForLeaderEpochRequest] = 0
        return sent


_INTER_BROKER: Final = (
    InterBroker(ProtocolVersion.V0_8_0, 1, 0, 0, 0, 0),
    InterBroker(ProtocolVersion.V0_9_0, 2, 1, 0, 1, 1),
    InterBroker(ProtocolVersion.V0_10_0_IV0, 2, 2, 0, 1, 1),
    InterBroker(ProtocolVersion.V0_10_0_IV1, 4, 2, 0, 2, 1),
    InterBroker(ProtocolVersion.V0_10_1_IV1, 4, 3, 0, 2, 1),
    InterBroker(ProtocolVersion.V0_10_1_IV2, 4, 3, 1, 2, 1),
    InterBroker(ProtocolVersion.V0_10_2_IV0, 4, 3, 1, 3, 1),
    InterBroker(ProtocolVersion.V0_11_0_IV0, 4, 4, 1, 3, 1),
    InterBroker(ProtocolVersion.V0_11_0_IV1, 4, 5, 1, 3, 1),
    InterBroker(ProtocolVersion.V0_11_0_IV2, 4, 5, 1, 3, 1, asks_for_epochs=True),
)
LEAST_REGISTRATION: Final = ByLevel({Level.V0_8_2: 1, Level.V0_9_0: 2})
"""The registration version of a level, independent of inter.broker.protocol.version."""


def inter_broker(version: ProtocolVersion) -> InterBroker:
    """The row of the highest version that is not above `version`."""
    return next(row for row in reversed(_INTER_BROKER) if row.since <= version)


def readable_by(served: VersionRanges) -> ProtocolVersion | None:
    """The highest version whose requests a broker reads that serves these; None without one."""
    highest = max(ProtocolVersion)
    for row in reversed(_INTER_BROKER):
        if not unserved(served, row.versions):
            return highest
        if row.since:
            highest = ProtocolVersion(row.since - 1)
    return None


def unserved(served: VersionRanges, sent: Mapping[type[Request], int]) -> dict[type[Request], int]:
    """Those of `sent`, request → version, that a broker with these versions does not serve."""
    return {
        request: version for request, version in sent.items() if not served.serves(request, version)
    }
