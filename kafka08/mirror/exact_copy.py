"""ExactCopier: copies messages in transactions at the target, each with the record of what it has
copied (`Copied`): what is there after kill -9 at any moment is copied once, and the rest follows.

A producer with the move's transactional.id fences that of an earlier process, and ends its
transaction; then the records say where to go on. The same happens after an error that may pass,
since a transaction whose end is unknown may be committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka08.errors import (
    AdminError,
    ApiError,
    AuthenticationFailed,
    ConfigError,
    KafkaError,
    MigrationError,
    OffsetOutOfRange,
    ProducerFenced,
)
from kafka08.mirror.offset_map import Copied, runs_of
from kafka08.mirror.outcome import MirrorFailed
from kafka08.mirror.sources import NO_TIME, Portion, Source
from kafka08.mirror.stats import MirrorStats
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.producer.future import BatchFuture, RecordFuture
from kafka08.runtime import Event

POLL_S: Final = 0.5
RESULT_S: Final = 120.0
FINAL: Final = (
    AdminError,
    AuthenticationFailed,
    ConfigError,
    MigrationError,
    MirrorFailed,
)
"""Errors that somebody must look at."""
Results = BatchFuture | list[RecordFuture]


class ExactCopier:
    """One run between two recoveries.

    producer   has begun no transaction
    records    the topic of the records, of one partition
    """

    def __init__(
        self, source: Source, producer: KafkaProducer, records: str, stats: MirrorStats
    ) -> None:
        self._source = source
        self._producer = producer
        self._records = records
        self._stats = stats

    def run(self, stopping: Event, is_due: Callable[[], bool]) -> None:
        """Copy until `stopping` is set, or other partitions are due to be looked for. MirrorFailed
        for what cannot be copied; errors after which to recover."""
        while not stopping.is_set() and not is_due():
            if portions := self._source.poll(POLL_S):
                self._copy(portions)
            elif stopping.wait(POLL_S / 10):
                return

    def _copy(self, portions: list[Portion]) -> None:
        with self._producer.transaction():
            sent = [(portion, self._send(portion)) for portion in portions]
            for portion, results in sent:
                copied = Copied(
                    portion.topic_partition,
                    runs_of(portion.offsets, _stored(results, portion)),
                    leader_epoch=portion.leader_epoch,
                )
                self._producer.send(ProducerRecord(self._records, copied.encode(), partition=0))
        for portion in portions:
            self._stats.copied(len(portion.offsets), portion.size)

    def _send(self, portion: Portion) -> Results:
        topic, partition = portion.topic_partition
        times = [None if time == NO_TIME else time for time in portion.times]
        if not any(portion.headers):
            return self._producer.send_many(
                topic, portion.values, portion.keys, partition=partition, timestamps=times
            )
        return [
            self._producer.send(ProducerRecord(topic, *of_one))
            for of_one in zip(
                portion.values,
                portion.keys,
                [partition] * len(times),
                times,
                portion.headers,
                strict=True,
            )
        ]


def _stored(results: Results, portion: Portion) -> list[tuple[range | list[int], int]]:
    """Indexes of the portion's messages, and the target's offset of the first of each. MirrorFailed
    if the target refuses one for good."""
    try:
        if isinstance(results, BatchFuture):
            return sorted((list(found.places), found.offset) for found in results.result(RESULT_S))
        return [([n], one.result(RESULT_S).offset) for n, one in enumerate(results)]
    except KafkaError as error:
        if may_pass(error):
            raise
        raise MirrorFailed(
            f"{portion.topic_partition}: the target refuses messages from offset "
            f"{portion.offsets[0]} on: {error}"
        ) from error


def may_pass(error: KafkaError | TimeoutError) -> bool:
    """Whether to begin again after this error: when brokers or ZooKeeper are back, say. The
    recovery finds out whether another process has fenced this one, or the transaction took too
    long; and whether the source has deleted messages, or lost its end."""
    if isinstance(error, ProducerFenced | OffsetOutOfRange):
        return True
    if isinstance(error, ApiError):
        return error.retriable
    return not isinstance(error, FINAL)
