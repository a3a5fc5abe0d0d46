"""MetadataCache: live brokers and partition leaders, as the controller last sent them.

Empty at start: Metadata responses come from here alone, never from ZooKeeper. Every update raises
`epoch` and drops the encoded responses for the old state. Source:
kafka.server.MetadataCache 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from kafka08.errors import LeaderNotAvailable, ReplicaNotAvailable
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.protocol.metadata import PartitionMetadata, TopicMetadata
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.structs import (
    INTERNAL_TOPICS,
    LEADER_DURING_DELETE,
    NO_CONTROLLER,
    PLAINTEXT,
    Broker,
    TopicPartition,
)

state_change_log = logging.getLogger("state.change.logger")

ENCODED_RESPONSES_MAX: Final = 1000
"""The most distinct Metadata requests whose responses are cached until the next update."""
ENCODED_BYTES_MAX: Final = 16 << 20
"""The most bytes of these requests and responses together."""
CACHED_REQUEST_BYTES_MAX: Final = 4096
"""A longer request has hundreds of topics, and is rarely repeated."""


PartitionStates = dict[TopicPartition, PartitionStateInfo]


class MetadataCache:
    """Brokers and partition states. Nothing here switches."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._addresses: dict[str, dict[int, Broker]] = {}
        self._racks: dict[int, str | None] = {}
        self.controller_id = NO_CONTROLLER
        """The controller of the last update."""
        self._topics: dict[str, dict[int, PartitionStateInfo]] = {}
        self.epoch = 0
        self._encoded: dict[bytes, bytes] = {}
        self._encoded_bytes = 0

    def update(self, request: UpdateMetadataRequest) -> None:
        """Replace the live brokers, merge the partitions, drop those that are being deleted."""
        self.controller_id = request.controller_id
        self._racks = {broker.broker_id: broker.rack for broker in request.live_brokers}
        self._addresses = {}
        for broker in request.live_brokers:
            for endpoint in broker.endpoints:
                address = Broker(broker.broker_id, endpoint.host, endpoint.port)
                self._addresses.setdefault(endpoint.listener, {})[broker.broker_id] = address
        for state in request.partition_states:
            if state.leader == LEADER_DURING_DELETE:
                self._remove(state.topic, state.partition)
            else:
                self._topics.setdefault(state.topic, {})[state.partition] = state
            state_change_log.debug(
                "Broker %d cached leader info %s in response to UpdateMetadata request sent by "
                "controller %d epoch %d",
                self._broker_id,
                state,
                request.controller_id,
                request.controller_epoch,
            )
        self.epoch += 1
        self._forget_responses()

    def states(self) -> PartitionStates:
        """All partition states, as objects that later updates replace."""
        return {
            TopicPartition(topic, partition): state
            for topic, states in self._topics.items()
            for partition, state in states.items()
        }

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop partitions that are gone."""
        for topic, partition in partitions:
            self._remove(topic, partition)
        self.epoch += 1
        self._forget_responses()

    def _remove(self, topic: str, partition: int) -> None:
        states = self._topics.get(topic)
        if states is not None:
            states.pop(partition, None)
            if not states:
                del self._topics[topic]

    # Looking up

    @property
    def topics(self) -> Iterable[str]:
        return self._topics.keys()

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    @property
    def racks(self) -> Mapping[int, str | None]:
        """The ids of the live brokers, each with its rack if the controller has sent it."""
        return self._racks

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self._racks

    def live_brokers(self, listener: str = PLAINTEXT) -> Sequence[Broker]:
        """The live brokers that have the listener, by id."""
        brokers = self._addresses.get(listener, {})
        return [brokers[broker_id] for broker_id in sorted(brokers)]

    def broker(self, broker_id: int, listener: str = PLAINTEXT) -> Broker | None:
        """The broker of that id if it is alive and has the listener."""
        return self._addresses.get(listener, {}).get(broker_id)

    def partition_state(self, topic_partition: TopicPartition) -> PartitionStateInfo | None:
        """The state of a partition; None if the controller has not sent it."""
        return self._topics.get(topic_partition.topic, {}).get(topic_partition.partition)

    def partition_count(self, topic: str) -> int:
        """The known partitions of a topic; 0 if it is not known."""
        return len(self._topics.get(topic, ()))

    def topic_metadata(
        self, topic: str, *, listener: str = PLAINTEXT, lists_dead: bool = False
    ) -> TopicMetadata:
        """The Metadata entry of a topic in the cache (else KeyError). A dead leader is error 5.
        Dead replicas are left out with error 9, or listed without an error if `lists_dead`."""
        states = self._topics[topic]
        live = self._addresses.get(listener, {})
        return TopicMetadata(
            0,
            topic,
            [_describe(states[number], live, lists_dead) for number in sorted(states)],
            topic in INTERNAL_TOPICS,
        )

    # Encoded responses

    def cached_response(self, request: bytes) -> bytes | None:
        """The encoded response body for this version and body of a request, if it is cached."""
        return self._encoded.get(request)

    def cache_response(self, request: bytes, response: bytes) -> None:
        """Cache a response until the next update, unless it or its request is too large."""
        size = len(request) + len(response)
        if len(request) > CACHED_REQUEST_BYTES_MAX or size > ENCODED_BYTES_MAX:
            return
        if (
            len(self._encoded) >= ENCODED_RESPONSES_MAX
            or self._encoded_bytes + size > ENCODED_BYTES_MAX
        ):
            self._forget_responses()
        self._encoded[request] = response
        self._encoded_bytes += size

    def _forget_responses(self) -> None:
        self._encoded.clear()
        self._encoded_bytes = 0


def _describe(
    state: PartitionStateInfo, live: Container[int], lists_dead: bool
) -> PartitionMetadata:
    replicas, isr = state.replicas, state.isr
    error_code = 0
    if not lists_dead:
        is_live = live.__contains__
        if not (all(map(is_live, replicas)) and all(map(is_live, isr))):
            replicas, isr = list(filter(is_live, replicas)), list(filter(is_live, isr))
            error_code = ReplicaNotAvailable.code
    # The original looks up the leader first; without it, the ISR is still empty.
    if state.leader not in live:
        return PartitionMetadata(LeaderNotAvailable.code, state.partition, -1, replicas, isr=[])
    return PartitionMetadata(error_code, state.partition, state.leader, replicas, isr)
