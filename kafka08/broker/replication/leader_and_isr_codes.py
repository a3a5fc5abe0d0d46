"""Error codes of a LeaderAndIsr response for refused states, by level.

Source: ReplicaManager.becomeLeaderOrFollower 0.8.2.2, 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka08.errors import StaleControllerEpoch, StaleLeaderEpoch, UnknownTopicOrPartition
from kafka08.levels import ByLevel, Level


class LeaderAndIsrCodes(NamedTuple):
    """The codes of one release.

    stale        the leader epoch is not above the known one
    no_replica   this broker is not among the replicas; None: the response leaves the partition out
    """

    stale: int
    no_replica: int | None


LEADER_AND_ISR_CODES: Final = ByLevel(
    {
        Level.V0_8_2: LeaderAndIsrCodes(StaleLeaderEpoch.code, None),
        Level.V0_9_0: LeaderAndIsrCodes(StaleLeaderEpoch.code, UnknownTopicOrPartition.code),
        Level.V0_10_2: LeaderAndIsrCodes(StaleControllerEpoch.code, UnknownTopicOrPartition.code),
    }
)
