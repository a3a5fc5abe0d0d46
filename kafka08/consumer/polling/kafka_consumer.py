"""KafkaConsumer: polls brokers for messages, alone or as a member of a group with a coordinator.

    with KafkaConsumer(bootstrap_servers="localhost:9092", group_id="readers") as consumer:
        consumer.subscribe(["pages"])
        while True:
            for message in consumer.poll(timeout=1.0):
                print(message.topic, message.partition, message.offset, message.value)

What it guarantees is in docs/kafka-consumer.md. Source:
org.apache.kafka.clients.consumer.KafkaConsumer 0.10.2.2.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from kafka08.client.metadata import PartitionInfo
from kafka08.consumer.batch import Batches, BatchLimits, MessageBatch
from kafka08.consumer.polling.assignors import Assignor
from kafka08.consumer.polling.committer import CommitCallback, Offsets
from kafka08.consumer.polling.deserializers import Deserializer
from kafka08.consumer.polling.interceptors import ConsumerInterceptor, Interceptors
from kafka08.consumer.polling.kafka_consumer_config import KafkaConsumerConfig, check_assignors
from kafka08.consumer.polling.partitions import Start
from kafka08.consumer.polling.polled_stream import Message
from kafka08.consumer.polling.poller import Poller, RebalanceCallback, check_partitions
from kafka08.consumer.polling.questions import OffsetAndTimestamp, Questions
from kafka08.consumer.polling.subscription import Chosen, Pattern, Topics, parse_topics
from kafka08.consumer.subscription import TopicFilter
from kafka08.errors import Closed, ConfigError
from kafka08.lifecycle import Closeable
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS
from kafka08.structs import OffsetAndMetadata, TopicPartition

API_TIMEOUT_S: Final = 60.0
"""How long calls wait for brokers that are not given another time."""
CLOSE_TIMEOUT_S: Final = 30.0
WAIT_S: Final = 1.0
"""How often an iteration that waits looks whether something has failed for long."""


class KafkaConsumer(Closeable):
    """For brokers from 0.9 on. One thread at a time uses it (RuntimeError); any thread, and a
    signal handler, may call `wakeup`.

    `assignors`, `interceptors` and the deserializers win over the configured ones. Times of
    arguments are seconds. Every call that waits for brokers raises WokenUp after `wakeup`.
    """

    def __init__(
        self,
        config: KafkaConsumerConfig | None = None,
        *,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        assignors: Sequence[Assignor] = (),
        interceptors: Sequence[ConsumerInterceptor] = (),
        runtime: ClientRuntime = THREADS,
        **keywords: Any,
    ) -> None:
        """Of `config`, or of its keys as keywords: `group_id="readers"` is group.id. ConfigError. A
        type checker knows the keywords of KafkaConsumerConfig alone."""
        if config is None:
            config = KafkaConsumerConfig(**keywords)
        elif keywords:
            raise ConfigError("give the KafkaConsumer a configuration or keywords, not both")
        self.config = config
        config.log_notes()
        chosen = list(assignors) or config.assignors()
        check_assignors(chosen)
        configured = config.deserializers()
        self._interceptors = Interceptors([*interceptors] or config.interceptors())
        self._runtime = runtime
        self._poller = Poller(
            config,
            deserializers=(key_deserializer or configured[0], value_deserializer or configured[1]),
            assignors=chosen,
            interceptors=self._interceptors,
            runtime=runtime,
        )
        self._stream = self._poller.stream
        self._partitions = self._poller.partitions
        self._questions = Questions(self._poller, config.group_id, runtime)
        self._lock = runtime.lock()
        self._user: object = None
        """The task that uses it now."""

    def __repr__(self) -> str:
        of_group = f" in group {self.config.group_id}" if self.config.group_id else ""
        ended = ", closed" if self._poller.is_closed else ""
        return f"<KafkaConsumer of {self.config.bootstrap_servers}{of_group}{ended}>"

    # ------------------------------------------------------------------------------ subscriptions

    def subscribe(
        self,
        topics: str | Iterable[str] | re.Pattern[str] | TopicFilter,
        *,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
    ) -> None:
        """Share these topics with the group, instead of what was subscribed to before; all whose
        whole name matches, if it is a pattern. No topics: `unsubscribe`. Takes effect in `poll`.

        `on_revoked(partitions)` is called before partitions are given up: commits in it count,
        unless the member was thrown out. `on_assigned(partitions)` is called after each rebalance;
        a `seek` in it decides where reading begins. Both run in the thread that polls; what they
        raise, `poll` raises.

        ConfigError without group.id, ValueError for an illegal name, RuntimeError beside `assign`.
        """
        wanted = parse_topics(topics, exclude_internal_topics=self.config.exclude_internal_topics)
        with self._use():
            if isinstance(wanted, Topics) and not wanted.names:
                self._poller.unsubscribe()
                return
            self._check_kind(type(wanted))
            if not self.config.group_id:
                raise ConfigError("group.id: is needed to subscribe; without a group, use assign")
            self._poller.subscribe(wanted, on_assigned, on_revoked)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions, without sharing them; those that were read before stay where they
        are. With group.id, offsets are committed, and are where reading begins. No partitions:
        `unsubscribe`. RuntimeError beside `subscribe`."""
        chosen = Chosen(tuple(dict.fromkeys(TopicPartition(*tp) for tp in partitions)))
        with self._use():
            if not chosen.partitions:
                self._poller.unsubscribe()
                return
            self._check_kind(Chosen)
            self._poller.assign(chosen)

    def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group. Calls no callback and commits nothing."""
        with self._use():
            self._poller.unsubscribe()

    def subscription(self) -> set[str]:
        """The topics subscribed to; of a pattern, those that are known to match."""
        match self._poller.subscription:
            case Topics(names):
                return set(names)
            case Pattern() as pattern:
                return set(pattern.of(self._poller.cluster.metadata.topics))
        return set()

    def assignment(self) -> set[TopicPartition]:
        """The partitions that it reads; none before a poll has joined the group."""
        return set(self._partitions)

    # ------------------------------------------------------------------------------------- reading

    def poll(self, timeout: float = 0.0) -> list[Message]:
        """Up to max.poll.records messages, as soon as there are some; none after `timeout`, which
        holds for joining the group and finding positions as well.

        The messages of the last poll count as finished by then. Raises what has failed for long,
        when it has no messages to give instead; once PollIntervalExceeded; and again and again
        until you seek or configure otherwise: NoOffsetForPartition, OffsetOutOfRange,
        DeserializationFailed, InvalidMessage, MessageTooLarge, and what the group refuses.
        """
        with self._use():
            take = partial(self._stream.take, self.config.max_poll_records)
            messages = self._poller.next(take, timeout) or []
            return self._interceptors.on_consume(messages) if messages else messages

    def __iter__(self) -> Iterator[Message]:
        """The messages one by one, without end. A message is finished when the next one is asked
        for, or at `commit`. Raises as `poll`; iterate again after that."""
        while True:
            with self._use():
                found = self._poller.next(self._stream.iterate, WAIT_S) or iter(())
            if self._interceptors:
                # One by one: what they were given beyond the message in hand would count as
                # handed out, and be left out where the iteration ends.
                for message in found:
                    yield from self._interceptors.on_consume([message])
            else:
                yield from found

    def batches(
        self,
        max_messages: int = BatchLimits().max_messages,
        max_bytes: int = BatchLimits().max_bytes,
    ) -> Batches:
        """The messages in batches, each of one partition, without end, as KafkaStream.batches.
        Deserializers and interceptors are not called. A batch is finished when the next one is
        asked for, or at `commit`. Raises as `poll`, and may be asked again."""
        limits = BatchLimits(max_messages, max_bytes)
        if max_messages < 1 or max_bytes < 0:
            raise ValueError(f"{limits}: at least one message, and no less than 0 bytes")
        return Batches(partial(self._next_batch, limits))

    def _next_batch(self, limits: BatchLimits) -> MessageBatch:
        while (batch := self.poll_batch(WAIT_S, *limits)) is None:
            pass
        return batch

    def poll_batch(
        self,
        timeout: float = 0.0,
        max_messages: int = BatchLimits().max_messages,
        max_bytes: int = BatchLimits().max_bytes,
    ) -> MessageBatch | None:
        """One batch as `batches` has it; None after `timeout`."""
        with self._use():
            limits = BatchLimits(max_messages, max_bytes)
            return self._poller.next(partial(self._stream.take_batch, limits), timeout)

    def wakeup(self) -> None:
        """Have the call that waits in another thread, or the next one that would, raise WokenUp."""
        self._poller.wake_up()

    # ------------------------------------------------------------------------------------ positions

    def position(self, partition: TopicPartition, timeout: float = API_TIMEOUT_S) -> int:
        """The offset of the next message, looked up if it is not known yet. ValueError for one that
        is not assigned, NoOffsetForPartition, RequestTimeout."""
        with self._use(partition):
            return self._poller.find(partition, self._runtime.monotonic() + timeout)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at `offset`. ValueError for a negative one, and if `partition` is not assigned."""
        if offset < 0:
            raise ValueError(f"{offset} is no offset to seek to: the lowest is 0")
        with self._use(partition):
            self._partitions.seek({partition: offset})

    def skip_damaged(self) -> tuple[TopicPartition, int] | None:
        """Go on behind the damaged message that the last InvalidMessage was about. Its partition
        and where that goes on; None if there is no such message, or its offset is not known."""
        with self._use():
            return self._stream.skip_damaged()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on at the start of the log, which the next poll finds. No arguments: of all."""
        with self._use(*partitions):
            self._partitions.reset(partitions or list(self._partitions), Start.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on at the end of the log, which the next poll finds. No arguments: of all."""
        with self._use(*partitions):
            self._partitions.reset(partitions or list(self._partitions), Start.LATEST)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these until `resume`. A rebalance ends it."""
        with self._use(*partitions):
            self._partitions.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with these."""
        with self._use(*partitions):
            self._partitions.resume(partitions)

    def paused(self) -> set[TopicPartition]:
        """Those that `pause` holds."""
        return set(self._partitions.paused)

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets are behind the position, by the high watermark of the last fetch; None
        before there was one."""
        with self._use(partition):
            end, position = (
                self._partitions.high_watermark(partition),
                self._partitions.position(partition),
            )
            return None if end is None or position is None else max(0, end - position)

    def metrics(self) -> dict[str, dict[str, float]]:
        """What was fetched and how far this consumer is behind, by Java's names:
        `consumer-fetch-manager-metrics` with `records-lag-max`, the same of each partition, and
        `consumer-coordinator-metrics`."""
        with self._use():
            positions = self._partitions.positions()
            lags = {
                tp: max(0, end - position)
                for tp, position in positions.items()
                if (end := self._partitions.high_watermark(tp)) is not None
            }
            return self._poller.fetch_metrics.values(lags)

    # -------------------------------------------------------------------------------------- commits

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        timeout: float = API_TIMEOUT_S,
    ) -> None:
        """Commit these offsets (of the next message to read), or all positions: what was handed out
        is finished then. Java: commitSync. Waits, and tries again what may pass.

        CommitFailed if the group goes on without this member: nothing was stored. RequestTimeout
        after `timeout`: it may be stored later. The other errors of the coordinator.
        """
        with self._use():
            self._check_group()
            self._poller.commit(as_offsets(offsets), timeout)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """As `commit`, without waiting and with one attempt. A later poll or commit calls
        `callback(offsets, error)`; without one a failure is logged."""
        with self._use():
            self._check_group()
            self._poller.commit_async(as_offsets(offsets), callback)

    def committed(
        self, *partitions: TopicPartition, timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed, asked of its coordinator; None where nothing is. No
        arguments: of all that are assigned."""
        with self._use():
            self._check_group()
            return self._questions.committed(partitions or list(self._partitions), timeout)

    # ---------------------------------------------------------------------------------- the cluster

    def list_topics(self, timeout: float = API_TIMEOUT_S) -> dict[str, tuple[PartitionInfo, ...]]:
        """All topics with their partitions."""
        with self._use():
            return self._questions.topics(timeout)

    def partitions_for(
        self, topic: str, timeout: float = API_TIMEOUT_S
    ) -> tuple[PartitionInfo, ...]:
        """The partitions of `topic`; brokers may create it. UnknownTopicOrPartition."""
        with self._use():
            return self._questions.partitions(topic, timeout)

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """The first offset of each log."""
        with self._use():
            return self._questions.beginning_offsets(partitions, timeout)

    def end_offsets(
        self, partitions: Collection[TopicPartition], timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """The first offset of each log that consumers may not see yet."""
        with self._use():
            return self._questions.end_offsets(partitions, timeout)

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first message of each partition whose timestamp is at or after a time in ms; None if
        there is none. UnsupportedVersion by brokers before 0.10.1, UnsupportedForMessageFormat of a
        topic without timestamps, ValueError for a negative time."""
        for tp, time_ms in times.items():
            if time_ms < 0:
                raise ValueError(f"{tp}: {time_ms} is no time in ms")
        with self._use():
            return self._questions.offsets_for_times(times, timeout)

    # ------------------------------------------------------------------------------------------ end

    def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Commit what is finished, if enable.auto.commit is set, leave the group, and end, all in
        `timeout`. What was handed out last is finished only if a `commit` came after it, or a
        `with` block ended without an exception. Calls no callback of `subscribe`."""
        if self._poller.is_closed:
            return
        with self._use():
            self._poller.close(timeout)

    def __exit__(self, *failure: object) -> None:
        if not any(failure):
            self._stream.finish()
        self.close()

    # ----------------------------------------------------------------------------------- its parts

    @contextmanager
    def _use(self, *partitions: TopicPartition) -> Iterator[None]:
        """For the time of a call. RuntimeError if another thread is in one, Closed, ValueError if
        one of `partitions` is not assigned."""
        user = self._runtime.current_task()
        is_nested = self._user is user
        if not is_nested:
            if not self._lock.acquire(blocking=False):
                raise RuntimeError("a KafkaConsumer is used by one thread at a time")
            self._user = user
        try:
            if self._poller.is_closed:
                raise Closed("the consumer is closed")
            check_partitions(self._partitions, partitions)
            yield
        finally:
            if not is_nested:
                self._user = None
                self._lock.release()

    def _check_kind(self, kind: type[Topics | Pattern | Chosen]) -> None:
        now = self._poller.subscription
        if now is not None and type(now) is not kind:
            raise RuntimeError(
                "subscriptions to topics, to a pattern, and to partitions exclude each other: call "
                "unsubscribe first"
            )

    def _check_group(self) -> None:
        if not self.config.group_id:
            raise ConfigError("group.id: is needed to commit, and to read what was committed")


def as_offsets(offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None) -> Offsets | None:
    """ValueError for a negative offset."""
    if offsets is None:
        return None
    found = {
        TopicPartition(*tp): OffsetAndMetadata(one) if isinstance(one, int) else one
        for tp, one in offsets.items()
    }
    for tp, one in found.items():
        if one.offset < 0:
            raise ValueError(f"{tp}: {one.offset} is no offset to commit: the lowest is 0")
    return found
