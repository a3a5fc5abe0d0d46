"""MetadataCache: who is alive and who leads what, as the controller last told this broker.

Empty at start: Metadata is answered from here alone, never from ZooKeeper. Every update raises
`epoch` and drops the encoded answers that were made of the old state. Source:
kafka.server.MetadataCache 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from kafka08.errors import LeaderNotAvailable, ReplicaNotAvailable
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.protocol.metadata import PartitionMetadata, TopicMetadata
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.structs import LEADER_DURING_DELETE, Broker, TopicPartition

state_change_log = logging.getLogger("state.change.logger")

ENCODED_ANSWERS_MAX: Final = 1000
"""Distinct Metadata requests whose answers are remembered until the next update."""
ENCODED_BYTES_MAX: Final = 16 << 20
"""Bytes of these questions and answers together."""
QUESTION_BYTES_MAX: Final = 4096
"""A longer question names hundreds of topics; who asks it does not ask it often."""


class MetadataCache:
    """Brokers and partition states. Nothing here switches."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._brokers: dict[int, Broker] = {}
        self._topics: dict[str, dict[int, PartitionStateInfo]] = {}
        self.epoch = 0
        self._encoded: dict[bytes, bytes] = {}
        self._encoded_bytes = 0

    def update(self, request: UpdateMetadataRequest) -> None:
        """Replace the live brokers, merge the partitions, drop those that are being deleted."""
        self._brokers = {
            broker.broker_id: Broker(broker.broker_id, endpoint.host, endpoint.port)
            for broker in request.live_brokers
            for endpoint in broker.endpoints[:1]
        }
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
        self._forget_answers()

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

    def live_brokers(self) -> Sequence[Broker]:
        """The live brokers by id."""
        return [self._brokers[broker_id] for broker_id in sorted(self._brokers)]

    def broker(self, broker_id: int) -> Broker | None:
        """The broker of that id if it is alive."""
        return self._brokers.get(broker_id)

    def partition_state(self, topic_partition: TopicPartition) -> PartitionStateInfo | None:
        """State of a partition, or None if the controller has not told of it."""
        return self._topics.get(topic_partition.topic, {}).get(topic_partition.partition)

    def topic_metadata(self, topic: str) -> TopicMetadata:
        """The Metadata entry of a topic that is in the cache (KeyError if not)."""
        states = self._topics[topic]
        return TopicMetadata(
            0, topic, [self._describe(states[number]) for number in sorted(states)]
        )

    def _describe(self, state: PartitionStateInfo) -> PartitionMetadata:
        """Only live brokers are listed; a dead replica is error 9, a dead leader 5."""
        replicas = [broker_id for broker_id in state.replicas if broker_id in self._brokers]
        if state.leader not in self._brokers:
            return PartitionMetadata(LeaderNotAvailable.code, state.partition, -1, replicas, isr=[])
        isr = [broker_id for broker_id in state.isr if broker_id in self._brokers]
        whole = len(replicas) == len(state.replicas) and len(isr) == len(state.isr)
        error_code = 0 if whole else ReplicaNotAvailable.code
        return PartitionMetadata(error_code, state.partition, state.leader, replicas, isr)

    # Encoded answers

    def encoded_answer(self, question: bytes) -> bytes | None:
        """The encoded body that answers a request of this version and body, if it is remembered."""
        return self._encoded.get(question)

    def remember_answer(self, question: bytes, answer: bytes) -> None:
        """Remember an answer until the next update, if it and its question are of a size that is
        worth it."""
        size = len(question) + len(answer)
        if len(question) > QUESTION_BYTES_MAX or size > ENCODED_BYTES_MAX:
            return
        if (
            len(self._encoded) >= ENCODED_ANSWERS_MAX
            or self._encoded_bytes + size > ENCODED_BYTES_MAX
        ):
            self._forget_answers()
        self._encoded[question] = answer
        self._encoded_bytes += size

    def _forget_answers(self) -> None:
        self._encoded.clear()
        self._encoded_bytes = 0
