"""The high-level consumer: a member of a group that shares the partitions of its topics.

    config = ConsumerConfig(group_id="readers", zookeeper_connect="host:2181")
    with ConsumerConnector(config) as connector:
        [stream] = connector.create_message_streams({"pages": 1})["pages"]
        for message in stream:
            print(message.offset, message.value)

Leaving the block, also by Ctrl-C, commits finished messages and leaves the group.

The connector's threads are named after its consumer id: `_watcher_executor` (rebalances),
`-leader-finder-thread`, one `ConsumerFetcherThread-` per leader, `-autocommit`, `-unread-streams`
(with several streams), and kazoo's. The reader's own thread decodes messages.
Source: kafka.consumer.ZookeeperConsumerConnector 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from kafka08.consumer.fetching.stream import Decoder
from kafka08.consumer.subscription import (
    FilterSubscription,
    StaticSubscription,
    TopicFilter,
)
from kafka08.consumer.zookeeper.assignors import Assignment
from kafka08.consumer.zookeeper.config import ConsumerConfig
from kafka08.consumer.zookeeper.kafka_stream import KafkaStream
from kafka08.consumer.zookeeper.member import Streams, ZooKeeperMember
from kafka08.consumer.zookeeper.rebalancer import OnChange
from kafka08.consumer.zookeeper.status import ConsumerState
from kafka08.errors import (
    ConfigError,
    KafkaError,
)
from kafka08.lifecycle import ProcessBound, end_dropped, warn_unclosed
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS, ThreadRuntime
from kafka08.structs import TopicPartition
from kafka08.topic_name import fault_of
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.migration_protocol import OffsetStorage
from kafka08.zk.nodes import MEMBER_STREAMS_MAX, STREAMS_MAX

K = TypeVar("K")
V = TypeVar("V")


class ConsumerConnector(ProcessBound):
    """One member of the group `group.id`. Connects to ZooKeeper at once, joins the group when its
    streams are created, leaves it in `shutdown`. Thread-safe. Raises ZooKeeperError. If the program
    drops it and its streams without a shutdown, there is a ResourceWarning, and a shutdown follows.

    timestamps   whether batches have the timestamps of messages: each broker is asked whether it
                 sends them, for which a broker of 0.8 closes the connection
    """

    def __init__(
        self,
        config: ConsumerConfig,
        *,
        timestamps: bool = False,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        config.log_notes()
        self.config = config
        self._is_simulated = not isinstance(runtime, ThreadRuntime)
        self._member = self._make_member(config, timestamps, runtime)
        self.consumer_id = self._member.consumer_id

    def _make_member(self, *given: Any) -> ZooKeeperMember:
        return ZooKeeperMember(*given)

    @property
    def state(self) -> ConsumerState:
        return self._member.status.state

    @property
    def stall_cause(self) -> KafkaError | None:
        """Why the member is STALLED; None if it is not."""
        return self._member.status.stall_cause

    @property
    def storage(self) -> OffsetStorage | None:
        """The store to which this member commits now; a migration of its group may change it. None
        before streams are created."""
        return self._member.storage

    def metrics(self) -> dict[str, dict[str, float]]:
        """Fetch rates and lag under Java's names: `consumer-fetch-manager-metrics` with
        `records-lag-max`, the same for each partition, and `consumer-coordinator-metrics`."""
        return self._member.metrics()

    @property
    def assignment(self) -> Assignment:
        """partition → thread id of the stream that reads it, for each partition owned now."""
        return self._member.assignment

    def thread_of(self, tp: TopicPartition) -> str | None:
        """Thread id of the stream that reads a partition; None if it is not owned. Its cost does
        not grow with the partitions, as that of `assignment` does."""
        return self._member.thread_of(tp)

    @overload
    def create_message_streams(
        self,
        topic_streams: Mapping[str, int],
        key_decoder: None = None,
        value_decoder: None = None,
    ) -> dict[str, list[KafkaStream[bytes, bytes]]]: ...

    @overload
    def create_message_streams(
        self,
        topic_streams: Mapping[str, int],
        key_decoder: Callable[[bytes], K],
        value_decoder: None = None,
    ) -> dict[str, list[KafkaStream[K, bytes]]]: ...

    @overload
    def create_message_streams(
        self,
        topic_streams: Mapping[str, int],
        key_decoder: None = None,
        *,
        value_decoder: Callable[[bytes], V],
    ) -> dict[str, list[KafkaStream[bytes, V]]]: ...

    @overload
    def create_message_streams(
        self,
        topic_streams: Mapping[str, int],
        key_decoder: Callable[[bytes], K],
        value_decoder: Callable[[bytes], V],
    ) -> dict[str, list[KafkaStream[K, V]]]: ...

    def create_message_streams(
        self,
        topic_streams: Mapping[str, int],
        key_decoder: Decoder | None = None,
        value_decoder: Decoder | None = None,
    ) -> dict[str, list[KafkaStream[Any, Any]]]:
        """Join the group for the named topics, each with its number of streams (at least 1). The
        streams of a topic share those of its partitions that this member owns.

        Returns after the first rebalance, or when it has stalled (the streams then raise that
        error). Raises MessageStreamsExist on a second call, ConfigError for an illegal topic name
        or number.
        """
        for topic, count in topic_streams.items():
            if fault := fault_of(topic):
                raise ConfigError(fault)
            if not 1 <= count <= STREAMS_MAX:
                raise ConfigError(
                    f"topic {topic}: {count} streams; the range is 1 to {STREAMS_MAX}"
                )
        if (total := sum(topic_streams.values())) > MEMBER_STREAMS_MAX:
            raise ConfigError(f"{total} streams in all; the maximum is {MEMBER_STREAMS_MAX}")
        streams: Streams = {
            (topic, f"{self.consumer_id}-{number}"): self._member.stream(key_decoder, value_decoder)
            for topic, count in topic_streams.items()
            for number in range(count)
        }
        self._member.join_group(StaticSubscription(dict(topic_streams)), streams)
        return {
            topic: [
                KafkaStream(s, thread, self) for (of, thread), s in streams.items() if of == topic
            ]
            for topic in topic_streams
        }

    @overload
    def create_message_streams_by_filter(
        self,
        topic_filter: TopicFilter,
        num_streams: int = 1,
        key_decoder: None = None,
        value_decoder: None = None,
    ) -> list[KafkaStream[bytes, bytes]]: ...

    @overload
    def create_message_streams_by_filter(
        self,
        topic_filter: TopicFilter,
        num_streams: int = 1,
        *,
        key_decoder: Callable[[bytes], K],
        value_decoder: None = None,
    ) -> list[KafkaStream[K, bytes]]: ...

    @overload
    def create_message_streams_by_filter(
        self,
        topic_filter: TopicFilter,
        num_streams: int = 1,
        key_decoder: None = None,
        *,
        value_decoder: Callable[[bytes], V],
    ) -> list[KafkaStream[bytes, V]]: ...

    @overload
    def create_message_streams_by_filter(
        self,
        topic_filter: TopicFilter,
        num_streams: int = 1,
        *,
        key_decoder: Callable[[bytes], K],
        value_decoder: Callable[[bytes], V],
    ) -> list[KafkaStream[K, V]]: ...

    def create_message_streams_by_filter(
        self,
        topic_filter: TopicFilter,
        num_streams: int = 1,
        key_decoder: Decoder | None = None,
        value_decoder: Decoder | None = None,
    ) -> list[KafkaStream[Any, Any]]:
        """Join the group for all topics that the filter allows, now or later. `num_streams` streams
        share their partitions. Returns and raises as `create_message_streams` does."""
        if not 1 <= num_streams <= STREAMS_MAX:
            raise ConfigError(f"{num_streams} streams; the range is 1 to {STREAMS_MAX}")
        streams: Streams = {
            (None, f"{self.consumer_id}-{number}"): self._member.stream(key_decoder, value_decoder)
            for number in range(num_streams)
        }
        exclude = self.config.exclude_internal_topics
        self._member.join_group(FilterSubscription(topic_filter, num_streams, exclude), streams)
        return [KafkaStream(stream, thread, self) for (_, thread), stream in streams.items()]

    def set_rebalance_callbacks(
        self, *, on_assigned: OnChange | None = None, on_revoked: OnChange | None = None
    ) -> None:
        """Call these with a list of partitions when they were assigned, before they are fetched,
        and when they are revoked: no message of them is returned any more, and `commit_offsets` of
        chosen offsets still counts, unless the ZooKeeper session was lost. A shutdown calls none.
        In the rebalancer's thread, so the group waits for them; what they raise is logged. Call it
        before streams are created: MessageStreamsExist. Java: setConsumerRebalanceListener."""
        self._member.set_callbacks(on_assigned, on_revoked)

    def commit_offsets(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit the finished messages of every owned partition; the message that the calling
        thread is processing counts as finished. Or commit these `offsets`, each that of the next
        message to read, for a program that processes messages later or elsewhere: an automatic
        commit would go beyond them (auto.commit.enable). ValueError for one that is not owned.

        Retries offsets.commit.max.retries times if the error may pass, then raises it. SessionLost
        while the ZooKeeper session is in doubt.

        Waits while a rebalance fetches committed offsets: if the coordinator does not respond, up
        to rebalance.max.retries × rebalance.backoff.ms. KafkaError after 30 s."""
        self._member.commit(offsets)

    def shutdown(self) -> None:
        """End the streams, commit finished messages (with auto.commit.enable), leave the group. A
        message that a thread is processing is not finished unless that thread has committed it.

        May be called from any thread, from a signal handler, and repeatedly. In any state it takes
        at most the timeouts of a commit and of ZooKeeper; a commit that fails is logged."""
        self._member.shutdown()

    def delete_group(self) -> None:
        """Remove the group from ZooKeeper, offsets included, after `shutdown`. For groups that were
        created for a single run. Raises KafkaError if the group has members."""
        assert self._member.is_closing, "a member cannot delete its own group"
        group = self.config.group_id
        with ZkClient(self.config.zookeeper_connect, name=f"removal of {group}") as zk:
            if members := zk.children_or_empty(paths.consumer_ids(group)):
                raise KafkaError(f"group {group} has members: {', '.join(members)}")
            zk.delete_recursive(paths.group(group))

    def __repr__(self) -> str:
        state = self.state.name.lower()
        return f"<ConsumerConnector {self.consumer_id}: {state}, {len(self.assignment)} partitions>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()

    def _drop(self) -> None:
        member = getattr(self, "_member", None)
        if member is not None and not member.is_closing:
            end_dropped(member.shutdown)
            warn_unclosed(self)
