"""A cluster in memory whose leaders have epochs, as brokers from 2.4 on: their logs have record
batches, and lose messages in elections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka08.errors import NO_ERROR, FencedLeaderEpoch, UnknownLeaderEpoch
from kafka08.format import Batch, Message
from kafka08.format.v2 import V2
from kafka08.levels import Level
from kafka08.protocol.api import ApiVersion
from kafka08.protocol.api_versions import ApiVersionRange, ApiVersionsRequest, ApiVersionsResponse
from kafka08.protocol.apis import APIS
from kafka08.protocol.fetch import FetchPartition, FetchPartitionResponse
from kafka08.protocol.list_groups import ListGroupsRequest, ListGroupsResponse
from kafka08.protocol.metadata import TopicMetadata
from kafka08.protocol.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochTopicResponse,
)
from kafka08.protocol.offsets import OffsetsPartitionResponse
from kafka08.protocol.record_batches import compress
from kafka08.protocol.served import Served
from kafka08.protocol.types import Request, Response
from kafka08.structs import NO_LEADER_EPOCH, NO_OFFSET, TopicPartition
from tests.client.fake_cluster import FakeCluster

RANGES = {1: (4, 17), 2: (1, 9), 3: (0, 12), 8: (2, 9), 9: (1, 9), 18: (0, 0), 23: (2, 4)}
"""Key → versions, of 4.4.0."""


class ClientVersions(Served):
    """Also the versions that no broker of ours serves."""

    def row(self, key: int, version: int) -> ApiVersion:
        for api in APIS:
            for row in api.versions:
                if (api.key, row.version) == (key, version) and row.since is None:
                    return row
        return super().row(key, version)


class EpochCluster(FakeCluster):
    """epochs   partition → its leader's epoch
    ranges      the versions that the brokers list
    meanwhile   called while a broker finds the ends of epochs
    """

    def __init__(self, partitions: int = 2) -> None:
        super().__init__({"t": dict.fromkeys(range(partitions), 1)})
        self.network.served = ClientVersions(Level.V0_11_0)
        self.epochs = dict.fromkeys(self.leaders, 0)
        self.ranges = dict(RANGES)
        self.meanwhile: Callable[[], object] = int
        self._written: dict[TopicPartition, list[tuple[int, bytes]]] = {}

    def append(self, tp: TopicPartition, *values: Any) -> None:
        """A batch for each, of the epoch of its leader."""
        written = self._written.setdefault(tp, [])
        written += [(self.epochs[tp], value) for value in values]
        self._store(tp)

    def elect(self, tp: TopicPartition, leader: int = 1, *, keeps: int) -> None:
        """A leader under a new epoch, whose log has the first `keeps` messages."""
        self.epochs[tp] += 1
        self.leaders[tp] = leader
        self._written[tp] = self._written.get(tp, [])[:keeps]
        self._store(tp)

    def log_end(self, tp: TopicPartition) -> int:
        return len(self._written.get(tp, ()))

    def _store(self, tp: TopicPartition) -> None:
        self.logs[tp] = bytearray(
            b"".join(batch(offset, *one) for offset, one in enumerate(self._written[tp]))
        )

    def respond(self, broker_id: int, request: Request) -> Response | None:
        match request:
            case ApiVersionsRequest():
                ranges = [ApiVersionRange(key, *found) for key, found in self.ranges.items()]
                return ApiVersionsResponse(NO_ERROR, ranges)
            case ListGroupsRequest():
                return ListGroupsResponse(NO_ERROR, [])  # sent behind the other
            case OffsetForLeaderEpochRequest():
                self.meanwhile()
                return OffsetForLeaderEpochResponse(
                    [
                        OffsetForLeaderEpochTopicResponse(
                            t.topic, [self._end(broker_id, t.topic, p) for p in t.partitions]
                        )
                        for t in request.topics
                    ]
                )
        return super().respond(broker_id, request)

    def _end(
        self, broker_id: int, topic: str, asked: OffsetForLeaderEpochPartition
    ) -> EpochEndOffset:
        tp = TopicPartition(topic, asked.partition)
        code = self._code(broker_id, tp) or self._refusal(tp, asked.current_epoch)
        epoch, end = NO_LEADER_EPOCH, NO_OFFSET
        if not code and asked.leader_epoch <= self.epochs[tp]:
            known = [one for one, _ in self._written[tp] if one <= asked.leader_epoch]
            epoch, end = (known[-1], len(known)) if known else (epoch, end)
        return EpochEndOffset(code, asked.partition, end, epoch)

    def _refusal(self, tp: TopicPartition, epoch: int) -> int:
        if NO_LEADER_EPOCH < epoch < self.epochs[tp]:
            return FencedLeaderEpoch.code
        return UnknownLeaderEpoch.code if epoch > self.epochs[tp] else NO_ERROR

    def _read(self, broker_id: int, topic: str, part: FetchPartition) -> FetchPartitionResponse:
        code = self._refusal(TopicPartition(topic, part.partition), part.leader_epoch)
        if code:
            return FetchPartitionResponse(part.partition, code, -1, b"")
        return super()._read(broker_id, topic, part)

    def _offset(self, broker_id: int, tp: TopicPartition, time_ms: int) -> OffsetsPartitionResponse:
        found = super()._offset(broker_id, tp, time_ms)
        found.offset = next(iter(found.offsets), NO_OFFSET)
        if written := self._written.get(tp):
            found.leader_epoch = written[max(0, found.offset - 1)][0]
        return found

    def _topic(self, topic: str) -> TopicMetadata:
        found = super()._topic(topic)
        for partition in found.partitions:
            partition.leader_epoch = self.epochs[TopicPartition(topic, partition.partition)]
        return found


def batch(offset: int, epoch: int, value: bytes) -> bytes:
    """A batch with one record."""
    like = Batch(2, 0, 0, offset, offset, 0, 0, 1000, 0, leader_epoch=epoch)
    return bytes(
        V2().build([Message(offset, None, memoryview(value), 1000, 0)], 0, compress, like=like)
    )
