"""A cluster in memory whose logs have what readers meet: compressed sets, holes, a moved start.

cluster = LogCluster({"t": {0: 1}})
cluster.write(T0, [(b"k", b"v")] * 10, codec=1)
cluster.reader(OffsetRange("t", 0, 3, 7))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kafka08.arrow.range_reader import RangeReader
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.settings import ReadSettings
from kafka08.client.cluster import ClusterClient
from kafka08.client.pool import ConnectionPool
from kafka08.errors import NO_ERROR, OffsetOutOfRange, UnknownError
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.fetch import FetchPartition, FetchPartitionResponse
from kafka08.protocol.offsets import OffsetsPartitionResponse, OffsetsRequest, OffsetsResponse
from kafka08.structs import DEBUGGING_CONSUMER, EARLIEST_OFFSET, Broker, TopicPartition
from tests.client.fake_cluster import PORT, FakeCluster, position_of

Pair = tuple[bytes | None, bytes | None]
Row = tuple[int, bytes | None, bytes | None]

T0 = TopicPartition("t", 0)
SETTINGS = ReadSettings(fetch_bytes=1000, poll_timeout_ms=3000, backoff_ms=100)


@dataclass(slots=True)
class LogShape:
    """start, end: the offsets there are, [start, end). visible: end for consumers, None: all."""

    start: int = 0
    end: int = 0
    visible: int | None = None


class LogCluster(FakeCluster):
    """FakeCluster with logs of wrappers and holes. `shapes` may be changed between requests."""

    def __init__(
        self, topics: Mapping[str, Mapping[int, int]], brokers: tuple[int, ...] = (1, 2)
    ) -> None:
        super().__init__(topics, brokers)
        self.shapes = {tp: LogShape() for tp in self.leaders}
        self.client = ClusterClient(self.bootstrap, runtime=self.runtime)
        self.pool = ConnectionPool(lambda host, port: Connection(host, port, runtime=self.runtime))

    def write(self, tp: TopicPartition, messages: Sequence[Pair], codec: int = 0) -> None:
        """Append one set, in one wrapper if `codec` is not 0."""
        shape = self.shapes[tp]
        data = message_set.encode(messages, codec, shape.end)
        self.logs.setdefault(tp, bytearray()).extend(data)
        shape.end += len(messages)

    def add(self, tp: TopicPartition, leader: int) -> None:
        """Add a partition without messages."""
        self.leaders[tp] = leader
        self.shapes[tp] = LogShape()

    def clear(self, tp: TopicPartition) -> None:
        """Let the topic have been deleted and recreated."""
        self.logs.pop(tp, None)
        self.shapes[tp] = LogShape()

    def leave_hole(self, tp: TopicPartition, count: int) -> None:
        """Let compaction have removed the next `count` messages."""
        self.shapes[tp].end += count

    def trim(self, tp: TopicPartition, start: int) -> None:
        """Retention: entries that end before `start` go; the log starts there."""
        log = bytes(self.logs[tp])
        self.logs[tp] = bytearray(log[position_of(log, start) :])
        self.shapes[tp].start = start

    def log_end(self, tp: TopicPartition) -> int:
        shape = self.shapes[tp]
        return shape.end if shape.visible is None else shape.visible

    def reader(
        self,
        wanted: OffsetRange,
        settings: ReadSettings = SETTINGS,
        leader: int | None = None,
        lost: set[Broker] | None = None,
    ) -> RangeReader:
        known = None if leader is None else Broker(leader, f"b{leader}", PORT)
        return RangeReader(wanted, settings, self.client, self.pool, known, lost=lost)

    def _read(self, broker_id: int, topic: str, part: FetchPartition) -> FetchPartitionResponse:
        tp = TopicPartition(topic, part.partition)
        shape, log = self.shapes[tp], self.logs.get(tp, bytearray())
        response = super()._read(broker_id, topic, part)
        if shape.visible is not None and part.offset > shape.visible:
            # 0.8: between the high watermark and the log end there is no offset to start from.
            return FetchPartitionResponse(part.partition, UnknownError.code, -1, b"")
        if response.error_code == NO_ERROR and part.offset < shape.start:
            return FetchPartitionResponse(part.partition, OffsetOutOfRange.code, -1, b"")
        if response.error_code == NO_ERROR and shape.visible is not None:
            start, end = (position_of(bytes(log), o) for o in (part.offset, shape.visible))
            return replace(response, message_set=bytes(log[start:end])[: part.max_bytes])
        return response

    def _offsets(self, broker_id: int, request: OffsetsRequest) -> OffsetsResponse:
        if request.replica_id != DEBUGGING_CONSUMER:
            return super()._offsets(broker_id, request)
        shapes = self.shapes
        self.shapes = {tp: replace(shape, visible=None) for tp, shape in shapes.items()}
        try:
            return super()._offsets(broker_id, request)
        finally:
            self.shapes = shapes

    def _offset(self, broker_id: int, tp: TopicPartition, time_ms: int) -> OffsetsPartitionResponse:
        response = super()._offset(broker_id, tp, time_ms)
        if response.error_code == NO_ERROR and time_ms == EARLIEST_OFFSET:
            return replace(response, offsets=[self.shapes[tp].start])
        return response


def rows(reader: RangeReader) -> list[Row]:
    """The messages of a reader's range, as (offset, key, value)."""
    return [
        (message.offset, message.key, message.value)
        for fetched in reader
        for message in fetched.decoded(until_offset=reader.wanted.until_offset)
    ]
