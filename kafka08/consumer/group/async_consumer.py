"""AsyncKafkaConsumer: a KafkaConsumer for asyncio.

    async with AsyncKafkaConsumer(bootstrap_servers="b1:9092", group_id="readers") as consumer:
        await consumer.subscribe(["pages"])
        async for message in consumer:
            print(message.topic, message.partition, message.offset, message.value)

It is a KafkaConsumer on `LoopRuntime`: fetchers, heartbeats and commits are tasks of the event
loop. docs/asyncio.md says what cancelling does.
"""

from __future__ import annotations

import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeAlias, TypeVar

from kafka08.client.metadata import PartitionInfo
from kafka08.consumer.fetching.batch import BatchLimits, MessageBatch
from kafka08.consumer.group.assignors import Assignor
from kafka08.consumer.group.broker_queries import OffsetAndTimestamp
from kafka08.consumer.group.committer import CommitCallback
from kafka08.consumer.group.deserializers import Deserializer
from kafka08.consumer.group.interceptors import ConsumerInterceptor
from kafka08.consumer.group.kafka_consumer import (
    API_TIMEOUT_S,
    CLOSE_TIMEOUT_S,
    WAIT_S,
    KafkaConsumer,
)
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.consumer.group.polled_stream import Message
from kafka08.consumer.subscription import TopicFilter
from kafka08.errors import Closed, KafkaError
from kafka08.lifecycle import warn_unclosed
from kafka08.runtime.asyncio_loop import LoopRuntime
from kafka08.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

P = ParamSpec("P")
T = TypeVar("T")
AnyCallback: TypeAlias = Callable[[list[TopicPartition]], object | Awaitable[object]]
"""A RebalanceCallback, or a coroutine function."""


class AsyncKafkaConsumer:
    """Made and used in one event loop, by one task at a time: of two tasks in calls at once the
    second gets a RuntimeError. Arguments, results and errors are those of KafkaConsumer."""

    def __init__(
        self,
        config: KafkaConsumerConfig | None = None,
        *,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        assignors: Sequence[Assignor] = (),
        interceptors: Sequence[ConsumerInterceptor] = (),
        **keywords: Any,
    ) -> None:
        """RuntimeError without a running event loop. ConfigError."""
        self._is_closed = True
        self._runtime = LoopRuntime()
        self._consumer = KafkaConsumer(
            config,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            assignors=assignors,
            interceptors=interceptors,
            runtime=self._runtime,
            **keywords,
        )
        self.config = self._consumer.config
        self._is_closed = False
        self._run = self._runtime.run

    def __repr__(self) -> str:
        return repr(self._consumer).replace("<", "<Async", 1)

    # ------------------------------------------------------------------------------ subscriptions

    async def subscribe(
        self,
        topics: str | Iterable[str] | re.Pattern[str] | TopicFilter,
        *,
        on_assigned: AnyCallback | None = None,
        on_revoked: AnyCallback | None = None,
        on_lost: AnyCallback | None = None,
    ) -> None:
        """As KafkaConsumer's. A callback may be a coroutine function; it may use the consumer."""
        plain = self._runtime.plain
        await self._run(
            self._consumer.subscribe,
            topics,
            on_assigned=plain(on_assigned),
            on_revoked=plain(on_revoked),
            on_lost=plain(on_lost),
        )

    async def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        await self._run(self._consumer.assign, partitions)

    async def unsubscribe(self) -> None:
        await self._run(self._consumer.unsubscribe)

    def subscription(self) -> set[str]:
        return self._consumer.subscription()

    def assignment(self) -> set[TopicPartition]:
        return self._consumer.assignment()

    # ------------------------------------------------------------------------------------- reading

    async def poll(self, timeout: float = 0.0) -> list[Message]:
        """As KafkaConsumer's. If it is cancelled, its messages are read again."""
        return await self._taken(self._consumer.poll, timeout)

    async def poll_batch(
        self,
        timeout: float = 0.0,
        max_messages: int = BatchLimits().max_messages,
        max_bytes: int = BatchLimits().max_bytes,
    ) -> MessageBatch | None:
        """As KafkaConsumer's. If it is cancelled, its messages are read again."""
        return await self._taken(self._consumer.poll_batch, timeout, max_messages, max_bytes)

    async def _taken(self, poll: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        return await self._run(poll, *args, undo=self._consumer.read_again, **keywords)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Yields messages one by one, until the consumer is closed. A message is finished when the
        next one is requested, or at `commit`. Raises like `poll`; iterate again after that."""
        iterated = self._consumer.iterated
        while not self._is_closed:
            try:
                found = await self._run(iterated)
            except Closed:  # by another task, meanwhile
                break
            for message in found:
                yield message

    async def batches(
        self,
        max_messages: int = BatchLimits().max_messages,
        max_bytes: int = BatchLimits().max_bytes,
    ) -> AsyncIterator[MessageBatch]:
        """Yields batches, as KafkaConsumer's, until the consumer is closed."""
        while not self._is_closed:
            try:
                batch = await self.poll_batch(WAIT_S, max_messages, max_bytes)
            except Closed:
                break
            if batch is not None:
                yield batch

    @property
    def stall_cause(self) -> KafkaError | None:
        """As KafkaConsumer's."""
        return self._consumer.stall_cause

    def wakeup(self) -> None:
        """Make the call that waits in another task, or the next that waits, raise WokenUp."""
        self._runtime.spawn(self._consumer.wakeup, name="wakeup")

    # ------------------------------------------------------------------------------------ positions

    async def position(self, partition: TopicPartition, timeout: float = API_TIMEOUT_S) -> int:
        return await self._run(self._consumer.position, partition, timeout)

    async def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return await self._run(self._consumer.positions)

    async def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        await self._run(self._consumer.seek, partition, offset)

    async def skip_damaged(self) -> tuple[TopicPartition, int] | None:
        return await self._run(self._consumer.skip_damaged)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        await self._run(self._consumer.seek_to_beginning, *partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        await self._run(self._consumer.seek_to_end, *partitions)

    async def pause(self, *partitions: TopicPartition) -> None:
        await self._run(self._consumer.pause, *partitions)

    async def resume(self, *partitions: TopicPartition) -> None:
        await self._run(self._consumer.resume, *partitions)

    def paused(self) -> set[TopicPartition]:
        return self._consumer.paused()

    async def lag(self, partition: TopicPartition) -> int | None:
        return await self._run(self._consumer.lag, partition)

    async def metrics(self) -> dict[str, dict[str, float]]:
        return await self._run(self._consumer.metrics)

    # -------------------------------------------------------------------------------------- commits

    async def group_metadata(self) -> ConsumerGroupMetadata:
        return await self._run(self._consumer.group_metadata)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        timeout: float = API_TIMEOUT_S,
    ) -> None:
        """As KafkaConsumer's. A commit that is cancelled may be stored."""
        await self._run(self._consumer.commit, offsets, timeout)

    async def commit_async(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        await self._run(self._consumer.commit_async, offsets, callback)

    async def committed(
        self, *partitions: TopicPartition, timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return await self._run(self._consumer.committed, *partitions, timeout=timeout)

    # ---------------------------------------------------------------------------------- the cluster

    async def list_topics(
        self, timeout: float = API_TIMEOUT_S
    ) -> dict[str, tuple[PartitionInfo, ...]]:
        return await self._run(self._consumer.list_topics, timeout)

    async def partitions_for(
        self, topic: str, timeout: float = API_TIMEOUT_S
    ) -> tuple[PartitionInfo, ...]:
        return await self._run(self._consumer.partitions_for, topic, timeout)

    async def beginning_offsets(
        self, partitions: Collection[TopicPartition], timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        return await self._run(self._consumer.beginning_offsets, partitions, timeout)

    async def end_offsets(
        self, partitions: Collection[TopicPartition], timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        return await self._run(self._consumer.end_offsets, partitions, timeout)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float = API_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return await self._run(self._consumer.offsets_for_times, times, timeout)

    # ------------------------------------------------------------------------------------------ end

    async def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """As KafkaConsumer's. Iterations of other tasks end."""
        self._is_closed = True
        await self._run(self._consumer.close, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_closed = True
        await self._run(self._consumer.__exit__, kind, error, trace)

    def __del__(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            if not self._runtime.is_dead:  # its tasks would go on as long as the loop
                close = partial(self._runtime.spawn, self._consumer.close, name="close")
                self._runtime.loop.call_soon_threadsafe(close)
            warn_unclosed(self)
