"""One stream of a mirror: a batch from the source, acknowledged by the target, then the next.

A batch of a KafkaStream is finished when the next one is requested, and only finished batches are
committed. So a batch is requested only after the target has acknowledged the one before, and after
kill -9 at any moment some messages are copied again and none is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from copy import copy
from typing import Final, Protocol

from kafka08.client.metadata import PartitionInfo
from kafka08.consumer.fetching.batch import BatchLimits, MessageBatch
from kafka08.consumer.zookeeper.kafka_stream import KafkaStream
from kafka08.errors import (
    ConsumerRebalanceFailed,
    ConsumerTimeout,
    KafkaError,
    ProducerClosed,
    RequestTimeout,
    TopicMissing,
    UnknownTopicOrPartition,
)
from kafka08.listing import some_of
from kafka08.mirror.outcome import Failures, MirrorFailed, Outcome, is_missing, judge
from kafka08.mirror.settings import MirrorSettings, OnFailure
from kafka08.mirror.stats import MirrorStats
from kafka08.runtime import Event
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

COPIED_AT_ONCE: Final = BatchLimits(max_messages=16_384, max_bytes=1024 * 1024)
"""The default size of one partition in a fetch."""
RESEND_AFTER_S: Final = 1.0
MISSING_FOR_S: Final = 60.0
"""How long messages for a topic that the target has not are refused without being sent: each try
takes max.block.ms, and other topics of the stream wait."""


class Sent(Protocol):
    """BatchFuture, as a mirror uses it."""

    def failures(self) -> Failures: ...


class Target(Protocol):
    """KafkaProducer, as a mirror uses it."""

    def send_many(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        *,
        partition: int | None = None,
        timestamps: Sequence[int | None] | None = None,
    ) -> Sent: ...

    def partitions_for(self, topic: str) -> Sequence[PartitionInfo]: ...


class Interrupted(Exception):
    """The mirror was stopped before the current batch was acknowledged."""


class StreamCopier:
    """Copies messages of `stream` to `target` until `stopping` is set.

    stream   of a connector with a short consumer.timeout.ms, the interval of checks of `stopping`
    owns     whether the stream still owns a partition
    monotonic   seconds that never go back
    """

    def __init__(
        self,
        stream: KafkaStream[bytes, bytes],
        target: Target,
        settings: MirrorSettings,
        stats: MirrorStats,
        stopping: Event,
        owns: Callable[[TopicPartition], bool],
        monotonic: Callable[[], float] = THREADS.monotonic,
    ) -> None:
        self._stream = stream
        self._target = target
        self._settings = settings
        self._stats = stats
        self._stopping = stopping
        self._owns = owns
        self._monotonic = monotonic
        self._missing: dict[object, tuple[float, KafkaError]] = {}
        """Topic, or with keep_partitions partition → (monotonic time until which the target is
        believed not to have it, its error, without a traceback: that would keep a batch)."""

    def run(self) -> None:
        """Return when stopped, with every batch acknowledged. Raises Interrupted if the last one
        was not, MirrorFailed, and the stream's errors for unreadable messages."""
        while not self._stopping.is_set():
            try:
                batch = next(self._stream.batches(*COPIED_AT_ONCE))
            except ConsumerTimeout:
                continue
            except StopIteration:
                return
            except ConsumerRebalanceFailed as error:
                logger.warning("%s", error)  # the member keeps trying by itself
                continue
            self.copy(batch)

    def copy(self, batch: MessageBatch) -> None:
        """Return when the target has acknowledged every message of `batch`, except refused ones
        that are skipped; or when another member owns the partition, which copies the rest: sent
        late, it would come after newer messages. Raises Interrupted, MirrorFailed."""
        values, keys = batch.values(), batch.keys()
        todo: Sequence[int] = range(len(batch))
        skipped: list[int] = []
        singly = False
        target = batch.topic_partition if self._settings.keep_partitions else batch.topic
        if (known := self._missing.get(target)) is not None and self._monotonic() < known[0]:
            self._refused(batch, [(place, known[1]) for place in todo])
            return

        def share_order(place: int) -> object | None:
            """Messages of one key, which go to one partition; all, where the partition is kept."""
            return "" if self._settings.keep_partitions else keys[todo[place]]

        while todo:
            if not self._owns(batch.topic_partition):
                logger.warning(
                    "%s: another member owns it now and copies its last %d messages",
                    batch.topic_partition,
                    len(todo),
                )
                return
            try:
                failures = self._send(batch, todo, values, keys, singly=singly)
                if any(isinstance(error, UnknownTopicOrPartition) for _, error in failures):
                    failures = self._told(batch, failures)
            except ProducerClosed as closed:
                raise Interrupted from closed
            for _, failure in failures:
                if isinstance(failure, ProducerClosed):
                    raise Interrupted from failure
            for error in (error for _, error in failures if is_missing(error)):
                self._missing[target] = (self._monotonic() + MISSING_FOR_S, copy(error))
            outcome = judge(len(todo), failures, share_order)
            self._handle_outcome(batch, todo, outcome)
            singly = singly or outcome.singly
            skipped += [todo[place] for place, _ in outcome.refused]
            todo = [todo[place] for place in outcome.resend]
        size = sum(map(_size, values)) + sum(map(_size, keys))
        size -= sum(_size(keys[place]) + _size(values[place]) for place in skipped)
        self._stats.copied(len(batch) - len(skipped), size)

    def _send(
        self,
        batch: MessageBatch,
        places: Sequence[int],
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        *,
        singly: bool,
    ) -> Failures:
        """Send the messages at these indexes of the batch, and wait for the results; indexes of
        failures are relative to `places`. Raises ProducerClosed."""
        partition = batch.partition if self._settings.keep_partitions else None

        def send(some: Sequence[int]) -> Sent:
            some_keys = _keys_of([keys[place] for place in some])
            some_values = [values[place] for place in some]
            return self._target.send_many(
                batch.topic,
                some_values,
                some_keys,
                partition=partition,
                timestamps=_times_of(batch, some),
            )

        if singly:
            sent = [send([place]) for place in places]
            return [([n], e) for n, one in enumerate(sent) for _, e in one.failures()]
        return send(places).failures()

    def _told(self, batch: MessageBatch, failures: Failures) -> Failures:
        """The failures; of unknown partitions TopicMissing, if the target's metadata has no such
        partition, or has had no such topic for max.block.ms. A leader that has just started calls
        its own partitions unknown too, and soon knows them."""
        missing: KafkaError | None = None
        try:
            known = {info.partition for info in self._target.partitions_for(batch.topic)}
        except (RequestTimeout, UnknownTopicOrPartition) as error:
            missing = error
        else:
            if self._settings.keep_partitions and batch.partition not in known:
                missing = TopicMissing(f"{batch.topic_partition}: the target has no such partition")
        return [
            (some, missing if missing and isinstance(error, UnknownTopicOrPartition) else error)
            for some, error in failures
        ]

    def _handle_outcome(self, batch: MessageBatch, places: Sequence[int], outcome: Outcome) -> None:
        """Give up refused messages, and wait before others are sent again."""
        if outcome.refused:
            self._refused(batch, [(places[place], error) for place, error in outcome.refused])
        if outcome.because is not None:
            self._wait_after(batch, outcome.because)
        self._stats.resent(len(outcome.resend))

    def _refused(self, batch: MessageBatch, refused: Sequence[tuple[int, KafkaError]]) -> None:
        """The target refuses these messages permanently."""
        offsets = [batch.offsets[place] for place, _ in refused]
        error = refused[0][1]
        text = (
            f"{batch.topic_partition}: the target refused {len(refused)} messages, offsets "
            f"{some_of(offsets)}: {error}"
        )
        if self._settings.on_failure is OnFailure.ABORT:
            advice = f"create {batch.topic} at the target, and run" if is_missing(error) else "run"
            raise MirrorFailed(f"{text}. They are not committed: {advice} the mirror again")
        logger.error("%s. They are skipped", text)
        self._stats.skipped(len(refused))

    def _wait_after(self, batch: MessageBatch, error: KafkaError) -> None:
        logger.warning(
            "%s: not stored by the target: %s; trying again", batch.topic_partition, error
        )
        if self._stopping.wait(RESEND_AFTER_S):
            raise Interrupted


def _keys_of(keys: list[bytes | None]) -> list[bytes | None] | None:
    """None if no message has a key: such messages are sent faster."""
    return None if all(key is None for key in keys) else keys


def _times_of(batch: MessageBatch, places: Sequence[int]) -> list[int | None] | None:
    """The timestamps of messages of a batch, None for one without; None if none has one."""
    times = batch.timestamps
    if times is None:
        return None
    some = [times[place] for place in places]
    return None if max(some) < 0 else [None if time < 0 else time for time in some]


def _size(data: bytes | None) -> int:
    return 0 if data is None else len(data)
