"""The streaming source: decides where each micro-batch ends, and its ranges. On the driver."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Set
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kafka08.arrow.committed import commit_offsets
from kafka08.arrow.connections import close_all
from kafka08.arrow.creations import TopicCreations
from kafka08.arrow.data_loss import (
    Loss,
    MissingPartition,
    RecreatedTopic,
    Truncation,
    clamp,
    report,
)
from kafka08.arrow.options import ReadOptions
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.resolve import Resolver
from kafka08.errors import KafkaError
from kafka08.spark.plain_errors import plain_errors
from kafka08.spark.stream_offsets import (
    Creations,
    StreamOffset,
    end_of_batch,
    offsets_between,
    ranges_between,
    recreated_topics,
    to_compare,
)
from kafka08.spark.tasks import RangeTasks, range_partitions
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

Position = dict[str, Any]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark calls one such object in one Python process on the driver; `read` runs in the workers,
    on a copy.

    resolver, creations   for tests
    """

    def __init__(
        self,
        options: ReadOptions,
        schema: StructType,
        resolver: Resolver | None = None,
        creations: TopicCreations | None = None,
    ) -> None:
        self._options = options
        self._tasks = RangeTasks(options.address, options.settings, schema)
        self._own_resolver = resolver
        self._creations = creations or TopicCreations(options.address.zookeeper)
        self._initial: Position | None = None
        self._target: Mapping[TopicPartition, int] | None = None
        """With AvailableNow: the log ends when the query began."""
        self._epochs: dict[TopicPartition, int] = {}
        """Of leaders that have the messages before the log ends; NO_LEADER_EPOCH: not known."""
        self._planned: Position = {}
        """The end of the last batch that this process has planned."""
        self._last_seen: Mapping[TopicPartition, int] = {}
        self._last_batch: float | None = None

    def __getstate__(self) -> dict[str, object]:
        """The state of the copy in a worker, which only reads; the rest is the driver's."""
        return {"_tasks": self._tasks}

    @property
    def _resolver(self) -> Resolver:
        if self._own_resolver is None:
            self._own_resolver = Resolver(self._options)
        return self._own_resolver

    @plain_errors
    def initialOffset(self) -> Position:
        """Where a new query begins. Spark calls it twice; the result is the same."""
        if self._initial is None:
            resolver = self._resolver
            with resolver.deadline():
                partitions = resolver.partitions()
                created = self._creations.of({tp.topic for tp in partitions})
                offsets = resolver.offsets_at(self._options.start, partitions, "startingOffsets")
            if self._target is not None:
                # Partitions that appear after the target was fixed are for the next run.
                offsets = {tp: o for tp, o in offsets.items() if tp in self._target}
            self._initial = StreamOffset.initial(offsets, created).to_json()
        return self._initial

    @plain_errors
    def prepareForTriggerAvailableNow(self) -> None:
        with self._resolver.deadline():
            self._target = self._latest()

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    @plain_errors
    def latestOffset(self, start: Position, limit: ReadLimit) -> Position:
        """The end of the next batch; `start` itself if none is due. DataLost, listing every
        partition, if some are gone, of a recreated topic, or end before `start`, and failOnDataLoss
        is on."""
        with self._resolver.deadline():
            return self._end_of_next(start, limit)

    def _end_of_next(self, start: Position, limit: ReadLimit) -> Position:
        begin = StreamOffset.from_json(start)
        seen = self._last_seen
        created, latest = self._current_ends(begin)
        self._last_seen = latest
        recreated = recreated_topics(begin, created)
        latest = self._await_ends(begin, latest, recreated)
        again = self._report_lost(begin, latest, recreated, seen)
        new = self._resolver.log_offsets.earliest(sorted(set(latest) - set(begin.ends)))
        starts = {**new, **again}
        everything = end_of_batch(begin, starts, latest, None)
        if everything.ends == begin.ends and not again:
            return start
        if self._waits(limit, offsets_between(begin, everything)):
            return start
        self._report_missed(new, latest)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = end_of_batch(begin, starts, latest, most, created, self._epochs)
        self._last_batch = self._resolver.cluster.clock.monotonic()
        self._planned = end.to_json()
        return self._planned

    def reportLatestOffset(self) -> Position | None:
        return StreamOffset(self._last_seen).to_json() if self._last_seen else None

    @plain_errors
    def partitions(self, start: Position, end: Position) -> list[InputPartition]:
        """The tasks of a batch; the same ranges at each call for it. DataLost, listing every
        missing range, if retention was faster and failOnDataLoss is on."""
        begin, finish = StreamOffset.from_json(start), StreamOffset.from_json(end)
        wanted = ranges_between(begin, finish)
        with self._resolver.deadline():
            wanted = self._of_topics_as_planned(wanted, finish)
            if end != self._planned:  # by a process before this one
                self._report_truncated(begin, wanted)
            return range_partitions(self._resolver, self._not_deleted(wanted))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._tasks.read(partition)

    def commit(self, end: Position) -> None:
        """Commit for the group, with the option commitOffsets. Spark calls it one batch late, and
        never for the last batch (see GroupCommitListener). A failure is logged; the next batch
        commits again."""
        group, storage = self._options.group, self._options.commit_to
        if storage is None:
            return
        offsets = StreamOffset.from_json(end).ends
        try:
            with self._resolver.deadline():
                commit_offsets(self._resolver.cluster, group, offsets, storage)
        except KafkaError as error:
            logger.warning("Cannot commit offsets of group %s in %s: %s", group, storage, error)

    def stop(self) -> None:
        self._creations.close()
        close_all()

    def _latest(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, int]:
        """The log ends of the subscribed partitions, or of `partitions`, now, without partitions
        that no longer exist: these are for the data loss rule."""
        offsets = self._resolver.log_offsets
        assert self._options.subscription is not None
        there = offsets.subscribed(self._options.subscription, must_exist=False)
        if partitions is not None:
            there = tuple(tp for tp in there if tp in partitions)
        found = offsets.latest_with_epochs(there)
        self._epochs.update((tp, epoch) for tp, (_, epoch) in found.items())
        return {tp: end for tp, (end, _) in found.items()}

    def _current_ends(self, begin: StreamOffset) -> tuple[Creations, Mapping[TopicPartition, int]]:
        """(topic → the transaction that created it, log ends or the target of AvailableNow).
        Repeated if a topic appeared or was recreated in between."""
        if self._target is not None and not self._creations.are_known:
            return {}, self._target
        topics = {tp.topic for tp in begin.ends}
        for _ in range(self._options.settings.looks + 1):
            created = self._creations.of(topics)
            latest: Mapping[TopicPartition, int] = self._latest()
            topics |= {tp.topic for tp in latest}
            if self._creations.of(topics) == created:
                break
        if self._target is None:
            return created, latest
        recreated = recreated_topics(begin, created)
        kept = {tp: end for tp, end in self._target.items() if tp.topic not in recreated}
        self._target = kept | {tp: end for tp, end in latest.items() if tp.topic in recreated}
        return created, self._target

    def _await_ends(
        self, begin: StreamOffset, latest: Mapping[TopicPartition, int], recreated: Set[str]
    ) -> Mapping[TopicPartition, int]:
        """`latest`, looked up again while it is behind `begin` or lacks a partition: a leader that
        was just elected has a lower high watermark for a moment, a broker that just started knows
        fewer partitions, and messages may have arrived between the target of AvailableNow and the
        start. Such partitions have no new messages in this batch. Ignores `recreated` topics.

        Finally the leader's log end counts: a high watermark may stay behind until a dead follower
        has left the in-sync replicas, and then nothing is lost."""
        settings = self._options.settings
        found = dict(latest)
        for _ in range(settings.looks):
            behind = [
                tp
                for tp, offset in begin.ends.items()
                if found.get(tp, -1) < offset and tp.topic not in recreated
            ]
            if not behind:
                break
            logger.info("The logs of %s end before the stream's position; retrying", behind)
            self._resolver.cluster.clock.sleep(settings.retry_interval_ms / 1000)
            again = self._latest(behind)
            found.update({tp: min(again[tp], begin.ends[tp]) for tp in behind if tp in again})
        else:
            behind = [
                tp
                for tp in found
                if found[tp] < begin.ends.get(tp, 0) and tp.topic not in recreated
            ]
            written = self._resolver.log_offsets.written(behind)
            found.update({tp: begin.ends[tp] for tp in behind if written[tp] >= begin.ends[tp]})
        return found

    def _report_lost(
        self,
        begin: StreamOffset,
        latest: Mapping[TopicPartition, int],
        recreated: Set[str],
        seen: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        """Raise or log deleted, recreated and truncated partitions. Returns new start offsets: the
        first offset of each log of a recreated topic, and where a log has other messages than those
        that were read.

        recreated   topics that were recreated according to ZooKeeper. If it has no information, a
                    log that ends before the stream and begins at 0 counts as recreated, too: it may
                    be new, and skipping its messages would lose them silently
        seen        the log ends that this process last saw
        """
        there = [tp for tp in sorted(begin.ends) if tp in latest]
        cut = [tp for tp in there if latest[tp] < begin.ends[tp] and tp.topic not in recreated]
        again = [tp for tp in there if tp.topic in recreated]
        earliest = self._resolver.log_offsets.earliest([*cut, *again])
        unknown = [tp for tp in cut if tp.topic not in begin.created and not earliest[tp]]
        again += unknown
        truncated = self._truncated(begin, [tp for tp in there if tp not in again])
        missing = {tp: end for tp, end in sorted(begin.ends.items()) if tp not in latest}
        others = self._resolver.log_offsets.existing(missing)
        losses: list[Loss | RecreatedTopic | MissingPartition | Truncation] = [
            MissingPartition(tp, end, exists=tp in others) for tp, end in missing.items()
        ]
        losses += [
            Loss(OffsetRange(*tp, latest[tp], begin.ends[tp]), earliest[tp], latest[tp])
            for tp in cut
            if tp not in unknown and tp not in truncated
        ]
        losses += truncated.values()
        losses += [
            RecreatedTopic(
                *(tp, begin.ends[tp], seen.get(tp), earliest[tp], latest[tp]),
                is_known=tp.topic in recreated,
                is_start=begin.starts.get(tp) == begin.ends[tp],
            )
            for tp in again
        ]
        report(losses, fail=self._options.settings.fail_on_data_loss)
        diverging = {tp: loss.left.from_offset for tp, loss in truncated.items()}
        return {tp: earliest[tp] for tp in again} | diverging

    def _truncated(
        self, begin: StreamOffset, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Truncation]:
        """Those of `partitions` whose log has other messages before the stream's position, as after
        an unclean election. They are read again from the first other one, or from the start of the
        log where that is not known."""
        offsets = self._resolver.log_offsets
        found = offsets.truncations(to_compare(begin, partitions, self._epochs))
        starts = offsets.earliest([tp for tp, loss in found.items() if loss.diverges_at is None])
        for tp, loss in found.items():
            if loss.diverges_at is not None:
                starts[tp] = loss.diverges_at
        return {
            tp: Truncation(OffsetRange(*tp, starts[tp], begin.ends[tp]), loss)
            for tp, loss in found.items()
        }

    def _report_truncated(self, begin: StreamOffset, wanted: Collection[OffsetRange]) -> None:
        """Raise or log that the log has other messages before a batch that is repeated."""
        asked = to_compare(begin, {r.topic_partition for r in wanted})
        found = self._resolver.log_offsets.truncations(asked)
        losses = [
            Truncation(r, found[tp]) for r in wanted for tp in [r.topic_partition] if tp in found
        ]
        report(losses, fail=self._options.settings.fail_on_data_loss)

    def _of_topics_as_planned(
        self, wanted: list[OffsetRange], end: StreamOffset
    ) -> list[OffsetRange]:
        """`wanted` without topics that were recreated since the batch was planned: their offsets
        mean other messages. Raises or logs these."""
        recreated = recreated_topics(end, self._creations.of(end.created))
        lost = [r for r in wanted if r.topic in recreated]
        offsets = self._resolver.log_offsets
        there = sorted(offsets.existing(r.topic_partition for r in lost))
        earliest, latest = offsets.earliest(there), offsets.latest(there)
        report(
            [
                RecreatedTopic(
                    *(tp, r.from_offset, r.until_offset, earliest.get(tp, 0), latest.get(tp, 0)),
                    is_known=True,
                )
                for r in lost
                for tp in [r.topic_partition]
            ],
            fail=self._options.settings.fail_on_data_loss,
        )
        return [r for r in wanted if r.topic not in recreated]

    def _report_missed(
        self, new: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Report partitions that were found late, after their first messages were deleted. Spark's
        own connector does the same."""
        losses = [
            Loss(OffsetRange(*tp, 0, start), start, ends[tp])
            for tp, start in sorted(new.items())
            if start > 0
        ]
        report(losses, fail=self._options.settings.fail_on_data_loss)

    def _not_deleted(self, wanted: list[OffsetRange]) -> list[OffsetRange]:
        """The parts of `wanted` that retention has left. Ignores its end: after an election the
        leader might not expose it yet, and tasks wait for that."""
        offsets = self._resolver.log_offsets
        there = offsets.existing({r.topic_partition for r in wanted})
        ends = {r.topic_partition: r.until_offset for r in wanted if r.topic_partition in there}
        kept, losses = clamp(wanted, offsets.earliest(sorted(there)), ends)
        report(losses, fail=self._options.settings.fail_on_data_loss)
        return kept

    def _waits(self, limit: ReadLimit, available: int) -> bool:
        """Whether the batch should wait for minOffsetsPerTrigger messages: not the first batch, not
        longer than maxTriggerDelay, and never with AvailableNow or without limits."""
        least = self._options.min_offsets_per_trigger
        if least is None or available >= least or isinstance(limit, ReadAllAvailable):
            return False
        if self._target is not None or self._last_batch is None:
            return False
        waited_ms = (self._resolver.cluster.clock.monotonic() - self._last_batch) * 1000
        return waited_ms < self._options.max_trigger_delay_ms
