"""Converts the error of an append to `__consumer_offsets` into the code in the group's response.

A code that a table does not have is unchanged. Source: kafka.server.OffsetManager 0.8.2.2,
kafka.coordinator.GroupMetadataManager 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from typing import Final

from kafka08.errors import (
    ConsumerCoordinatorNotAvailable,
    InvalidCommitOffsetSize,
    InvalidFetchSize,
    MessageSetSizeTooLarge,
    MessageSizeTooLarge,
    NotCoordinatorForConsumer,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderForPartition,
    RebalanceInProgress,
    RequestTimedOut,
    UnknownError,
    UnknownTopicOrPartition,
)
from kafka08.levels import ByLevel, Level

CODES_OF_GROUPS: Final = {
    UnknownTopicOrPartition.code: ConsumerCoordinatorNotAvailable.code,
    NotLeaderForPartition.code: NotCoordinatorForConsumer.code,
}
"""For every level and every kind of record."""

_TOO_LARGE: Final = (MessageSizeTooLarge.code, MessageSetSizeTooLarge.code, InvalidFetchSize.code)
_TOO_FEW: Final = dict.fromkeys(
    (NotEnoughReplicas.code, NotEnoughReplicasAfterAppend.code),
    ConsumerCoordinatorNotAvailable.code,
)
_OFFSETS_0_9: Final = CODES_OF_GROUPS | dict.fromkeys(_TOO_LARGE, InvalidCommitOffsetSize.code)
_GROUP_0_9: Final = (
    CODES_OF_GROUPS
    | dict.fromkeys(_TOO_LARGE, UnknownError.code)
    | {RequestTimedOut.code: RebalanceInProgress.code}
)

_CODES_OF_OFFSETS: Final[ByLevel[dict[int, int]]] = ByLevel(
    {
        Level.V0_8_2: CODES_OF_GROUPS,
        Level.V0_9_0: _OFFSETS_0_9,
        Level.V0_10_2: _OFFSETS_0_9 | _TOO_FEW,
    }
)
_CODES_OF_GROUP_RECORDS: Final[ByLevel[dict[int, int]]] = ByLevel(
    {
        Level.V0_8_2: CODES_OF_GROUPS,
        Level.V0_9_0: _GROUP_0_9,
        Level.V0_10_2: _GROUP_0_9 | _TOO_FEW,
    }
)


def code_of_commit(code: int, level: Level) -> int:
    """The code of an OffsetCommit response after an append with error `code`."""
    return _CODES_OF_OFFSETS[level].get(code, code)


def code_of_group_record(code: int, level: Level) -> int:
    """The code of a SyncGroup response after the append of the group's record with error `code`."""
    return _CODES_OF_GROUP_RECORDS[level].get(code, code)
