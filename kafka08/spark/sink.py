"""The sink: sends rows as message sets to the leaders. Batch and streaming.

Messages have timestamps where the leader takes them (from 0.10.0 on), and are record batches from
0.11 on. It resends sets that were not acknowledged, and Spark reruns a failed task from its start.
So messages may be duplicated, but after a successful write none is missing (acks -1, the default).
With `transactional.id.prefix` readers of committed messages have each once: see batch_commits.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from kafka08.arrow.connections import cluster_at, resolved
from kafka08.client.requests import produce_request, produce_results, produce_version
from kafka08.client.retry import may_be_stored_later
from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.errors import (
    ApiError,
    ConfigError,
    MessageSetSizeTooLarge,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
    error_of,
)
from kafka08.kernel.types import RECORDS_MAGIC
from kafka08.network.connection import Connection
from kafka08.protocol.produce import ProducePartitionResponse, ProduceResponse
from kafka08.spark.partition_counts import partition_count, planned_counts
from kafka08.spark.plain_errors import plain_write_errors
from kafka08.spark.rows import Partitioner, SetQueue, by_partition, counts_text
from kafka08.spark.schema import HEADERS
from kafka08.spark.task_transaction import TaskTransaction
from kafka08.spark.transaction_options import NO_BATCH, BatchId
from kafka08.spark.transactional_ids import take_transactional_id
from kafka08.spark.write_options import WriteOptions
from kafka08.spark.written import WriterCommits, Written
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

COLUMN_TYPES = {
    "key": (StringType, BinaryType),
    "value": (StringType, BinaryType),
    "topic": (StringType,),
    "partition": (IntegerType,),
    "timestamp": (TimestampType,),
}


def planned(options: WriteOptions) -> WriteOptions:
    """`options` with the brokers' addresses, and how many partitions topics have now: for the
    tasks, which must agree on that. On the driver."""
    topic = options.topic
    address = resolved(
        options.address, options.settings, lambda each: topic is None or each == topic
    )
    cluster = cluster_at(address, options.settings, creates_topics=True)
    with options.settings.deadline(cluster.clock):
        counts = planned_counts(cluster, topic, options.settings.retry_policy)
    return replace(options, address=address, partition_counts=counts)


class RowWriter:
    """Writes batches of rows in a task. `clock`: the time of rows without one of their own, and of
    the wait for a new topic."""

    def __init__(self, options: WriteOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._options = options
        self._clock = clock
        settings = options.settings
        self._cluster = cluster_at(options.address, settings, creates_topics=True)
        self._policy = settings.retry_policy
        self._partition_counts = dict(options.partition_counts)
        self._counts: dict[str, tuple[int, int]] = {}
        self._transaction: TaskTransaction | None = None

    @plain_write_errors
    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Write all rows, each acknowledged as `acks` says. Raises the first error that is not
        retriable, naming the partition.

        With transactions they are in an open one of this attempt. A batch that is committed has no
        row written again."""
        transactions = self._options.transactions
        if transactions is None:
            self._write_all(batches)
            return Written(self._counts)
        batch, attempt = running_batch()
        if transactions.is_committed(batch):
            for _ in batches:  # Spark expects that a task takes its rows
                pass
            return Written({}, batch=batch, plan=transactions)
        self._transaction = TaskTransaction(
            take_transactional_id(transactions, batch.number),
            transactions.timeout_ms,
            self._cluster,
            self._options.settings.poll_timeout_ms / 1000,
        )
        try:
            self._write_all(batches)
        except BaseException:
            self._transaction.abort()
            raise
        return Written(self._counts, self._transaction.opened, batch, transactions, attempt)

    def _write_all(self, batches: Iterator[pa.RecordBatch]) -> None:
        context = TaskContext.get()
        first = context.partitionId() if context is not None else 0
        partitioner = Partitioner(self._options.hash_name, first)
        options = self._options
        for batch in batches:
            sent_ms = self._clock.time_ms()
            waiting = {
                tp: SetQueue(rows, options.batch_bytes, options.codec, sent_ms)
                for tp, rows in by_partition(
                    batch,
                    options.topic,
                    partitioner,
                    self._partition_count,
                    keeps_times=options.keeps_times,
                )
            }
            while waiting:
                self._send(waiting)
                waiting = {tp: queue for tp, queue in waiting.items() if queue}

    def _send(self, queues: Mapping[TopicPartition, SetQueue]) -> None:
        """Send one set for each partition; a partition's next set waits for the response."""
        with self._options.settings.deadline(self._cluster.clock):
            if self._transaction is not None:
                self._transaction.enter(queues)
            sent = self._cluster.ask_leaders(queues, self._ask, passes=may_be_stored_later)
        for tp, (count, size) in sent.items():
            queues[tp].advance(count)
            if self._transaction is not None:
                self._transaction.advance(tp, count)
            messages, total_size = self._counts.get(tp.topic, (0, 0))
            self._counts[tp.topic] = messages + count, total_size + size

    def _ask(
        self, connection: Connection, queues: Mapping[TopicPartition, SetQueue]
    ) -> dict[TopicPartition, tuple[int, int] | ApiError]:
        """(messages, bytes) of each partition's next set, or its error."""
        options = self._options
        version, magic = produce_version(connection.versions)
        transaction = self._transaction
        if magic < RECORDS_MAGIC:
            _refuse_older(connection, queues, transaction)
        sets = {tp: queue.next_set(magic) for tp, queue in queues.items()}
        if transaction is not None:
            for tp, (data, _) in sets.items():
                transaction.stamp(tp, data)
        request = produce_request(
            {tp: data for tp, (data, _) in sets.items()},
            required_acks=options.acks,
            timeout_ms=options.request_timeout_ms,
            transactional_id=None if transaction is None else transaction.transactional_id,
            version=version,
        )
        sent = {tp: (count, len(data)) for tp, (data, count) in sets.items()}
        if options.acks == 0:
            connection.write(request, has_response=False)
            return dict(sent)
        response = connection.send(request)
        assert isinstance(response, ProduceResponse)
        return {
            tp: error_of(result.error_code, f"{tp} at {connection}{_advice(result, sent[tp])}")
            or sent[tp]
            for tp, result in produce_results(response).items()
        }

    def _partition_count(self, topic: str) -> int:
        """Number of partitions of `topic` when the write was planned; now, for one that did not
        exist then."""
        if topic not in self._partition_counts:
            with self._options.settings.deadline(self._cluster.clock):
                self._partition_counts[topic] = partition_count(
                    self._cluster, topic, self._policy, self._clock
                )
        return self._partition_counts[topic]


def _refuse_older(
    connection: Connection,
    queues: Mapping[TopicPartition, SetQueue],
    transaction: TaskTransaction | None,
) -> None:
    """Raise if a broker before 0.11 cannot store what is to be written."""
    if transaction is not None:
        raise UnsupportedVersion(
            f"{connection}: transactional.id.prefix needs transactions, which came with 0.11"
        )
    for tp, queue in queues.items():
        if queue.has_headers:
            raise UnsupportedForMessageFormat(
                f"{tp} at {connection}: headers in a row, but this broker stores none: they came "
                "with 0.11. Leave the column headers out, or null"
            )


def running_batch() -> tuple[BatchId, int]:
    """(batch to which the running task belongs, number of its attempt)."""
    context = TaskContext.get()
    if context is None:
        return NO_BATCH, 0
    query = context.getLocalProperty("sql.streaming.queryId")
    number = context.getLocalProperty("streaming.sql.batchId")
    return BatchId(query or "", int(number or 0)), context.attemptNumber()


def _advice(result: ProducePartitionResponse, sent: tuple[int, int]) -> str:
    """Advice about a set that the broker refused for its size; "" for other results."""
    if result.error_code != MessageSetSizeTooLarge.code:
        return ""
    messages, size = sent
    return (
        f": a set of {messages} messages, {size} bytes, is larger than the topic's segment.bytes; "
        "lower kafka.batch.size"
    )


class BatchWriter(WriterCommits, DataSourceArrowWriter):
    """`df.write.format("kafka08")`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return RowWriter(self.options).write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        counts = self.commit_written(messages)
        logger.info("written: %s", counts_text(counts))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        counts = self.abort_written(messages)
        logger.warning("A write failed after writing at least %s", counts_text(counts))


def check_columns(schema: StructType, topic: str | None, *, keeps_times: bool = False) -> None:
    """Check the columns: `value` is required, and `topic` without that option; columns of other
    names are not written, `timestamp` only if the write `keeps_times`."""
    check_types(StructType([f for f in schema if keeps_times or f.name != "timestamp"]))
    if "value" not in schema.names:
        raise ConfigError(f"there is no column value among {', '.join(schema.names)}")
    if keeps_times and "timestamp" not in schema.names:
        raise ConfigError(
            f"includeTimestamp: there is no column timestamp among {', '.join(schema.names)}"
        )
    if topic is None and "topic" not in schema.names:
        raise ConfigError("no topic: set the option topic, or have a column of that name")


def check_types(schema: StructType) -> None:
    """ConfigError names a column of the wrong type."""
    for field in schema:
        types = COLUMN_TYPES.get(field.name)
        if field.name == "headers" and field.dataType.simpleString() != HEADERS.simpleString():
            raise ConfigError(
                f"headers must be {HEADERS.simpleString()}, not {field.dataType.simpleString()}"
            )
        if types is not None and not isinstance(field.dataType, types):
            allowed = " or ".join(kind.typeName() for kind in types)
            raise ConfigError(
                f"{field.name} must be {allowed}, not {field.dataType.simpleString()}"
            )
