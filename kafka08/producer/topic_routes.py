"""TopicRoutes: finds the queues of a topic's partitions, and waits for their metadata."""

from __future__ import annotations

from collections.abc import Callable, Collection
from operator import index
from typing import Final

from kafka08.client.metadata import ClusterMetadata
from kafka08.errors import (
    ApiError,
    AuthenticationFailed,
    InvalidTopic,
    ProducerClosed,
    RequestTimeout,
    TopicMissing,
    UnknownTopicOrPartition,
)
from kafka08.listing import counted, some_of
from kafka08.producer.accumulator import RecordAccumulator
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.producer.partition_queue import PartitionQueue
from kafka08.producer.producer_metadata import ProducerMetadata
from kafka08.producer.topic_route import TopicRoute
from kafka08.runtime import ClientRuntime
from kafka08.structs import TopicPartition, host_port
from kafka08.topic_name import fault_of

CLOSED_POLL_S: Final = 0.5
"""How often a thread that waits for metadata checks whether the producer was closed."""


class TopicRoutes:
    """Thread-safe. Calls wait for metadata up to max.block.ms; not at all in a callback, for that
    would hold up the thread that gets it.

    by_topic        topic → its route; `KafkaProducer.send` looks routes up here
    metadata        of all topics that the producer sends to
    wake_sender     called when metadata is wanted
    is_in_callback  returns whether the caller is the sender's thread
    """

    def __init__(
        self,
        config: KafkaProducerConfig,
        accumulator: RecordAccumulator,
        *,
        wake_sender: Callable[[], object],
        is_in_callback: Callable[[], bool],
        runtime: ClientRuntime,
    ) -> None:
        self.by_topic: dict[str, TopicRoute] = {}
        self.metadata = ProducerMetadata(
            config.bootstrap,
            max_age_s=config.metadata_max_age_ms / 1000,
            backoff_s=config.retry_backoff_ms / 1000,
            on_update=self._update,
            runtime=runtime,
        )
        self._max_block_s = config.metadata_block_s
        self._sticky_bytes = config.batch_size if config.is_sticky else None
        self._accumulator = accumulator
        self._wake_sender = wake_sender
        self._is_in_callback = is_in_callback
        self._runtime = runtime

    def find(self, topic: str) -> TopicRoute:
        """The route of `topic`; requests its metadata if needed (which may create it).

        RequestTimeout after max.block.ms, with the last error, TopicMissing if brokers said to the
        end that there is none; InvalidTopic and AuthenticationFailed at once; TypeError for a topic
        that is not text; ProducerClosed.
        """
        route = self.by_topic.get(topic)
        if route is not None:
            return route
        if not isinstance(topic, str):
            raise TypeError(f"a topic must be a str, not a {type(topic).__name__}")
        if fault := fault_of(topic):
            raise InvalidTopic(fault)
        with self.metadata.awaited(topic) as number:
            return self._await(topic, number)

    def forget(self, topics: Collection[str]) -> None:
        """The producer no longer uses these; `find` looks them up again."""
        for topic in topics:
            self.by_topic.pop(topic, None)
        self.metadata.forget(topics)

    def find_queue(self, route: TopicRoute, topic: str, partition: int) -> PartitionQueue:
        """The queue of a partition; asks for new metadata once if the topic has no such partition,
        for it may have grown. UnknownTopicOrPartition; TypeError for what is no whole number."""
        try:
            partition = index(partition)
        except TypeError:
            raise TypeError(f"a partition must be an int, not {partition!r}") from None
        try:
            return queue_of(route, topic, partition)
        except UnknownTopicOrPartition:
            self._refresh(topic)
            return queue_of(self.by_topic.get(topic, route), topic, partition)

    def _await(self, topic: str, number: int) -> TopicRoute:
        """The route of `topic` as soon as a response after `number` has it."""
        block_s = self._block_s()
        answered_at = self._runtime.monotonic()
        deadline = answered_at + block_s
        while True:
            self._check_open()
            self._wake_sender()
            left = deadline - self._runtime.monotonic()
            former = number
            number = self.metadata.await_update(topic, former, min(left, CLOSED_POLL_S))
            if number != former:
                answered_at = self._runtime.monotonic()
            route = self.by_topic.get(topic)
            if route is not None:
                return route
            info = self.metadata.cluster.topics.get(topic)
            if number != former and info is not None and info.error is InvalidTopic:
                raise InvalidTopic(f"the brokers refuse the topic name {topic!r}")
            if isinstance(failure := self.metadata.failure, AuthenticationFailed):
                raise AuthenticationFailed(str(failure))
            if left <= 0:
                is_missing = (
                    info is not None
                    and info.error is UnknownTopicOrPartition
                    # Behind a silence it says nothing: a mirror would skip messages for good.
                    and answered_at >= deadline - block_s / 2
                )
                raise (TopicMissing if is_missing else RequestTimeout)(
                    f"no metadata of topic {topic} within {block_s * 1000:.0f} ms: "
                    + (self._no_response() if info is None else refused(info.error))
                )

    def _refresh(self, topic: str) -> None:
        """Wait for new metadata, up to max.block.ms. ProducerClosed."""
        deadline = self._runtime.monotonic() + self._block_s()
        with self.metadata.awaited(topic) as number:
            left = self._block_s()
            while left > 0:
                self._check_open()
                self._wake_sender()
                wait_s = min(left, CLOSED_POLL_S)
                if self.metadata.await_update(topic, number, wait_s) != number:
                    return
                left = deadline - self._runtime.monotonic()

    def _check_open(self) -> None:
        if self._accumulator.closed:
            raise ProducerClosed("the producer is closed")

    def _block_s(self) -> float:
        return 0.0 if self._is_in_callback() else self._max_block_s

    def _no_response(self) -> str:
        if self._is_in_callback():
            return "a callback cannot wait for it; call partitions_for before"
        asked = some_of([host_port(host, port) for host, port in self.metadata.addresses])
        why = "" if self.metadata.failure is None else f" ({self.metadata.failure})"
        return (
            f"no broker responded at {asked}{why}; check bootstrap.servers, and that one runs there"
        )

    def _update(self, cluster: ClusterMetadata, topics: Collection[str]) -> None:
        """Apply new metadata of these topics. In the sender's thread."""
        with self._accumulator.lock:
            for topic in topics:
                info = cluster.topics[topic]
                if not info.partitions:
                    if info.error is UnknownTopicOrPartition:
                        # Deleted, or not known to this broker yet: the next record waits for it.
                        self.by_topic.pop(topic, None)
                    continue
                queues = [
                    self._accumulator.queue(TopicPartition(topic, p.partition))
                    for p in info.partitions
                ]
                for partition, queue in zip(info.partitions, queues, strict=True):
                    self._accumulator.set_leader(queue, cluster.brokers.get(partition.leader))
                self.by_topic[topic] = TopicRoute(
                    info.partitions,
                    queues,
                    self._runtime.random,
                    self.by_topic.get(topic),
                    sticky_bytes=self._sticky_bytes,
                )


def refused(error: type[ApiError] | None) -> str:
    """Why brokers that respond have no partitions for a topic."""
    name = "no partitions" if error is None else f"{error.__name__} ({error.code})"
    return f"the brokers said {name}; check that the topic exists, or that brokers may create it"


def queue_of(route: TopicRoute, topic: str, partition: int) -> PartitionQueue:
    """The queue of a partition by its number; UnknownTopicOrPartition."""
    queue = route.by_number.get(partition)
    if queue is not None:
        return queue
    raise UnknownTopicOrPartition(
        f"{TopicPartition(topic, partition)}: the topic has "
        f"{counted(len(route.partitions), 'partition')}"
    )
