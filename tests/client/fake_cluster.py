"""A cluster in memory for client tests: brokers that lead partitions, store, answer and refuse.

    cluster = FakeCluster({"t": {0: 1, 1: 2}})              # partition → leader's broker id
    ClusterClient(cluster.bootstrap, runtime=cluster.runtime)

Everything may be changed between requests: `leaders`, `refusals`, `down()`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial

from kafka08 import kernel
from kafka08.errors import (
    NO_ERROR,
    InvalidProducerEpoch,
    LeaderNotAvailable,
    NotLeaderForPartition,
    OffsetOutOfRange,
    OutOfOrderSequence,
    UnknownTopicOrPartition,
)
from kafka08.format import batches
from kafka08.protocol import message_set
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest, ConsumerMetadataResponse
from kafka08.protocol.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from kafka08.protocol.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka08.protocol.metadata import (
    BrokerEndpoint,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafka08.protocol.offsets import (
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
    OffsetsTopicResponse,
)
from kafka08.protocol.produce import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)
from kafka08.protocol.types import Buffer, Request, Response
from kafka08.structs import EARLIEST_OFFSET, NO_LEADER, TopicPartition
from tests.mock_clock import MockClock
from tests.network.scripted import Hangup, ScriptedNetwork

PORT = 9092


class FakeCluster:
    """Brokers `b<id>`:9092 for every id in `brokers`.

    leaders    {partition: broker id or NO_LEADER}; answered by Metadata, obeyed by the rest
    logs       {partition: message set, uncompressed, offsets from 0}
    refusals   {partition: error codes for the next requests, one each}
    codecs     codecs of the sets that were produced, in order
    """

    def __init__(
        self, topics: Mapping[str, Mapping[int, int]], brokers: tuple[int, ...] = (1, 2)
    ) -> None:
        self.clock = MockClock()
        self.network = ScriptedNetwork()
        self.runtime = self.network.runtime(self.clock)
        self.brokers = list(brokers)
        self.leaders = {
            TopicPartition(topic, partition): leader
            for topic, partitions in topics.items()
            for partition, leader in partitions.items()
        }
        self.logs: dict[TopicPartition, bytearray] = {}
        self.refusals: dict[TopicPartition, deque[int]] = {}
        self.codecs: list[int] = []
        self.producers: dict[
            tuple[TopicPartition, int], tuple[int, list[tuple[int, int, int]]]
        ] = {}
        """Epoch, and the last five batches of each: sequence, records, offset."""
        self.id_error = NO_ERROR
        """Instead of a producer id."""
        self.coordinator = ConsumerMetadataResponse(NO_ERROR, 1, "b1", PORT)
        for broker_id in brokers:
            self.network.broker(f"b{broker_id}", PORT, partial(self.respond, broker_id))

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        return [(f"b{broker_id}", PORT) for broker_id in self.brokers]

    def down(self, broker_id: int) -> None:
        """The broker dies; Metadata does not list it any more."""
        self.brokers.remove(broker_id)
        self.network.remove(f"b{broker_id}", PORT)

    def refuse(self, tp: TopicPartition, *codes: int) -> None:
        """Answer the next requests about `tp` with these codes; 0 lets one pass."""
        self.refusals.setdefault(tp, deque()).extend(codes)

    def append(self, tp: TopicPartition, *values: bytes | None) -> None:
        """Put messages without a key into the log."""
        log = self.logs.setdefault(tp, bytearray())
        log += kernel.build_set([(None, value) for value in values], self.log_end(tp))

    def log_end(self, tp: TopicPartition) -> int:
        return sum(1 for _ in kernel.entries(self.logs.get(tp, b"")))

    def messages(self, tp: TopicPartition) -> list[tuple[bytes | None, bytes | None]]:
        """(key, value) of all that is stored."""
        return [(m.key, m.value) for m in message_set.decode(self.logs.get(tp, b""))]

    def respond(self, broker_id: int, request: Request) -> Response | None:
        """The response of broker `broker_id` to `request`."""
        match request:
            case MetadataRequest():
                return self._metadata(request)
            case ConsumerMetadataRequest():
                return self.coordinator
            case ProduceRequest():
                return self._produce(broker_id, request)
            case FetchRequest():
                return self._fetch(broker_id, request)
            case OffsetsRequest():
                return self._offsets(broker_id, request)
            case InitProducerIdRequest():
                return InitProducerIdResponse(0, self.id_error, 7, 0)
            case OffsetFetchRequest():
                return OffsetFetchResponse([])  # to a probe
        raise AssertionError(f"{request} was not expected")

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        topics = request.topics or sorted({tp.topic for tp in self.leaders})
        return MetadataResponse(
            [BrokerEndpoint(b, f"b{b}", PORT) for b in self.brokers],
            [self._topic(topic) for topic in topics],
        )

    def _topic(self, topic: str) -> TopicMetadata:
        partitions = [
            PartitionMetadata(
                LeaderNotAvailable.code if leader == NO_LEADER else NO_ERROR,
                tp.partition,
                leader,
                [1],
                [1],
            )
            for tp, leader in self.leaders.items()
            if tp.topic == topic
        ]
        return TopicMetadata(
            NO_ERROR if partitions else UnknownTopicOrPartition.code, topic, partitions
        )

    def _code(self, broker_id: int, tp: TopicPartition) -> int:
        if self.refusals.get(tp):
            return self.refusals[tp].popleft()
        if tp not in self.leaders:
            return UnknownTopicOrPartition.code
        return NO_ERROR if self.leaders[tp] == broker_id else NotLeaderForPartition.code

    def _produce(self, broker_id: int, request: ProduceRequest) -> ProduceResponse | None:
        response = ProduceResponse(
            [
                ProduceTopicResponse(
                    t.topic, [self._append(broker_id, t.topic, p) for p in t.partitions]
                )
                for t in request.topics
            ]
        )
        if request.required_acks != 0:
            return response
        if any(p.error_code for t in response.topics for p in t.partitions):
            raise Hangup
        return None

    def _append(
        self, broker_id: int, topic: str, part: ProducePartition
    ) -> ProducePartitionResponse:
        tp = TopicPartition(topic, part.partition)
        code = self._code(broker_id, tp)
        if code:
            return ProducePartitionResponse(part.partition, code, -1)
        base = self.log_end(tp)
        if (found := self._sequence(tp, part.message_set)) is not None:
            return ProducePartitionResponse(part.partition, *found)
        self.codecs.append(kernel.validate(part.message_set, 1 << 30).codec)
        pairs = [(m.key, m.value) for m in message_set.decode(part.message_set)]
        self.logs.setdefault(tp, bytearray()).extend(kernel.build_set(pairs, base))
        return ProducePartitionResponse(part.partition, NO_ERROR, base)

    def _sequence(self, tp: TopicPartition, data: Buffer) -> tuple[int, int] | None:
        """The error or the offset of a batch that is not the producer's next one."""
        (batch, *_) = batches(data)
        if batch.base_sequence < 0:
            return None
        epoch, known = self.producers.get((tp, batch.producer_id), (-1, []))
        for sequence, _, offset in known:
            if (epoch, sequence) == (batch.producer_epoch, batch.base_sequence):
                return NO_ERROR, offset
        expected = known[-1][0] + known[-1][1] if known else batch.base_sequence
        if batch.producer_epoch != epoch:
            known, expected = [], 0 if epoch >= 0 else batch.base_sequence
        if batch.producer_epoch < epoch:
            return InvalidProducerEpoch.code, -1
        if batch.base_sequence != expected:
            return OutOfOrderSequence.code, -1
        entry = batch.base_sequence, batch.record_count, self.log_end(tp)
        self.producers[tp, batch.producer_id] = batch.producer_epoch, [*known, entry][-5:]
        return None

    def _fetch(self, broker_id: int, request: FetchRequest) -> FetchResponse:
        return FetchResponse(
            [
                FetchTopicResponse(
                    t.topic, [self._read(broker_id, t.topic, p) for p in t.partitions]
                )
                for t in request.topics
            ]
        )

    def _read(self, broker_id: int, topic: str, part: FetchPartition) -> FetchPartitionResponse:
        tp = TopicPartition(topic, part.partition)
        code = self._code(broker_id, tp)
        end = self.log_end(tp)
        if not code and not 0 <= part.offset <= end:
            code = OffsetOutOfRange.code
        if code:
            return FetchPartitionResponse(part.partition, code, -1, b"")
        log = bytes(self.logs.get(tp, b""))
        position = position_of(log, part.offset)
        data = log[position : position + part.max_bytes]
        return FetchPartitionResponse(part.partition, NO_ERROR, end, data)

    def _offsets(self, broker_id: int, request: OffsetsRequest) -> OffsetsResponse:
        return OffsetsResponse(
            [
                OffsetsTopicResponse(
                    t.topic,
                    [
                        self._offset(broker_id, TopicPartition(t.topic, p.partition), p.time_ms)
                        for p in t.partitions
                    ],
                )
                for t in request.topics
            ]
        )

    def _offset(self, broker_id: int, tp: TopicPartition, time_ms: int) -> OffsetsPartitionResponse:
        code = self._code(broker_id, tp)
        if code:
            return OffsetsPartitionResponse(tp.partition, code, [])
        offset = 0 if time_ms == EARLIEST_OFFSET else self.log_end(tp)
        return OffsetsPartitionResponse(tp.partition, NO_ERROR, [offset])


def position_of(log: bytes, offset: int) -> int:
    """The position of the first entry at or above `offset`; the end if there is none."""
    position, _ = kernel.find_offset(log, offset) or (len(log), -1)
    return position
