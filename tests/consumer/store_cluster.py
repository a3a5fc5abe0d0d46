"""One broker in memory that coordinates a group. The test says how it answers commits and fetches
of offsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kafka08.client import ClusterClient
from kafka08.errors import NO_ERROR, NotLeaderForPartition, UnknownTopicOrPartition
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest, ConsumerMetadataResponse
from kafka08.protocol.fetch import (
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from kafka08.protocol.metadata import (
    BrokerEndpoint,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from kafka08.protocol.offset_commit import (
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from kafka08.protocol.offset_fetch import (
    OffsetFetchPartitionResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopicResponse,
)
from kafka08.protocol.offsets import (
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
    OffsetsTopicResponse,
)
from kafka08.protocol.types import Request, Response
from kafka08.structs import EARLIEST_OFFSET, Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.mock_clock import MockClock
from tests.network.scripted import ScriptedNetwork

HOST, PORT = "b1", 9092


class StoreCluster:
    """committed: what the offsets topic has. refusals: codes for the next responses of a partition.
    asked: the offsets requests in order. log_end: of every partition; logs start at 0. unled: the
    broker has lost the leadership of these. searches: how often the coordinator was looked up.
    is_of: whether an offset is that of a group, where a test has several."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.network = ScriptedNetwork()
        self.runtime = self.network.runtime(self.clock)
        self.network.broker(HOST, PORT, self.respond)
        self.committed: dict[TopicPartition, int] = {}
        self.refusals: dict[TopicPartition, deque[int]] = {}
        self.asked: list[Request] = []
        self.log_end = 1000
        self.unled: set[TopicPartition] = set()
        self.coordinator_code = NO_ERROR
        self.searches = 0
        self.is_of: Callable[[str, TopicPartition], bool] = lambda group, tp: True
        self.topics = {"t", "tt"}
        """What there is; one that is asked for by name is there, too."""

    def create_topic(self, zk: ZkClient, topic: str, partitions: int) -> None:
        """Creates the znodes as the controller does, with this broker registered and leading."""
        store = ClusterStore(zk)
        if store.broker(1) is None:
            store.register_broker(Broker(1, HOST, PORT), timestamp_ms=0)
        self.topics.add(topic)
        numbers = range(partitions)
        zk.create(paths.topic(topic), nodes.encode_assignment(dict.fromkeys(numbers, (1,))))
        states = {TopicPartition(topic, n): LeaderAndIsr(1, 0, (1,), 0, 1) for n in numbers}
        store.create_leader_and_isr(states)

    def client(self) -> ClusterClient:
        return ClusterClient([(HOST, PORT)], runtime=self.runtime)

    def renew(self, stale: ClusterClient) -> None:
        """Fails the test: there is no other broker."""

    def refuse(self, tp: TopicPartition, *codes: int) -> None:
        self.refusals.setdefault(tp, deque()).extend(codes)

    def respond(self, request: Request) -> Response:
        match request:
            case ConsumerMetadataRequest():
                self.searches += 1
                return ConsumerMetadataResponse(self.coordinator_code, 1, HOST, PORT)
            case MetadataRequest():
                return self._metadata(request)
            case OffsetsRequest():
                return self._log_offsets(request)
            case FetchRequest():
                return self._unknown(request)
            case OffsetCommitRequest():
                self.asked.append(request)
                return self._commit(request)
            case OffsetFetchRequest():
                self.asked.append(request)
                return self._fetch(request)
        raise AssertionError(f"{request} was not expected")

    def _code(self, tp: TopicPartition) -> int:
        waiting = self.refusals.get(tp)
        return waiting.popleft() if waiting else NO_ERROR

    def _leader_code(self, tp: TopicPartition) -> int:
        return NotLeaderForPartition.code if tp in self.unled else NO_ERROR

    def _commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        topics = []
        for topic in request.topics:
            responses = []
            for partition in topic.partitions:
                tp = TopicPartition(topic.topic, partition.partition)
                code = self._code(tp)
                if code == NO_ERROR:
                    self.committed[tp] = partition.offset
                responses.append(OffsetCommitPartitionResponse(tp.partition, code))
            topics.append(OffsetCommitTopicResponse(topic.topic, responses))
        return OffsetCommitResponse(topics)

    def _fetch(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        topics = []
        for topic in request.topics or ():
            responses = []
            for number in topic.partitions:
                tp = TopicPartition(topic.topic, number)
                code = self._code(tp)
                known = not code and self.is_of(request.group, tp)
                offset = self.committed.get(tp, -1) if known else -1
                responses.append(OffsetFetchPartitionResponse(number, offset, "", code))
            topics.append(OffsetFetchTopicResponse(topic.topic, responses))
        return OffsetFetchResponse(topics)

    def _unknown(self, request: FetchRequest) -> FetchResponse:
        """The broker knows no partition, as one that has just started."""
        code = UnknownTopicOrPartition.code
        return FetchResponse(
            [
                FetchTopicResponse(
                    topic.topic,
                    [FetchPartitionResponse(p.partition, code, -1, b"") for p in topic.partitions],
                )
                for topic in request.topics
            ]
        )

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        partitions = [PartitionMetadata(NO_ERROR, number, 1, [1], [1]) for number in range(10)]
        topics = [
            TopicMetadata(NO_ERROR, topic, partitions)
            for topic in request.topics or sorted(self.topics)
        ]
        return MetadataResponse([BrokerEndpoint(1, HOST, PORT)], topics)

    def _log_offsets(self, request: OffsetsRequest) -> OffsetsResponse:
        return OffsetsResponse(
            [
                OffsetsTopicResponse(
                    topic.topic,
                    [
                        OffsetsPartitionResponse(
                            p.partition,
                            self._leader_code(TopicPartition(topic.topic, p.partition)),
                            [0 if p.time_ms == EARLIEST_OFFSET else self.log_end],
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
