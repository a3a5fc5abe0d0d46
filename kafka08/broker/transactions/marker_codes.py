"""The reaction to a partition leader's answer to WriteTxnMarkers. Pure.

    0                   the partition has its marker
    35, 43              it cannot have transactional messages: it needs none
    any other           the marker is sent again after a growing pause, to the leader of that time

0.11.0.3 sends again at once and without end, so that a thread spins, and after 47, 52 or an
unexpected code it leaves the transaction, and others of the same request, as they are until another
broker loads them. Here 47 and 52 are no end either. A coordinator whose successor has written
markers hears that it leads no more, and drops what it sends. Source:
kafka.coordinator.transaction.TransactionMarkerRequestCompletionHandler 0.11.0.2.
"""

from __future__ import annotations

from typing import Final

from kafka08.errors import (
    NO_ERROR,
    LeaderNotAvailable,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderForPartition,
    RequestTimedOut,
    UnknownTopicOrPartition,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)

FIRST_PAUSE_MS: Final = 20
LONGEST_PAUSE_MS: Final = 1000
DONE: Final = frozenset({NO_ERROR, UnsupportedVersion.code, UnsupportedForMessageFormat.code})
"""The partition needs no marker any more."""
PASSING: Final = frozenset(
    {
        UnknownTopicOrPartition.code,
        LeaderNotAvailable.code,
        NotLeaderForPartition.code,
        RequestTimedOut.code,
        NotEnoughReplicas.code,
        NotEnoughReplicasAfterAppend.code,
    }
)
"""What a partition has while it gets another leader or lacks replicas: nothing to warn of."""


def pause_ms(tries: int) -> int:
    """The pause before a marker is sent again, after that many tries."""
    return min(FIRST_PAUSE_MS << min(tries - 1, 10), LONGEST_PAUSE_MS)
