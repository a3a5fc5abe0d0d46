"""The new producer: `send` returns at once, and a thread of its own sends.

    with KafkaProducer(bootstrap_servers="localhost:9092") as producer:
        future = producer.send(ProducerRecord("pages", b"hello", key=b"front"))
        print(future.result(timeout=10).offset)

Each connection asks its broker which versions it serves. Brokers from 0.11 on get record batches,
with timestamps and headers, those from 0.10.0 on messages with timestamps, older ones the bytes of
0.8. Source: org.apache.kafka.clients.producer.KafkaProducer 0.8.2.2; timestamps as in 0.10.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from kafka08 import kernel
from kafka08.client.cluster import ClusterClient
from kafka08.client.metadata import PartitionInfo
from kafka08.clock import SYSTEM_CLOCK
from kafka08.config import LONG_MAX
from kafka08.errors import (
    AuthenticationFailed,
    BufferExhausted,
    ConfigError,
    FailedTransaction,
    InvalidTopic,
    KafkaError,
    ProducerClosed,
    RequestTimeout,
    UnknownTopicOrPartition,
)
from kafka08.format.v2 import encoded_headers
from kafka08.kernel.types import EMPTY_ENTRY_BYTES, NO_TIMESTAMP
from kafka08.lifecycle import Closeable, warn_unclosed
from kafka08.producer.accumulator import RecordAccumulator
from kafka08.producer.batch import (
    FIRST_RECORD_BYTES,
    RECORDS,
    Callback,
    RecordBatch,
    first_late,
    no_headers,
)
from kafka08.producer.bulk import Bulk, Values, as_bytes, by_partition, too_large
from kafka08.producer.future import BatchFuture, RecordFuture, Stretch
from kafka08.producer.idempotence import Idempotence
from kafka08.producer.interceptors import Interceptors, ProducerInterceptor
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.producer.network_client import NetworkClient
from kafka08.producer.partition_queue import PartitionQueue
from kafka08.producer.partitioners import RecordPartitioner, partition_for_key
from kafka08.producer.record import ProducerRecord
from kafka08.producer.sender import Sender, SenderSettings, not_sent
from kafka08.producer.serializers import Serializer
from kafka08.producer.topic_route import TopicRoute
from kafka08.producer.topic_routes import TopicRoutes
from kafka08.producer.transactions import Transactions
from kafka08.protocol.types import Buffer
from kafka08.runtime import Buffers, ClientRuntime
from kafka08.runtime.threads import THREADS, ThreadRuntime
from kafka08.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

logger = logging.getLogger(__name__)

RECORD_FIELDS: Final = len(ProducerRecord._fields)
NO_PARTITION: Final = -1
"""The partition of a record that failed before one was chosen."""


class KafkaProducer(Closeable, kernel.RecordAppender):
    """Thread-safe. Records of one thread for one partition keep their order, unless a retry
    overtakes: max.in.flight.requests.per.connection=1 prevents that.

    `key_serializer`, `value_serializer`, `partitioner` and `interceptors` override the configured
    ones. Close it to send all accepted records. A program that ends without `close` sends them too,
    for 30 s at most, and logs how many it could not.
    """

    def __init__(
        self,
        config: KafkaProducerConfig | None = None,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: RecordPartitioner | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
        runtime: ClientRuntime = THREADS,
        **keywords: Any,
    ) -> None:
        """Takes `config`, or its keys as keywords: `linger_ms=5` is linger.ms. Type checkers know
        only the keywords of KafkaProducerConfig. Raises ConfigError."""
        config = KafkaProducerConfig.given_to("KafkaProducer", config, keywords)
        self.config = config
        config.log_notes()
        configured = config.serializers()
        self._key_serializer = key_serializer or configured[0]
        self._value_serializer = value_serializer or configured[1]
        self._partitioner = partitioner or config.partitioner()
        chain: list[Any] = [*interceptors] or config.interceptors()
        self._interceptors = Interceptors(chain)
        self._is_plain = not (
            chain or self._key_serializer or self._value_serializer or self._partitioner
        )
        self._runtime = runtime
        self._is_simulated = not isinstance(runtime, ThreadRuntime)
        self._record_bytes_max = min(config.max_request_size, config.buffer_memory)
        self._network = NetworkClient(
            client_id=config.client_id,
            max_in_flight=config.max_in_flight_requests_per_connection,
            reconnect_s=config.reconnect_backoff_ms / 1000,
            max_idle_s=config.connections_max_idle_ms / 1000,
            buffers=Buffers(config.receive_buffer_bytes, config.send_buffer_bytes),
            runtime=runtime,
            negotiates=config.api_version_request,
            security=config.security,
        )
        self._accumulator = RecordAccumulator(
            batch_size=min(config.batch_size, config.buffer_memory),
            grown_size=grown_batch_bytes(config),
            buffer_memory=config.buffer_memory,
            linger_s=config.linger_ms / 1000,
            codec=config.codec,
            ordered=config.max_in_flight_requests_per_connection == 1,
            on_batch=self._network.wake_up,
            runtime=runtime,
            idempotence=config.idempotence,
            is_transactional=bool(config.transactional_id),
            # The kernel reads the system's clock itself: a call would cost a tenth of a send.
            clock=None if runtime.time_ms is SYSTEM_CLOCK.time_ms else runtime.time_ms,
        )
        self._routes = TopicRoutes(
            config,
            self._accumulator,
            wake_sender=self._network.wake_up,
            # Not by `self`: the sender's thread would keep a producer that its program dropped.
            is_in_callback=lambda: sender.is_current,
            runtime=runtime,
        )
        self._cluster, self._transactions = None, None
        if config.transactional_id:
            self._cluster = ClusterClient(
                config.bootstrap,
                client_id=config.client_id,
                timeout_ms=config.request_timeout_ms,
                negotiates=True,
                security=config.security,
                runtime=runtime,
            )
            self._transactions = Transactions(
                config.transactional_id,
                config.transaction_timeout_ms,
                self._cluster,
                block_s=config.max_block_ms / 1000,
                on_identity=lambda one: sender.take_identity(one, restart=True),
                on_partitions=self._accumulator.allow,
                runtime=runtime,
            )
        self._plain_routes = self._routes.by_topic if self._is_plain else {}
        super().__init__(self._plain_routes, self._send_converted, self._append)
        sender = self._sender = Sender(
            sender_settings(config),
            self._accumulator,
            self._routes.metadata,
            self._network,
            runtime,
            self._routes.forget,
            self._transactions,
        )
        self._is_closed = False
        self._interceptors_closed = runtime.lock()
        """Taken once, by the thread that closes them."""
        self._sender.start()

    @property
    def free_bytes(self) -> int:
        """The unreserved part of buffer.memory."""
        return self._accumulator.free_bytes

    def metrics(self) -> dict[str, dict[str, float]]:
        """Metrics under Java's names: `producer-metrics`, and `producer-topic-metrics.<topic>` for
        each topic. Rates and means cover the last 30 to 60 seconds; times are in ms."""
        now = self._runtime.monotonic()
        found = {
            "producer-metrics": {
                **self._sender.metrics.values(now),
                "buffer-total-bytes": float(self.config.buffer_memory),
                "buffer-available-bytes": float(self.free_bytes),
                "connection-count": float(self._network.connection_count),
            }
        }
        for topic, values in self._sender.metrics.topics(now).items():
            found[f"producer-topic-metrics.{topic}"] = values
        return found

    def __repr__(self) -> str:
        ended = ", closed" if self._is_closed else ""
        return f"<KafkaProducer to {self.config.bootstrap_servers}{ended}>"

    # -------------------------------------------------------------------------------- sending

    if TYPE_CHECKING:  # it is the kernel's

        def send(self, record: ProducerRecord, callback: Callback | None = None) -> RecordFuture:
            """Accept `record` for sending. `callback(metadata, error)` is called in the sender's
            thread with its result, in order within a partition.

            Waits up to max.block.ms for the topic's metadata, and as long for memory; not at all in
            a callback. Every error of Kafka goes to the future and to the callback:
            BufferExhausted, RecordTooLarge, an unknown topic, errors of brokers. It raises
            ProducerClosed, TypeError for a key or value that is not bytes (or a topic that is not
            text), ValueError for a timestamp before 1970, and errors of a serializer or the
            partitioner.
            """

    def send_many(
        self,
        topic: str,
        values: Sequence[Any],
        keys: Sequence[Any] | None = None,
        *,
        partition: int | None = None,
        timestamps: Sequence[int | None] | None = None,
    ) -> BatchFuture:
        """Accept many records of one topic, as `send` does for each of them, several times as fast.
        Records without a key go to one partition per batch, not in turn. `timestamps` has one, or
        None, for each record. Raises what `send` raises; no record was accepted then, unless it
        is an error of your serializer, interceptor or partitioner."""
        for name, column in (("keys", keys), ("timestamps", timestamps)):
            if column is not None and len(column) != len(values):
                raise ValueError(f"{len(column)} {name} for {len(values)} values")
        if not self._is_plain:
            records = [
                ProducerRecord(topic, value, key, partition, timestamp)
                for value, key, timestamp in zip(
                    values, keys or repeat(None), timestamps or repeat(None), strict=False
                )
            ]
            futures: list[RecordFuture] = []
            for record in records:
                try:
                    futures.append(self.send(record))
                except ProducerClosed as error:
                    if not futures:
                        raise
                    where = NO_PARTITION if partition is None else partition
                    futures.append(self._failed(TopicPartition(topic, where), error, None))
            return BatchFuture(
                [Stretch(f.owner, f.index, range(n, n + 1)) for n, f in enumerate(futures)]
            )
        some_values, some_keys = all_bytes(values), None if keys is None else all_bytes(keys)
        bulk = self._bulk()
        times = None if timestamps is None else all_times(timestamps, bulk.now_ms)
        try:
            route = self._routes.find(topic)
            if partition is not None:
                queue = self._routes.find_queue(route, topic, partition)
                bulk.add_values(repeat(queue), some_keys, some_values, timestamps=times)
            elif some_keys is None:
                bulk.add_values(route.turns, None, some_values, timestamps=times)
            else:
                self._add_keyed(bulk, route, some_keys, some_values, times)
        except (RequestTimeout, InvalidTopic, UnknownTopicOrPartition) as error:
            return self._failed_call(topic, partition, range(len(values)), error)
        return BatchFuture(bulk.stretches)

    def send_columns(self, topic: str, table: Any, *, partition: int | None = None) -> BatchFuture:
        """Accept the rows of a pyarrow RecordBatch or Table with the column `value`, and optionally
        `key`, `partition`, `timestamp` and `headers`: bytes or text, integers, milliseconds since
        1970 or Arrow's timestamps, and lists of structs of a `key` and a `value` (for leaders from
        0.11 on, else UnsupportedForMessageFormat). Otherwise like `send_many`.

        Needs pyarrow. Your serializers, interceptors and partitioners do not see columns:
        ValueError if the producer has some."""
        if not self._is_plain:
            raise ValueError("columns bypass serializers, interceptors and your partitioner")
        from kafka08.producer.arrow_columns import add_columns  # only users of columns have pyarrow

        bulk = self._bulk()
        try:
            route = self._routes.find(topic)
            add_columns(
                bulk, route, partial(self._routes.find_queue, route, topic), table, partition
            )
        except (RequestTimeout, InvalidTopic, UnknownTopicOrPartition) as error:
            return self._failed_call(topic, partition, range(table.num_rows), error)
        return BatchFuture(bulk.stretches)

    def flush(self, timeout: float | None = None) -> None:
        """Send all records accepted before this call now, and wait for their results, which the
        futures have: failed records raise nothing here. TimeoutError after `timeout` seconds; None:
        no limit. RuntimeError in a callback, which would wait for itself."""
        if self._sender.is_current:
            raise RuntimeError("a callback must not flush: its thread sends the records")
        waiting = self._accumulator.begin_flush()
        try:
            self._network.wake_up()
            late = first_late(waiting, timeout)
            if late is not None:
                raise TimeoutError(f"{late.tp}: not sent within {timeout} s")
        finally:
            self._accumulator.end_flush()

    # --------------------------------------------------------------------------- transactions

    def init_transactions(self) -> None:
        """Get this producer's identity, once, before the first transaction. Any former producer
        with its transactional.id is fenced, and its open transaction aborted. Waits up to
        max.block.ms; UnsupportedVersion by brokers before 0.11."""
        self._transactional().init()

    def begin_transaction(self) -> None:
        """All that is sent from now on belongs to a transaction. InvalidTxnState in another one."""
        self._transactional().begin()

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: str | ConsumerGroupMetadata,
    ) -> None:
        """Commit offsets of a consumer group (each of the next message to read) with the
        transaction: neither them nor its records without the other.

        `group` is its name or, for the offsets of a member, `consumer.group_metadata()`. Brokers
        from 2.5 on refuse those of one whose partitions others have by now: CommitFailed, and the
        transaction can only be aborted. Earlier brokers do not look."""
        parsed = {
            tp: one if isinstance(one, OffsetAndMetadata) else OffsetAndMetadata(one)
            for tp, one in offsets.items()
        }
        member = ConsumerGroupMetadata(group) if isinstance(group, str) else group
        self._transactional().send_offsets(parsed, member)

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Send what is left, and commit; records of other threads are refused from now on. Raises
        the error of a record that was not stored: then abort. ProducerFenced if another producer of
        this name has begun. After an error that may pass (RequestTimeout, RequestTimedOut, a
        connection that was closed) it may be committed: only commit again."""
        with self._transactional().ending(commits=True):
            self.flush(timeout)

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Drop what is not sent, whose futures get FailedTransaction, and abort."""
        transactions = self._transactional()
        with transactions.ending(commits=False):
            error = FailedTransaction("the transaction was aborted")
            unsent = self._accumulator.take_unsent()
            if any(batch.sent_as is not None for batch in unsent):
                # To be sent again: their numbers are missing now.
                transactions.fail(error)
            self._accumulator.complete(unsent, error=error)
            self.flush(timeout)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block in a transaction, which is committed at its end, and aborted if it raises. An
        error of the commit is as in `commit_transaction`: after one that may pass only commit
        again; after others, the transaction is aborted."""
        self.begin_transaction()
        try:
            yield
        except BaseException:
            self.abort_transaction()
            raise
        self.end_block()

    def end_block(self) -> None:
        """Commit at the end of a `transaction` block, of either client; abort if that fails, unless
        the producer is fenced, or the transaction may be committed: then only commit again."""
        try:
            self.commit_transaction()
        except KafkaError:
            if self._transactional().is_open:
                self.abort_transaction()
            raise

    def _transactional(self) -> Transactions:
        self._check_process()
        if self._transactions is None:
            raise ConfigError("transactions need transactional.id")
        return self._transactions

    def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The partitions of `topic`, with leaders and replicas, by current metadata. Waits for it
        up to max.block.ms: RequestTimeout. InvalidTopic, ProducerClosed, and TypeError for a topic
        that is not text."""
        self._routes.find(topic)
        return self._routes.metadata.cluster.partitions(topic)

    def close(self, timeout: float | None = None) -> None:
        """Accept no more records, send all accepted ones, and end. May be called again. A commit or
        an abort in another thread ends first; an open transaction is aborted.

        After `timeout` seconds (0: at once) give up: FailedToSend, whose `messages` are the
        unacknowledged records, serialized; some may be stored. Their futures and callbacks get
        ProducerClosed: at once, or as soon as the sender's thread returns from a blocking call such
        as a name lookup. Called from a callback it neither waits nor raises.
        """
        self._accumulator.close()
        self._network.wake_up()
        if self._is_closed or self._sender.is_current:
            return
        if self._transactions is not None and timeout != 0 and self._transactions.settle(timeout):
            try:
                self.abort_transaction(timeout)
            except (KafkaError, TimeoutError) as error:
                logger.warning("%s: its open transaction was not aborted: %s", self, error)
        # Without a lock: a signal handler may close it while its own thread is closing it.
        unsent = self._sender.end(timeout)
        self._is_closed = True
        if self._transactions is not None and self._cluster is not None:
            self._transactions.close()
            self._cluster.close()
        if self._interceptors_closed.acquire(blocking=False):
            self._interceptors.close()
        if unsent:
            raise not_sent(unsent)

    # ------------------------------------------------------------------------------ its parts

    def sender_of(self, later: Callable[[Callable[..., Any]], Any]) -> kernel.RecordAppender:
        """Its `send` never waits: where it would, its result is that of `later(call)(...)`."""
        return kernel.RecordAppender(
            self._plain_routes, later(self._send_converted), later(self._append)
        )

    def _drop(self) -> None:
        if hasattr(self, "_sender") and not self._accumulator.closed:
            self._sender.end_soon()
            warn_unclosed(self)

    def _abandon(self) -> None:
        self._routes.by_topic.clear()  # the kernel's `send` then leaves each record to ours

    def _send_converted(self, record: ProducerRecord, callback: Callback | None) -> RecordFuture:
        """`send` for the first record of a topic, for a key that is no `bytes`, and for a producer
        with serializers, interceptors or a partitioner of the user's."""
        self._check_process()
        if not isinstance(record, tuple) or len(record) != RECORD_FIELDS:
            raise TypeError(
                f"send takes a ProducerRecord, not {record!r}: "
                "send(ProducerRecord(topic, value, key, partition, timestamp, headers))"
            )
        record = self._interceptors.on_send(record)
        callback = self._interceptors.around(callback)
        topic, value, key, _, timestamp, headers = record
        value_bytes = serialized(self._value_serializer, topic, value)
        key_bytes = serialized(self._key_serializer, topic, key)
        try:
            route = self._routes.find(topic)
            queue = self._queue_for(route, record, key_bytes, value_bytes)
        except (
            RequestTimeout,
            AuthenticationFailed,
            InvalidTopic,
            UnknownTopicOrPartition,
        ) as error:
            partition = NO_PARTITION if record.partition is None else record.partition
            return self._failed(TopicPartition(topic, partition), error, callback)
        if timestamp is None:
            timestamp = NO_TIMESTAMP
        encoded = encoded_headers(headers) if headers else None
        return self._append(queue, key_bytes, value_bytes, callback, timestamp, encoded)

    def _queue_for(
        self,
        route: TopicRoute,
        record: ProducerRecord,
        key_bytes: bytes | None,
        value_bytes: bytes | None,
    ) -> PartitionQueue:
        topic, value, key, partition, *_ = record
        if partition is None and self._partitioner is not None:
            partition = self._partitioner(
                topic, key, key_bytes, value, value_bytes, route.partitions
            )
            if partition is None:
                raise TypeError(
                    f"the partitioner {self._partitioner!r} returned None: let it return a "
                    "partition number"
                )
        if partition is not None:
            return self._routes.find_queue(route, topic, partition)
        if key_bytes is None:
            return next(route.turns)
        return route.queues[partition_for_key(key_bytes, len(route.queues))]

    def _append(
        self,
        queue: PartitionQueue,
        key: Buffer | None,
        value: Buffer | None,
        callback: Callback | None,
        timestamp: int,
        headers: bytes | None = None,
    ) -> RecordFuture:
        """Append to a new batch, after waiting for memory if needed."""
        key = key if key is None or type(key) is bytes else as_bytes(key)
        value = value if value is None or type(value) is bytes else as_bytes(value)
        size = EMPTY_ENTRY_BYTES + len(key or b"") + len(value or b"") + len(headers or b"")
        if headers is not None and queue.magic < RECORDS:
            return self._failed(queue.tp, no_headers(queue.tp), callback)
        self._enter(queue)
        stored_size = size - EMPTY_ENTRY_BYTES + FIRST_RECORD_BYTES[queue.magic]
        if stored_size > self._record_bytes_max:
            return self._failed(queue.tp, too_large(stored_size, self._record_bytes_max), callback)
        try:
            return self._accumulator.append(
                *(queue, key, value, size, callback, timestamp, self._memory_block_s(), headers)
            )
        except BufferExhausted as error:
            return self._failed(queue.tp, error, callback)

    def _add_keyed(
        self,
        bulk: Bulk,
        route: TopicRoute,
        keys: Values,
        values: Values,
        times: Sequence[int] | None,
    ) -> None:
        for queue, places in by_partition(keys, route).items():
            bulk.add_values(
                repeat(queue),
                kernel.pick(keys, places),
                kernel.pick(values, places),
                places,
                None if times is None else kernel.pick(times, places),
            )

    def _bulk(self) -> Bulk:
        return Bulk(
            self._accumulator,
            batch_bytes=bulk_batch_bytes(self.config),
            record_bytes_max=self._record_bytes_max,
            block_s=self._memory_block_s(),
            now_ms=self._runtime.time_ms(),
            before=self._enter,
            refuse=self._refuse,
        )

    def _enter(self, queue: PartitionQueue) -> None:
        if self._transactions is not None:
            self._transactions.enter([queue.tp])

    def _refuse(self, tp: TopicPartition, error: KafkaError) -> RecordBatch:
        """A batch for records that are not accepted: a transaction cannot be committed without
        them."""
        if self._transactions is not None:
            self._transactions.refuse(error)
        return RecordBatch.failed(tp, error)

    def _failed(
        self, tp: TopicPartition, error: KafkaError, callback: Callback | None
    ) -> RecordFuture:
        """The future of a record that is not accepted; calls its callback at once."""
        batch = self._refuse(tp, error)
        if callback is not None:
            batch.when_done(lambda: callback(None, error))
        return RecordFuture(batch, 0)

    def _failed_call(
        self, topic: str, partition: int | None, places: range, error: KafkaError
    ) -> BatchFuture:
        tp = TopicPartition(topic, NO_PARTITION if partition is None else partition)
        return BatchFuture([Stretch(self._refuse(tp, error), 0, places)])

    def _memory_block_s(self) -> float:
        """How long a call may wait for memory: not at all in a callback, for that would hold up the
        thread that frees it."""
        return 0.0 if self._sender.is_current else self.config.memory_block_s


BYTES_OR_NONE: Final[frozenset[type]] = frozenset({bytes, type(None)})
BULK_BATCH_BYTES: Final = 128 << 10
DEFAULT_BATCH_BYTES: Final = 16 << 10


def sender_settings(config: KafkaProducerConfig) -> SenderSettings:
    return SenderSettings(
        ack_timeout_ms=min(config.timeout_ms, config.request_timeout_ms),
        request_timeout_s=config.request_timeout_ms / 1000,
        backoff_s=config.retry_backoff_ms / 1000,
        max_request_bytes=config.max_request_size,
        plain=config.terms(once=config.idempotence is Idempotence.REQUIRED),
        once=config.terms(once=True),
        idempotence=config.idempotence,
        transactional_id=config.transactional_id or None,
    )


def bulk_batch_bytes(config: KafkaProducerConfig) -> int:
    """The batch size of one call with many records. Unlike batch.size it need not leave room for
    later records. Several of them must fit into the buffer."""
    room = max(config.batch_size, min(BULK_BATCH_BYTES, config.buffer_memory // 16))
    return min(room, config.max_request_size, config.buffer_memory)


def grown_batch_bytes(config: KafkaProducerConfig) -> int:
    """The size to which a batch of single records grows; 0 where batch.size asks for small ones."""
    return bulk_batch_bytes(config) if config.batch_size >= DEFAULT_BATCH_BYTES else 0


def serialized(serializer: Serializer | None, topic: str, value: Any) -> bytes | None:
    if value is None:
        return None
    if serializer is not None:
        value = serializer(topic, value)
    return value if value is None or type(value) is bytes else as_bytes(value)


def all_bytes(values: Sequence[Any]) -> Values:
    """`values` if all are bytes or None; else TypeError."""
    if kernel.are_of(BYTES_OR_NONE, values):
        return values
    return [None if value is None else as_bytes(value) for value in values]


def all_times(timestamps: Sequence[int | None], now_ms: int) -> list[int]:
    """Timestamps with `now_ms` for None. TypeError for one that is not an int, ValueError for a
    negative one."""
    times = [now_ms if time is None else time for time in timestamps]
    for kind in set(map(type, times)) - {int}:
        raise TypeError(f"timestamps must be int, milliseconds since 1970, not {kind.__name__}")
    if times and not 0 <= min(times) <= max(times) <= LONG_MAX:
        raise ValueError(f"timestamps from {min(times)} to {max(times)}: none is before 1970")
    return times
