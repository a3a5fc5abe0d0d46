"""Telling: how a controller of a level tells brokers of changes. Rows, chosen once for each term.

Source: ControllerBrokerRequestBatch, KafkaController.onBrokerStartup and onBrokerFailure 0.8.2.2,
0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka08.broker.inter_broker import inter_broker
from kafka08.levels import Level

if TYPE_CHECKING:
    from kafka08.broker.config import BrokerConfig


@dataclass(frozen=True, slots=True)
class Telling:
    """What one release does.

    update_metadata   the version of UpdateMetadata that is sent
    always            UpdateMetadata also goes out without partitions, and to all brokers whenever
                      one joins or fails. 0.8.2 tells the one that joined, if there are partitions
    isr_changes       leaders notify of ISRs that they changed, and all brokers hear of it
    """

    update_metadata: int
    always: bool
    isr_changes: bool


OF_0_8_2: Final = Telling(update_metadata=0, always=False, isr_changes=False)


def telling(config: BrokerConfig) -> Telling:
    """What the broker does, by its level and by what it is pinned to."""
    version = inter_broker(config.protocol_version).update_metadata
    is_later = config.level >= Level.V0_9_0
    return Telling(version, always=is_later, isr_changes=is_later)
