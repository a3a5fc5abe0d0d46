"""The reaction to a partition leader's answer to WriteTxnMarkers. Pure.

0.11.0.3 sends again at once and without end, so that a thread spins, and after 47, 52 or an
unexpected code it leaves the transaction, and others of the same request, as they are until another
broker loads them. Here a marker is sent again after a growing pause, and the transactions of a
partition with 47 or 52 are loaded again. Source:
kafka.coordinator.transaction.TransactionMarkerRequestCompletionHandler 0.11.0.2.
"""

from __future__ import annotations

import enum
from typing import Final

from kafka08.errors import (
    NO_ERROR,
    InvalidProducerEpoch,
    TransactionCoordinatorFenced,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)

FIRST_PAUSE_MS: Final = 20
LONGEST_PAUSE_MS: Final = 1000


class Reaction(enum.Enum):
    DONE = "the partition needs no marker any more"
    AGAIN = "send it again, to the leader of that time"
    RELOAD = "another coordinator has written: load the transactions again"


_REACTIONS: Final = {
    NO_ERROR: Reaction.DONE,
    # The partition cannot have transactional messages.
    UnsupportedVersion.code: Reaction.DONE,
    UnsupportedForMessageFormat.code: Reaction.DONE,
    InvalidProducerEpoch.code: Reaction.RELOAD,
    TransactionCoordinatorFenced.code: Reaction.RELOAD,
}


def reaction_to(code: int) -> Reaction:
    return _REACTIONS.get(code, Reaction.AGAIN)


def pause_ms(tries: int) -> int:
    """The pause before a marker is sent again, after that many tries."""
    return min(FIRST_PAUSE_MS << min(tries - 1, 10), LONGEST_PAUSE_MS)
