"""DStreams of Kafka messages without a receiver: each interval becomes one RDD of exact ranges.

Spark requests the RDD of an interval on the driver. Its ranges start where the last one ended, and
end at the latest offsets, or as far as rates.py allows. Nothing is stored in between, and no
message is in two RDDs. Source: DirectKafkaInputDStream 2.4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from math import inf
from typing import Any, Final

from pyspark import RDD
from pyspark.streaming import DStream, StreamingContext, StreamingListener
from pyspark.streaming.dstream import TransformedDStream

from kafka08.arrow.committed import commit_offsets, committed_only
from kafka08.arrow.options import Topics
from kafka08.client.retry import RetryPolicy, retry
from kafka08.clock import SYSTEM_CLOCK
from kafka08.errors import ClientError, ConfigError, KafkaError
from kafka08.spark.old_cluster import OldCluster
from kafka08.spark.old_values import OffsetRange
from kafka08.spark.rates import PidRate, RateLimit
from kafka08.spark.rdd import Handle, KafkaRDD
from kafka08.spark.worker_python import check_workers
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

MAX_RETRIES: Final = "spark.streaming.kafka.maxRetries"
RETRY_BACKOFF_MS: Final = 200
CONCURRENT_JOBS: Final = "spark.streaming.concurrentJobs"
KEPT_BATCHES: Final = 1000
"""Number of earlier intervals kept when one is done. With several at a time, earlier ones may still
run; others had no output, and Spark never reports that they are done."""

ForEach = Callable[..., Any]
Numbers = Mapping[TopicPartition, int]
StoreStarts = Callable[[Numbers], None]
"""Stores where a stream starts in some partitions, before it reads them."""
Completed = Callable[[list[OffsetRange], Any], None]
"""Called with an interval's ranges and Spark's JavaBatchInfo of it; times in milliseconds."""


class KafkaDStream(TransformedDStream[Any]):
    """A DStream whose `foreachRDD` and `transform` pass KafkaRDDs, which have `offsetRanges()`.

    rate_limit   limits the messages of an interval
    """

    def __init__(self, ticks: DStream[Any], batches: Batches) -> None:
        super().__init__(ticks, lambda time, _: batches.at(time))
        self._batches = batches
        self.rate_limit = batches.rate_limit

    def foreachRDD(self, func: ForEach) -> None:
        """Call `func(rdd)` or `func(time, rdd)` for each interval."""
        call = _with_time(func)
        super().foreachRDD(lambda time, _: call(time, self._batches.at(time)))

    def transform(self, func: ForEach) -> TransformedDStream[Any]:
        """The stream of the results of `func(rdd)` or `func(time, rdd)`."""
        call = _with_time(func)
        return TransformedDStream(self, lambda time, _: call(time, self._batches.at(time)))


class Batches:
    """The RDDs of the intervals, on the driver. An RDD is made at the first request for it (Spark
    requests them in order), and kept until its outputs are done, however late that is.

    next_offsets   start of the next interval
    rate_limit     limits the messages of an interval
    found_in       topics whose new partitions are read, too, from their earliest offset
    store_starts   gets these offsets first: if the first interval with such a partition fails, the
                   next start must find it
    """

    def __init__(
        self,
        ssc: StreamingContext,
        cluster: OldCluster,
        start: Numbers,
        handle: Handle,
        found_in: Topics | None = None,
        store_starts: StoreStarts = lambda _: None,
    ) -> None:
        self.next_offsets = dict(start)
        self._sc = ssc.sparkContext
        self._cluster = cluster
        self._handle = handle
        self._found_in = found_in
        self._store_starts = store_starts
        conf = self._sc.getConf()
        interval_ms = ssc._jssc.ssc().graph().batchDuration().milliseconds()
        self.rate_limit = RateLimit(lambda name, default: str(conf.get(name, default)), interval_ms)
        self._policy = RetryPolicy(1 + int(conf.get(MAX_RETRIES, "1") or 1), RETRY_BACKOFF_MS, inf)
        self._made: dict[int, KafkaRDD] = {}
        """End of the interval → its RDD, in order."""
        self._newest_ms = 0

    def at(self, time: datetime) -> KafkaRDD:
        """The RDD of the interval that ends at `time`, the same one each time. ClientError after it
        is done: its messages are in no other RDD. DataLost, in each interval, while a log ends
        before the stream's position."""
        time_ms = since_1970_ms(time)
        rdd = self._made.get(time_ms)
        if rdd is not None:
            return rdd
        if time_ms <= self._newest_ms:
            raise ClientError(
                f"the interval until {time} is done and its RDD forgotten; persist() what an "
                "output needs of earlier intervals"
            )
        self._made[time_ms] = rdd = self._next()
        self._newest_ms = time_ms
        return rdd

    def done(self, time_ms: int) -> list[OffsetRange]:
        """Forget an interval. Returns its ranges; none if the interval is unknown."""
        rdd = self._made.pop(time_ms, None)
        earlier = [made_ms for made_ms in list(self._made) if made_ms < time_ms]
        for made_ms in earlier[:-KEPT_BATCHES]:
            del self._made[made_ms]
        return rdd.offsetRanges() if rdd else []

    def _next(self) -> KafkaRDD:
        with self._cluster.deadline():
            latest = retry(
                self._latest, self._policy, SYSTEM_CLOCK, what="looking up the latest offsets"
            )
        limits = self.rate_limit.limits(
            {tp: max(0, latest[tp] - start) for tp, start in self.next_offsets.items()}
        )
        ranges = [
            OffsetRange(*tp, start, clamped(start, latest[tp], limits[tp] if limits else None))
            for tp, start in sorted(self.next_offsets.items())
        ]
        rdd = self._cluster.rdd(self._sc, ranges, self._handle)
        # Last: after an error in between, the next interval has these messages.
        self.next_offsets = {r.topic_partition: r.until_offset for r in ranges}
        return rdd

    def _latest(self) -> dict[TopicPartition, int]:
        offsets = self._cluster.offsets
        if self._found_in is not None:
            there = offsets.subscribed(self._found_in, must_exist=False)
            new = [tp for tp in there if tp not in self.next_offsets]
            starts = offsets.earliest(new)
            if starts:
                self._store_starts(starts)
            self.next_offsets.update(starts)
        return self._cluster.ends_from(self.next_offsets)


def since_1970_ms(time: datetime) -> int:
    """Milliseconds since 1970 of a local time from Spark. The hour in which summer time ends comes
    twice, and the two are equal as `datetime`."""
    return round(time.timestamp() * 1000)


def clamped(start: int, latest: int, limit: int | None) -> int:
    """The end of an interval; `latest` is at or behind its `start`."""
    return latest if limit is None else min(latest, start + limit)


def direct_stream(
    ssc: StreamingContext,
    topics: Sequence[str],
    cluster: OldCluster,
    from_offsets: Mapping[Any, int] | None,
    handle: Handle,
) -> KafkaDStream:
    """See KafkaUtils.createDirectStream."""
    if from_offsets:
        start = {TopicPartition(*tp): int(offset) for tp, offset in from_offsets.items()}
        _check_topics(set(topics), {tp.topic for tp in start})
        cluster.check([OffsetRange(*tp, offset, offset) for tp, offset in start.items()])
    else:
        with cluster.deadline():
            partitions = cluster.offsets.subscribed(Topics(tuple(sorted(topics))))
            start = _reset(cluster, partitions)
    return _stream(ssc, Batches(ssc, cluster, start, handle))


def group_stream(
    ssc: StreamingContext, topics: Sequence[str], cluster: OldCluster, group: str, handle: Handle
) -> KafkaDStream:
    """See KafkaUtils.createStream."""
    subscribed = Topics(tuple(topics))
    with cluster.deadline():
        partitions = cluster.offsets.subscribed(subscribed)
        committed = committed_only(cluster.client, group, partitions, "zookeeper")
        earliest = cluster.offsets.earliest(partitions)
        latest = cluster.offsets.latest_up_to({tp: committed.get(tp, 0) for tp in partitions})
    start = group_starts(
        committed, earliest, latest, earliest if cluster.starts_at_earliest else latest
    )

    def store_starts(starts: Numbers) -> None:
        commit_offsets(cluster.client, group, starts, "zookeeper")

    # Before the first interval: if that fails, another look-up would find a later log end.
    if chosen := {tp: offset for tp, offset in start.items() if committed.get(tp) != offset}:
        store_starts(chosen)
    batches = Batches(ssc, cluster, start, handle, subscribed, store_starts)
    at_once = int(ssc.sparkContext.getConf().get(CONCURRENT_JOBS, "1"))
    return _stream(ssc, batches, GroupCommitter(cluster, group, at_once))


def group_starts(
    committed: Numbers, earliest: Numbers, latest: Numbers, reset: Numbers
) -> dict[TopicPartition, int]:
    """Where a group continues in each partition: at its committed offset; or as `reset` says, if
    the log does not have that offset, and in a topic without one. A partition without one in a
    topic that has some was added since: it is read from its earliest offset."""
    topics = {tp.topic for tp in committed}
    starts = {tp: earliest[tp] if tp.topic in topics else reset[tp] for tp in reset}
    for tp, offset in committed.items():
        if earliest[tp] <= offset <= latest[tp]:
            starts[tp] = offset
        else:
            starts[tp] = reset[tp]
            logger.warning(
                "%s: offset %d of the group is not in the log, which has [%d, %d); reading from %d",
                *(tp, offset, earliest[tp], latest[tp], reset[tp]),
            )
    return starts


def _check_topics(topics: set[str], of_offsets: set[str]) -> None:
    """Reject the topics that Spark 2.4 rejects."""
    if topics != of_offsets:
        raise ConfigError(
            f"The specified topics: {' '.join(sorted(topics))} do not equal to the topic from "
            f"offsets: {' '.join(sorted(of_offsets))}"
        )


class CompletedBatches(StreamingListener):
    """A listener: when all outputs of an interval have ended, successfully or not, it forgets the
    interval and calls the observers. Tells `committer`, if there is one, also which intervals have
    outputs."""

    def __init__(
        self,
        batches: Batches,
        observers: Sequence[Completed],
        committer: GroupCommitter | None = None,
    ) -> None:
        super().__init__()
        self._batches = batches
        self._observers = observers
        self._committer = committer

    def onBatchSubmitted(self, batchSubmitted: Any) -> None:
        if self._committer is not None:
            self._committer.submitted(batchSubmitted.batchInfo().batchTime().milliseconds())

    def onBatchCompleted(self, batchCompleted: Any) -> None:
        info = batchCompleted.batchInfo()
        ranges = self._batches.done(info.batchTime().milliseconds())
        for completed in self._observers:
            completed(ranges, info)
        if self._committer is not None:
            self._committer.completed(ranges, info)


class GroupCommitter:
    """Commits the end of each interval for a group, in order, until an output fails: a commit marks
    the messages of all earlier intervals as done, too.

    at_once   how many intervals may run at the same time (spark.streaming.concurrentJobs)
    """

    def __init__(self, cluster: OldCluster, group: str, at_once: int = 1) -> None:
        self._cluster = cluster
        self._group = group
        self._at_once = at_once
        self._failed = False
        self._running: set[int] = set()
        """Ends of the intervals that were submitted and are not completed."""
        self._ended: dict[int, dict[TopicPartition, int]] = {}
        """End of an interval that was completed → its offsets, which are not committed."""
        self._newest_ms = 0
        """End of the last interval whose offsets were committed."""

    def submitted(self, time_ms: int) -> None:
        """An interval with outputs is about to run. Spark calls it in order."""
        self._running.add(time_ms)

    def completed(self, ranges: list[OffsetRange], info: Any) -> None:
        time_ms = info.batchTime().milliseconds()
        self._running.discard(time_ms)
        for output in info.outputOperationInfos().values():
            if output.failureReason() is not None and not self._failed:
                self._failed = True
                logger.error(
                    "An output of the interval until %d ms failed; group %s no longer commits: "
                    "restart the stream to read its messages again",
                    *(time_ms, self._group),
                )
        if self._failed or time_ms < self._newest_ms:
            return
        self._ended[time_ms] = {r.topic_partition: r.until_offset for r in ranges}
        ends = self._next_ends(time_ms)
        try:
            if ends:
                commit_offsets(self._cluster.client, self._group, ends, "zookeeper")
        except KafkaError as error:
            logger.warning(
                "Cannot commit offsets of group %s: %s; retrying with the next batch",
                *(self._group, error),
            )

    def _next_ends(self, completed_ms: int) -> dict[TopicPartition, int]:
        """The offsets of the completed intervals that no earlier one keeps waiting."""
        earlier = sorted(time_ms for time_ms in self._running if time_ms < completed_ms)
        # Jobs start in order, so no more of them can still run: Spark dropped the others' events.
        self._running.difference_update(earlier[: max(0, len(earlier) + 1 - self._at_once)])
        ends: dict[TopicPartition, int] = {}
        for time_ms in sorted(self._ended):
            if self._running and min(self._running) < time_ms:
                break
            ends |= self._ended.pop(time_ms)
            self._newest_ms = time_ms
        return ends


def observe_rate(pid: PidRate, ranges: list[OffsetRange], info: Any) -> None:
    """Pass the processing time of an interval to `pid`."""
    pid.done(
        info.processingEndTime(),
        sum(r.size for r in ranges),
        info.processingDelay(),
        info.schedulingDelay(),
    )


def _reset(cluster: OldCluster, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The offsets at which auto.offset.reset starts."""
    ask = cluster.offsets.earliest if cluster.starts_at_earliest else cluster.offsets.latest
    return ask(partitions)


def _stream(
    ssc: StreamingContext, batches: Batches, committer: GroupCommitter | None = None
) -> KafkaDStream:
    if ssc._jssc.ssc().checkpointDir() is not None:
        raise ConfigError(
            "a DStream checkpoint cannot be used with this stream: keep offsetRanges() with your "
            "results and pass fromOffsets (or use the group of createStream)"
        )
    check_workers(ssc.sparkContext)
    pid = batches.rate_limit.pid
    observers = [] if pid is None else [partial(observe_rate, pid)]
    ssc.addStreamingListener(CompletedBatches(batches, observers, committer))
    nothing: RDD[Any] = ssc.sparkContext.parallelize([], 1)
    return KafkaDStream(ssc.queueStream([nothing], default=nothing), batches)


def _with_time(func: ForEach) -> ForEach:
    """Like DStream: a function of one argument gets no time."""
    if func.__code__.co_argcount == 1:
        return lambda _, rdd: func(rdd)
    return func
