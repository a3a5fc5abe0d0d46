"""The reaction to a partition leader's answer to WriteTxnMarkers. Pure.

    0                   the partition has its marker
    35, 43              it cannot have transactional messages: it needs none
    47, 52              the leader knows a later epoch of the producer, or of a coordinator, than
                        this coordinator: see below
    any other           the marker is sent again after a growing pause, to the leader of that time

47 and 52 are the answers to a coordinator that was replaced. One that was not is still asked for
the decision: a message, or a marker written by hand, had an epoch that it never gave. So it stores
the decision once more, with EPOCH_FENCED. Only a coordinator that was not replaced can. No leader
refuses a marker with that epoch, and no later transaction has its producer id; so after another 52
the marker may have COORDINATOR_EPOCH_MAX too.

0.11.0.3 sends again at once and without end, so that a thread spins, and after 47, 52 or an
unexpected code it leaves the transaction, and others of the same request, as they are until another
broker loads them. After 47 and 52 that repeats itself. Source:
kafka.coordinator.transaction.TransactionMarkerRequestCompletionHandler 0.11.0.2.
"""

from __future__ import annotations

from typing import Final

from kafka08.errors import (
    NO_ERROR,
    InvalidProducerEpoch,
    LeaderNotAvailable,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderForPartition,
    RequestTimedOut,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)

FIRST_PAUSE_MS: Final = 20
LONGEST_PAUSE_MS: Final = 1000
DONE: Final = frozenset({NO_ERROR, UnsupportedVersion.code, UnsupportedForMessageFormat.code})
"""The partition needs no marker any more."""
FENCED: Final = frozenset({InvalidProducerEpoch.code, TransactionCoordinatorFenced.code})
COORDINATOR_EPOCH_MAX: Final = 2**31 - 1
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
