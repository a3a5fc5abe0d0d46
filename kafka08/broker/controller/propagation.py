"""Propagation: when a controller sends UpdateMetadata, by level. Chosen once for each term.

Source: ControllerBrokerRequestBatch, KafkaController.onControllerFailover, onBrokerStartup and
onBrokerFailure 0.8.2.2, 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka08.broker.cluster.inter_broker import inter_broker
from kafka08.levels import Level

if TYPE_CHECKING:
    from kafka08.broker.settings.config import BrokerConfig


@dataclass(frozen=True, slots=True)
class Propagation:
    """The rules of one release.

    update_metadata   the version of UpdateMetadata that is sent
    always            UpdateMetadata is also sent without partitions, and to all brokers when one
                      joins or fails. 0.8.2 sends it to the one that joined, if there are partitions
    isr_changes       leaders notify the controller of ISR changes, and it informs all brokers
    metadata_first    a new controller sends UpdateMetadata for all partitions before LeaderAndIsr,
                      since a follower of 0.10.2.2 looks up the leader's address there. Earlier
                      controllers send it after
    """

    update_metadata: int
    always: bool
    isr_changes: bool
    metadata_first: bool


OF_0_8_2: Final = Propagation(
    update_metadata=0, always=False, isr_changes=False, metadata_first=False
)


def propagation_of(config: BrokerConfig) -> Propagation:
    """The rules for a broker's level and its inter.broker.protocol.version."""
    version = inter_broker(config.protocol_version).update_metadata
    since_0_9 = config.level >= Level.V0_9_0
    return Propagation(
        version,
        always=since_0_9,
        isr_changes=since_0_9,
        metadata_first=config.level >= Level.V0_10_2,
    )
