"""AsyncKafkaProducer: a KafkaProducer for asyncio.

    async with AsyncKafkaProducer(bootstrap_servers="localhost:9092") as producer:
        stored = await producer.send(ProducerRecord("pages", b"hello", key=b"front"))
        print((await stored).offset)

It is a KafkaProducer on `LoopRuntime`: its sender is a task of the event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self

from kafka08.client.metadata import PartitionInfo
from kafka08.lifecycle import warn_unclosed
from kafka08.producer.batch import Callback
from kafka08.producer.future import BatchFuture, RecordFuture
from kafka08.producer.interceptors import ProducerInterceptor
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.producer.partitioners import RecordPartitioner
from kafka08.producer.record import ProducerRecord
from kafka08.producer.serializers import Serializer
from kafka08.runtime.asyncio_loop import LoopRuntime
from kafka08.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition


class AsyncKafkaProducer:
    """Made and used in one event loop, by any number of tasks. Arguments, results and errors are
    those of KafkaProducer; a future of its `send` can be awaited."""

    def __init__(
        self,
        config: KafkaProducerConfig | None = None,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: RecordPartitioner | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
        **keywords: Any,
    ) -> None:
        """RuntimeError without a running event loop. ConfigError."""
        self._is_closed = True
        self._runtime = LoopRuntime()
        self._producer = KafkaProducer(
            config,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            partitioner=partitioner,
            interceptors=interceptors,
            runtime=self._runtime,
            **keywords,
        )
        self.config = self._producer.config
        self._is_closed = False
        self._run = self._runtime.run
        self._send_now = self._producer.sender_of(self._later).send

    def __repr__(self) -> str:
        return repr(self._producer).replace("<", "<Async", 1)

    # -------------------------------------------------------------------------------- sending

    def _later(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: partial(self._run, call, *args)

    async def send(self, record: ProducerRecord, callback: Callback | None = None) -> RecordFuture:
        """Accept `record` for sending; await the future for its result. Waits for metadata and for
        memory as KafkaProducer's. A `send` that is cancelled may have accepted the record."""
        accepted: RecordFuture | partial[Any] = self._send_now(record, callback)
        if isinstance(accepted, partial):  # it must wait, or look
            waited: RecordFuture = await accepted()
            return waited
        return accepted

    async def send_many(
        self,
        topic: str,
        values: Sequence[Any],
        keys: Sequence[Any] | None = None,
        *,
        partition: int | None = None,
        timestamps: Sequence[int | None] | None = None,
    ) -> BatchFuture:
        """As KafkaProducer's. One that is cancelled may have accepted some records."""
        return await self._run(
            self._producer.send_many,
            topic,
            values,
            keys,
            partition=partition,
            timestamps=timestamps,
        )

    async def send_columns(
        self, topic: str, table: Any, *, partition: int | None = None
    ) -> BatchFuture:
        """As KafkaProducer's. One that is cancelled may have accepted some rows."""
        return await self._run(self._producer.send_columns, topic, table, partition=partition)

    async def flush(self, timeout: float | None = None) -> None:
        await self._run(self._producer.flush, timeout)

    async def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        return await self._run(self._producer.partitions_for, topic)

    @property
    def free_bytes(self) -> int:
        """The unreserved part of buffer.memory."""
        return self._producer.free_bytes

    def metrics(self) -> dict[str, dict[str, float]]:
        return self._producer.metrics()

    # --------------------------------------------------------------------------- transactions

    async def init_transactions(self) -> None:
        await self._run(self._producer.init_transactions)

    async def begin_transaction(self) -> None:
        await self._run(self._producer.begin_transaction)

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: str | ConsumerGroupMetadata,
    ) -> None:
        await self._run(self._producer.send_offsets_to_transaction, offsets, group)

    async def commit_transaction(self, timeout: float | None = None) -> None:
        await self._run(self._producer.commit_transaction, timeout)

    async def abort_transaction(self, timeout: float | None = None) -> None:
        await self._run(self._producer.abort_transaction, timeout)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A block in a transaction, which is committed at its end, and aborted if it raises, also
        if it is cancelled. Errors of the commit are those of KafkaProducer's block."""
        await self.begin_transaction()
        try:
            yield
        except BaseException:
            await self.abort_transaction()
            raise
        await self._run(self._producer.end_block)

    # ------------------------------------------------------------------------------------- end

    async def close(self, timeout: float | None = None) -> None:
        """As KafkaProducer's."""
        self._is_closed = True
        await self._run(self._producer.close, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            if not self._runtime.is_dead:  # its sender would go on as long as the loop
                close = partial(self._runtime.spawn, self._producer.close, name="close")
                self._runtime.loop.call_soon_threadsafe(close)
            warn_unclosed(self)
