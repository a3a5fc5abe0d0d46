"""KafkaConsumer: polls brokers for messages, standalone or as a member of a coordinated group.

    with KafkaConsumer(bootstrap_servers="localhost:9092", group_id="readers") as consumer:
        consumer.subscribe(["pages"])
        while True:
            for message in consumer.poll(timeout=1.0):
                print(message.topic, message.partition, message.offset, message.value)

docs/kafka-consumer.md states its guarantees. Source:
org.apache.kafka.clients.consumer.KafkaConsumer 0.10.2.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from operator import index
from typing import Any, Final, TypeVar

from kafka08.client.metadata import PartitionInfo
from kafka08.consumer.fetching.batch import Batches, BatchLimits, MessageBatch
from kafka08.consumer.fetching.owned_partition import Position
from kafka08.consumer.group.assignors import Assignor
from kafka08.consumer.group.broker_queries import BrokerQueries, OffsetAndTimestamp
from kafka08.consumer.group.committer import CommitCallback, Offsets
from kafka08.consumer.group.deserializers import Deserializer
from kafka08.consumer.group.interceptors import ConsumerInterceptor, Interceptors
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig, check_assignors
from kafka08.consumer.group.partitions import Partitions, Start
from kafka08.consumer.group.polled_stream import Message
from kafka08.consumer.group.poller import Poller, RebalanceCallback
from kafka08.consumer.group.subscription import (
    Chosen,
    Pattern,
    Topics,
    parse_partitions,
    parse_topics,
)
from kafka08.consumer.subscription import TopicFilter
from kafka08.errors import Closed, ConfigError, KafkaError
from kafka08.lifecycle import Closeable, end_dropped, warn_unclosed
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS, ThreadRuntime
from kafka08.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

API_TIMEOUT_S: Final = 60.0
"""How long calls wait for brokers if the caller gives no timeout."""
CLOSE_TIMEOUT_S: Final = 30.0
WAIT_S: Final = 1.0
"""How often a waiting iteration checks for failures that last."""
CALL: Final = "call"
ITERATION: Final = "iteration"
T = TypeVar("T")


class _OtherThread(RuntimeError):
    """A thread uses a consumer that another one uses."""

    def __str__(self) -> str:
        return (
            "a KafkaConsumer may be used by only one thread at a time: another one is in a call, "
            "or has a message of an iteration. `wakeup` is for any thread"
        )


class KafkaConsumer(Closeable):
    """A consumer for brokers from 0.9 on. Not thread-safe: two threads at a time cause a
    RuntimeError, also while one of them processes a message of an iteration. Any thread, and a
    signal handler, may call `wakeup`.

    `assignors`, `interceptors` and deserializers given as arguments replace the configured ones.
    Timeouts are in seconds. Every call that waits for brokers raises WokenUp after `wakeup`.
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
        """Takes `config`, or its keys as keywords: `group_id="readers"` is group.id. Type checkers
        know only the keywords of KafkaConsumerConfig. Raises ConfigError."""
        config = KafkaConsumerConfig.given_to("KafkaConsumer", config, keywords)
        self.config = config
        config.log_notes()
        chosen = list(assignors) or config.assignors()
        check_assignors(chosen)
        configured = config.deserializers()
        self._interceptors = Interceptors([*interceptors] or config.interceptors())
        self._runtime = runtime
        self._is_simulated = not isinstance(runtime, ThreadRuntime)
        self._poller = Poller(
            config,
            deserializers=(key_deserializer or configured[0], value_deserializer or configured[1]),
            assignors=chosen,
            interceptors=self._interceptors,
            runtime=runtime,
        )
        self._stream = self._poller.stream
        self._partitions = self._poller.partitions
        self._queries = BrokerQueries(self._poller, config.group_id, config.isolation, runtime)
        self._users: dict[str, object] = {}
        """CALL: the task that is in a method now. ITERATION: the one that has the message of an
        iteration. Claimed and released in one step each, for a signal handler may raise between
        two."""

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
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Subscribe to these topics, or to all whose whole name matches a pattern; replaces the
        previous subscription. No topics: `unsubscribe`. Takes effect in `poll`.

        Java: ConsumerRebalanceListener. `on_revoked(partitions)` is called before partitions are
        revoked: it can still commit. `on_lost(partitions)`, by default on_revoked, is called
        instead if the group has removed the member: others may have them already.
        `on_assigned(partitions)` is called after each rebalance with the new ones; a `seek` in it
        sets the position. All run in the thread that polls; `poll` raises what they raise.

        ConfigError without group.id, ValueError for an illegal name, RuntimeError after `assign`.
        """
        wanted = parse_topics(topics, exclude_internal_topics=self.config.exclude_internal_topics)
        with self._use():
            if isinstance(wanted, Topics) and not wanted.names:
                self._poller.unsubscribe()
                return
            self._check_kind(type(wanted))
            if not self.config.group_id:
                raise ConfigError("group.id: required for subscribe; without a group, use assign")
            self._poller.subscribe(wanted, on_assigned, on_revoked, on_lost)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions, without a group assignment; partitions that were assigned before
        keep their positions. With group.id, offsets are committed, and reading starts at the
        committed ones. No partitions: `unsubscribe`. RuntimeError after `subscribe`."""
        chosen = Chosen(tuple(parse_partitions(partitions)))
        with self._use():
            if not chosen.partitions:
                self._poller.unsubscribe()
                return
            self._check_kind(Chosen)
            self._poller.assign(chosen)

    def unsubscribe(self) -> None:
        """Stop reading and leave the group. Calls no callback and commits nothing."""
        with self._use():
            self._poller.unsubscribe()

    def subscription(self) -> set[str]:
        """The subscribed topics; for a pattern, the known topics that match."""
        match self._poller.subscription:
            case Topics(names):
                return set(names)
            case Pattern() as pattern:
                return set(pattern.of(self._poller.cluster.metadata.topics))
        return set()

    def assignment(self) -> set[TopicPartition]:
        """The assigned partitions; none before a poll has joined the group."""
        return set(self._partitions)

    # ------------------------------------------------------------------------------------- reading

    def poll(self, timeout: float = 0.0) -> list[Message]:
        """Up to max.poll.records messages, as soon as some arrive; none after `timeout`, which
        includes joining the group and finding positions.

        The call marks the messages of the previous poll as finished. It raises a lasting failure
        if it has no messages to return instead; PollIntervalExceeded once; and at every call,
        until you seek or change the configuration: NoOffsetForPartition, OffsetOutOfRange,
        DeserializationFailed, InvalidMessage, MessageTooLarge, and refusals of the group.
        """
        take = partial(self._stream.take, self.config.max_poll_records)
        return self._taken(take, timeout, self._interceptors.on_consume) or []

    def __iter__(self) -> Iterator[Message]:
        """Yields messages one by one, until the consumer is closed. A message is finished when the
        next one is requested, or at `commit`. Raises like `poll`; it can go on after that."""
        # A generator would end with any error, also one that another thread gets from it.
        return chain.from_iterable(_Iteration(self))

    def iterated(self) -> Iterator[Message]:
        """The messages of the next fetched set, none after WAIT_S. The calling task reads them: it
        is the one of an iteration."""
        with self._use():
            found = self._poller.next(self._stream.iterate, WAIT_S) or iter(())
            self._users[ITERATION] = self._runtime.current_task()
        return self._seen(found) if self._interceptors else found

    def _end_iteration(self, user: object) -> None:
        if user is not None and self._users.get(ITERATION) is user:
            del self._users[ITERATION]

    def _seen(self, found: Iterator[Message]) -> Iterator[Message]:
        """The interceptors' results. They get the messages one by one: those beyond the current one
        would count as consumed, and be skipped where the iteration ends."""
        for message in found:
            try:
                seen = self._interceptors.on_consume([message])
            except BaseException:
                self.read_again()
                raise
            yield from seen

    def batches(
        self,
        max_messages: int = BatchLimits().max_messages,
        max_bytes: int = BatchLimits().max_bytes,
    ) -> Batches:
        """Yields batches of messages, each of one partition, until the consumer is closed, like
        KafkaStream.batches.
        Does not call deserializers and interceptors. A batch is finished when the next one is
        requested, or at `commit`. Raises like `poll`; iterate again after that."""
        limits = BatchLimits(max_messages, max_bytes)
        limits.check()
        return Batches(lambda: self._next_batch(limits))

    def _next_batch(self, limits: BatchLimits) -> MessageBatch:
        while not self._poller.is_closed:
            try:
                batch = self.poll_batch(WAIT_S, limits.max_messages, limits.max_bytes)
            except Closed:  # by a signal handler, meanwhile
                break
            if batch is not None:
                return batch
        raise StopIteration

    def poll_batch(
        self,
        timeout: float = 0.0,
        max_messages: int = BatchLimits().max_messages,
        max_bytes: int = BatchLimits().max_bytes,
    ) -> MessageBatch | None:
        """One batch as `batches` yields it; None after `timeout`."""
        limits = BatchLimits(max_messages, max_bytes)
        return self._taken(partial(self._stream.take_batch, limits), timeout)

    def _taken(
        self,
        take: Callable[[float], T | None],
        timeout: float,
        see: Callable[[T], T] | None = None,
    ) -> T | None:
        """The result of a poll, which `see` gets first. If a signal handler raises before the
        caller has it, its messages are read again."""
        polls = None
        try:
            with self._use():
                polls = self._stream.polls
                found = self._poller.next(take, timeout)
                return found if found is None or see is None else see(found)
        except BaseException:
            if polls is not None and self._stream.polls > polls:
                self.read_again()
            raise

    def read_again(self) -> None:
        """Go back to the first message that was returned and is not finished."""
        if not self._poller.is_closed and (back := self._stream.unfinished_from):
            with self._use():
                self._partitions.read_again(back)

    @property
    def stall_cause(self) -> KafkaError | None:
        """The failure because of which polls have no messages now; None without one. The consumer
        retries what failed; once that has lasted 30 s, polls raise it."""
        return self._poller.failure(0.0)

    def wakeup(self) -> None:
        """Make the call that waits in another thread, or the next that waits, raise WokenUp."""
        self._poller.wake_up()

    # ------------------------------------------------------------------------------------ positions

    def position(self, partition: TopicPartition, timeout: float = API_TIMEOUT_S) -> int:
        """The offset of the next message; asks the brokers if it is unknown. ValueError if
        `partition` is not assigned, NoOffsetForPartition, RequestTimeout."""
        with self._use(partition):
            return self._poller.find(partition, self._runtime.monotonic() + timeout)

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offset of the next message of each assigned partition where it is known, with the
        leader epoch of the message before it: for `send_offsets_to_transaction`, or a store of your
        own from which `seek` takes them back. The messages stay unfinished."""
        with self._use():
            return dict(self._poller.positions())

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue at `offset`; if it has a leader epoch, as one from `committed` or `positions`,
        messages before it that were lost since are noticed. ValueError if it is negative or
        `partition` is not assigned."""
        if isinstance(offset, OffsetAndMetadata):
            wanted = Position(offset.offset, offset.leader_epoch)
        else:
            wanted = Position(index(offset))
        if wanted.offset < 0:
            raise ValueError(f"cannot seek to {wanted.offset}: the lowest offset is 0")
        with self._use(partition):
            self._partitions.seek({partition: wanted})

    def skip_damaged(self) -> tuple[TopicPartition, int] | None:
        """Continue behind the damaged message that the last InvalidMessage reported. Returns its
        partition and the new position; None without such a message or if its offset is unknown."""
        with self._use():
            return self._stream.skip_damaged()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue at the start of the log, which the next poll looks up. No arguments: all that
        are assigned. ValueError if none is."""
        with self._use(*partitions):
            self._poller.reset(partitions or self._all_assigned(), Start.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue at the end of the log, which the next poll looks up. No arguments: all that are
        assigned. ValueError if none is."""
        with self._use(*partitions):
            self._poller.reset(partitions or self._all_assigned(), Start.LATEST)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no messages of these until `resume`. A rebalance ends the pause."""
        with self._use(*partitions):
            self._partitions.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """End the pause of these."""
        with self._use(*partitions):
            self._partitions.resume(partitions)

    def paused(self) -> set[TopicPartition]:
        """The paused partitions."""
        return set(self._partitions.paused)

    def lag(self, partition: TopicPartition) -> int | None:
        """Offsets from the position to the high watermark of the last fetch; None before the first
        fetch, and while it is paused."""
        with self._use(partition):
            end, position = (
                self._partitions.high_watermark(partition),
                self._partitions.position(partition),
            )
            return None if end is None or position is None else max(0, end - position)

    def metrics(self) -> dict[str, dict[str, float]]:
        """Fetch rates and lag by Java's names: `consumer-fetch-manager-metrics` with
        `records-lag-max`, the same for each partition, and `consumer-coordinator-metrics`."""
        with self._use():
            positions = self._partitions.positions()
            lags = {
                tp: max(0, end - position)
                for tp, position in positions.items()
                if (end := self._partitions.high_watermark(tp)) is not None
            }
            replicas = {one.topic_partition: one.replica for one in self._partitions.owned}
            return self._poller.fetch_metrics.values(lags, replicas)

    # -------------------------------------------------------------------------------------- commits

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The group, and this member of its present generation; after the group has removed it,
        that of its last one. For `send_offsets_to_transaction`, which is refused then. After
        `assign` there is no member. ConfigError without group.id."""
        with self._use():
            self._check_group()
            return self._poller.group_metadata()

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        timeout: float = API_TIMEOUT_S,
    ) -> None:
        """Commit these offsets (each of the next message to read), or all positions; the messages
        returned so far are then finished. Blocks and retries retriable errors. Java: commitSync.

        CommitFailed if the group has removed this member: nothing was stored. RequestTimeout after
        `timeout`: the commit may still be stored later. Also the coordinator's other errors.
        """
        with self._use():
            self._check_group()
            self._poller.commit(as_offsets(offsets), timeout)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Like `commit`, but does not block and does not retry. A later poll or commit calls
        `callback(offsets, error)`; without a callback a failure is logged. Java: commitAsync."""
        with self._use():
            self._check_group()
            self._poller.commit_async(as_offsets(offsets), callback)

    def committed(
        self, *partitions: TopicPartition, timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The group's committed offsets, from its coordinator; None for a partition without one. No
        arguments: all assigned partitions."""
        wanted = parse_partitions(partitions)
        with self._use():
            self._check_group()
            return self._queries.committed(wanted or list(self._partitions), timeout)

    # ---------------------------------------------------------------------------------- the cluster

    def list_topics(self, timeout: float = API_TIMEOUT_S) -> dict[str, tuple[PartitionInfo, ...]]:
        """All topics with their partitions."""
        with self._use():
            return self._queries.topics(timeout)

    def partitions_for(
        self, topic: str, timeout: float = API_TIMEOUT_S
    ) -> tuple[PartitionInfo, ...]:
        """The partitions of `topic`. UnknownTopicOrPartition."""
        with self._use():
            return self._queries.partitions(topic, timeout)

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """The first offset of each log."""
        wanted = parse_partitions(partitions)
        with self._use():
            return self._queries.beginning_offsets(wanted, timeout)

    def end_offsets(
        self, partitions: Collection[TopicPartition], timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """The first offset of each log that consumers must not see yet: its high watermark, or with
        read_committed its first open transaction."""
        wanted = parse_partitions(partitions)
        with self._use():
            return self._queries.end_offsets(wanted, timeout)

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first message of each partition whose timestamp is at or after a time in ms; None if
        there is none. UnsupportedVersion by brokers before 0.10.1, UnsupportedForMessageFormat of a
        topic without timestamps, ValueError for a negative time."""
        wanted = dict(zip(parse_partitions(times), map(index, times.values()), strict=True))
        for tp, time_ms in wanted.items():
            if time_ms < 0:
                raise ValueError(f"{tp}: {time_ms} is not a time in ms since 1970")
        with self._use():
            return self._queries.offsets_for_times(wanted, timeout)

    # ------------------------------------------------------------------------------------------ end

    def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Commit the finished messages if enable.auto.commit is set, leave the group and end all
        threads, within `timeout`. The messages returned last count as finished only if a `commit`
        followed, or a `with` block ended without an exception. Calls no callback of `subscribe`."""
        if self._poller.is_closed:
            return
        with self._use():
            self._poller.close(timeout)

    def __exit__(self, *failure: object) -> None:
        if not any(failure) and not self._poller.is_closed:
            with self._use():
                self._stream.finish()
        self.close()

    # ----------------------------------------------------------------------------------- its parts

    def _drop(self) -> None:
        poller = getattr(self, "_poller", None)
        if poller is not None and not poller.is_closed:
            end_dropped(partial(poller.close, CLOSE_TIMEOUT_S))
            warn_unclosed(self)

    @contextmanager
    def _use(self, *partitions: TopicPartition) -> Iterator[None]:
        """Guards a public call. RuntimeError if another thread is in one, or iterates, or after a
        fork; Closed; ValueError if one of `partitions` is not assigned."""
        self._check_process()
        user = self._runtime.current_task()
        is_nested = self._users.get(CALL) is user
        try:
            owner = self._users.get(ITERATION, user)
            if owner is user or not is_alive(owner):
                # Only now: a refused call with a claim would have the reader's own one refused.
                owner = self._users.setdefault(CALL, user)
            if owner is not user and is_alive(owner):
                raise _OtherThread
            if self._poller.is_closed:
                raise Closed("the consumer is closed")
            check_partitions(self._partitions, partitions)
            yield
        finally:
            if not is_nested and self._users.get(CALL) is user:
                del self._users[CALL]

    def _check_kind(self, kind: type[Topics | Pattern | Chosen]) -> None:
        now = self._poller.subscription
        if now is not None and type(now) is not kind:
            raise RuntimeError(
                "subscriptions to topics, to a pattern, and to partitions exclude each other: call "
                "unsubscribe first"
            )

    def _all_assigned(self) -> list[TopicPartition]:
        if not self._partitions:
            raise ValueError(
                "no partitions are assigned yet: poll until `assignment` has some, or seek in the "
                "`on_assigned` of `subscribe`"
            )
        return list(self._partitions)

    def _check_group(self) -> None:
        if not self.config.group_id:
            raise ConfigError("group.id: needed to commit, and to read committed offsets")


class _Iteration:
    """The fetched sets that an iteration of a consumer reads, as iterators over their messages."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer
        self._user: object = None
        """The task that has a message of it."""

    def __iter__(self) -> Iterator[Iterator[Message]]:
        return self

    def __next__(self) -> Iterator[Message]:
        consumer = self._consumer
        try:
            if not consumer._poller.is_closed:
                found = consumer.iterated()
                self._user = consumer._users.get(ITERATION)
                return found
        except _OtherThread as error:
            return _raising(error)  # the iteration goes on in its thread
        except BaseException as error:  # noqa: BLE001 - it is raised by what is returned
            if not (isinstance(error, Closed) and consumer._poller.is_closed):
                consumer._end_iteration(self._user)
                return _raising(error)
        consumer._end_iteration(self._user)  # closed, perhaps just now by a signal handler
        raise StopIteration

    def __del__(self) -> None:
        self._consumer._end_iteration(self._user)


def _raising(error: BaseException) -> Iterator[Message]:
    """An iterator that raises it once: `chain` would end with an error in its place."""
    try:
        raise error
    finally:
        del error  # its traceback has this frame: together they would be a cycle
    yield  # type: ignore[unreachable]


def is_alive(task: Any) -> bool:
    """Whether it can go on: a thread that has ended has left an iteration for good."""
    found: bool = getattr(task, "is_alive", lambda: True)()
    return found


def check_partitions(partitions: Partitions, wanted: Collection[TopicPartition]) -> None:
    """ValueError if one of them is not assigned, TypeError if it is something else."""
    for tp in wanted:
        if not isinstance(tp, tuple):
            raise TypeError(f"{tp!r} is not a TopicPartition: pass partitions one by one")
        if tp not in partitions:
            raise ValueError(f"{tp} is not assigned to this consumer")


def as_offsets(offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None) -> Offsets | None:
    """ValueError for a negative offset, TypeError for anything else."""
    if offsets is None:
        return None
    found = {}
    for tp, wanted in zip(parse_partitions(offsets), offsets.values(), strict=True):
        if isinstance(wanted, OffsetAndMetadata):
            found[tp] = wanted
        else:
            try:
                found[tp] = OffsetAndMetadata(index(wanted))
            except TypeError:
                raise TypeError(
                    f"{tp}: {wanted!r} is not an offset or an OffsetAndMetadata"
                ) from None
        if found[tp].offset < 0:
            raise ValueError(f"{tp}: cannot commit {found[tp].offset}: the lowest offset is 0")
    return found
