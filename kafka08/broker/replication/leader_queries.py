"""LeaderQueries: what a replica fetcher asks its leader beside messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka08.broker.cluster.inter_broker import InterBroker
from kafka08.errors import ProtocolError, check
from kafka08.network.connection import Connection
from kafka08.protocol.grouping import by_partition, by_topic
from kafka08.protocol.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochTopic,
)
from kafka08.protocol.offsets import (
    OffsetsPartition,
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
    OffsetsTopic,
)
from kafka08.structs import Broker, TopicPartition


class LeaderQueries:
    """Requests of broker `broker_id` to `leader` over an open connection. All methods switch, and
    raise like Connection.send."""

    def __init__(
        self, connection: Connection, leader: Broker, broker_id: int, versions: InterBroker
    ) -> None:
        self._connection = connection
        self._leader = leader
        self._broker_id = broker_id
        self._versions = versions

    def end_of(self, tp: TopicPartition, time_ms: int) -> int:
        """The leader's log start or end offset. KafkaError without one."""
        partition = self.ends_of([tp], time_ms).get(tp)
        if partition is not None:
            check(partition.error_code, f"{tp} from broker {self._leader.id}")
            for offset in partition.found:
                return offset
        raise ProtocolError(f"broker {self._leader.id} returned no offset of {tp}")

    def ends_of(
        self, tps: Iterable[TopicPartition], time_ms: int
    ) -> dict[TopicPartition, OffsetsPartitionResponse]:
        """The leader's log start or end offset of each partition."""
        wanted = by_topic({tp: OffsetsPartition(tp.partition, time_ms, 1) for tp in tps})
        response = self._connection.send(
            OffsetsRequest(
                self._broker_id,
                [
                    OffsetsTopic(topic, [partition for _, partition in items])
                    for topic, items in wanted.items()
                ],
                version=self._versions.list_offsets,
            )
        )
        assert isinstance(response, OffsetsResponse)
        return by_partition(response.topics)

    def ends_of_epochs(
        self, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, EpochEndOffset]:
        """Where these leader epochs end in the leader's logs."""
        topics = [
            OffsetForLeaderEpochTopic(topic, [OffsetForLeaderEpochPartition(*one) for one in items])
            for topic, items in by_topic(wanted).items()
        ]
        response = self._connection.send(OffsetForLeaderEpochRequest(topics))
        assert isinstance(response, OffsetForLeaderEpochResponse)
        return by_partition(response.topics)
