"""Resolves the options of a read to exact ranges: on the driver, once, from the offsets of now.

`Resolver` sends requests; the decisions (`batch_ranges`, `by_segment_end`) are pure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from kafka08.arrow.bounds import SEGMENT_GRAIN, Bound, Committed, Extreme, Offsets, Times
from kafka08.arrow.committed import committed_only
from kafka08.arrow.connections import cluster_at
from kafka08.arrow.data_loss import Advised, Loss, clamp, report
from kafka08.arrow.log_offsets import LogOffsets
from kafka08.arrow.options import ReadOptions, check_same_partitions
from kafka08.arrow.plan import split, split_by_bytes
from kafka08.arrow.ranges import OffsetRange, furthest_ends
from kafka08.arrow.sampling import densities
from kafka08.client.cluster import ClusterClient
from kafka08.errors import (
    ConfigError,
    KafkaError,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, Broker, TopicPartition

logger = logging.getLogger(__name__)

Numbers = Mapping[TopicPartition, int]


class NothingCommitted(Advised):
    """A read should start at a group's committed offsets, but some partitions, named in `facts`,
    have none."""


class Resolver:
    """Finds the partitions and offsets for `options`, whose address is resolved.

    cluster   for tests and callers with their own client; default: this process's client
    names     names of the start and end options, for errors
    """

    def __init__(
        self,
        options: ReadOptions,
        cluster: ClusterClient | None = None,
        names: tuple[str, str] = ("startingOffsets", "endingOffsets"),
    ) -> None:
        self.options = options
        self._names = names
        self.cluster = cluster or cluster_at(options.address, options.settings)
        self.log_offsets = LogOffsets(self.cluster, options.settings)

    def deadline(self) -> AbstractContextManager[None]:
        """For a block that is one plan."""
        return self.options.settings.deadline(self.cluster.clock)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """The subscribed partitions that exist now."""
        assert self.options.subscription is not None
        return self.log_offsets.subscribed(self.options.subscription)

    def batch(self) -> list[OffsetRange]:
        """The ranges of a batch, clamped to the existing offsets (or DataLost): one per partition,
        or those of `offsetRanges`."""
        wanted = self.options.ranges
        if wanted is None:
            partitions = self.partitions()
            starts = self.offsets_at(self.options.start, partitions, self._names[0])
            if isinstance(self.options.start, Offsets | Committed):
                starts = self._not_ahead(starts)
            ends = self.offsets_at(self.options.end, partitions, self._names[1])
            wanted = tuple(batch_ranges(starts, ends))
        return self.available(wanted)

    def _not_ahead(self, starts: Numbers) -> dict[TopicPartition, int]:
        """`starts`; the log's end in place of one behind it. The messages between existed once, so
        that is reported as loss. What is written there later is no part of it."""
        latest = self.log_offsets.latest_up_to(starts)
        ahead = [tp for tp, start in sorted(starts.items()) if start > latest[tp]]
        earliest = self.log_offsets.earliest(ahead)
        report(
            [
                Loss(OffsetRange(*tp, latest[tp], starts[tp]), earliest[tp], latest[tp])
                for tp in ahead
            ],
            fail=self.options.settings.fail_on_data_loss,
        )
        return {tp: min(start, latest[tp]) for tp, start in starts.items()}

    def available(self, wanted: Sequence[OffsetRange]) -> list[OffsetRange]:
        """The parts of `wanted` that the leaders have; missing offsets are raised or logged."""
        ends = furthest_ends(r for r in wanted if r.size)
        there = sorted(self.log_offsets.existing(ends))
        latest = self.log_offsets.latest_up_to({tp: ends[tp] for tp in there})
        kept, losses = clamp(wanted, self.log_offsets.earliest(there), latest)
        report(losses, fail=self.options.settings.fail_on_data_loss)
        return kept

    def since(self, ranges: Sequence[OffsetRange], time_ms: int) -> list[OffsetRange]:
        """`ranges` from their partition's first message at or after `time_ms` on, without those
        that have none; unchanged where brokers cannot find messages by their timestamps."""
        if not self.options.address.negotiates:
            return list(ranges)
        try:
            first = self.log_offsets.first_since({r.topic_partition: time_ms for r in ranges})
        except (UnsupportedVersion, UnsupportedForMessageFormat) as error:
            logger.info("All messages are read, not those of a time: %s", error)
            return list(ranges)
        return [
            r._replace(from_offset=max(r.from_offset, start))
            for r in ranges
            if (start := first[r.topic_partition]) is not None and start < r.until_offset
        ]

    def tasks(self, ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
        """`ranges` split as the options say."""
        least, most = self.options.min_partitions, self.options.max_records_per_partition
        if self.options.split_by_bytes and least is not None:
            return split_by_bytes(densities(self.cluster, ranges), ranges, least, most)
        return split(ranges, least, most)

    def leader(self, tp: TopicPartition) -> Broker | None:
        """The leader if known; with None the task looks it up."""
        try:
            return self.cluster.metadata.leader(tp)
        except KafkaError:
            return None

    def offsets_at(
        self, bound: Bound, partitions: Sequence[TopicPartition], option: str
    ) -> dict[TopicPartition, int]:
        """The offset of `bound` in each of `partitions`; `option` is its name in errors."""
        if isinstance(bound, Extreme):
            return self._extreme(bound, partitions)
        if isinstance(bound, Committed):
            return self._committed(bound, partitions)
        check_same_partitions(option, bound, tuple(partitions))
        if isinstance(bound, Times):
            return self._by_time(bound, partitions, option)
        return self._exact(bound, partitions)

    def _by_time(
        self, times: Times, partitions: Sequence[TopicPartition], option: str
    ) -> dict[TopicPartition, int]:
        """Offsets by the timestamps of messages, or by segments with that granularity."""
        at_end = option.startswith("end")
        if times.by_segment:
            return (self._segment_ends if at_end else self._segment_starts)(times, partitions)
        name = option.replace("Offsets", "Timestamp")
        if not self.options.address.negotiates:
            raise ConfigError(f"{name}: {SEGMENT_GRAIN}")
        try:
            found = self.log_offsets.first_since({tp: times.of(tp) for tp in partitions})
        except (UnsupportedVersion, UnsupportedForMessageFormat) as error:
            raise ConfigError(f"{name}: {SEGMENT_GRAIN} ({error})") from error
        late = [tp for tp in partitions if found[tp] is None]
        if not at_end:
            self._check_late(times, late)
        ends = self.log_offsets.latest(late)
        return {tp: ends[tp] if (offset := found[tp]) is None else offset for tp in partitions}

    def _check_late(self, times: Times, late: Sequence[TopicPartition]) -> None:
        """Reject a start after which the partitions `late` have no message, unless the option
        allows the log end."""
        if late and not times.latest_if_later:
            raise ConfigError(
                f"no message is later than the starting time in {', '.join(map(str, late))}; "
                f"startingOffsetsByTimestampStrategy=latest starts at the end then"
            )

    def _extreme(
        self, which: Extreme, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        ask: Callable[[Sequence[TopicPartition]], dict[TopicPartition, int]] = (
            self.log_offsets.earliest if which is Extreme.EARLIEST else self.log_offsets.latest
        )
        return ask(partitions)

    def _exact(
        self, offsets: Offsets, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        found = {tp: offsets.by_partition[tp] for tp in partitions}
        for which in (EARLIEST_OFFSET, LATEST_OFFSET):
            named = [tp for tp, offset in found.items() if offset == which]
            found.update(self._extreme(Extreme(which), named))
        return found

    def _committed(
        self, bound: Committed, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The group's offsets. The fallback, or an error, for partitions without one."""
        found = committed_only(self.cluster, self.options.group, partitions, self.options.storage)
        missing = [tp for tp in partitions if tp not in found]
        if missing and bound.fallback is None:
            raise NothingCommitted(
                f"group {self.options.group} has no committed offset in {self.options.storage} for "
                f"{', '.join(map(str, missing))}",
                "To start there nevertheless, set committedFallback to earliest",
            )
        if missing:
            assert bound.fallback is not None
            found.update(self._extreme(bound.fallback, missing))
        return found

    def _segment_starts(
        self, times: Times, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The first offset of the last segment that was completely written by then, else the
        earliest: no later message is missed."""
        before = self.log_offsets.last_segment_before({tp: times.of(tp) for tp in partitions})
        earliest = self.log_offsets.earliest(partitions)
        latest = self.log_offsets.latest(partitions)
        late = [tp for tp in partitions if before[tp] == latest[tp] > earliest[tp]]
        self._check_late(times, late)
        return {tp: earliest[tp] if (b := before[tp]) is None else b for tp in partitions}

    def _segment_ends(
        self, times: Times, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The end of the segment that was active at that time."""
        before = self.log_offsets.last_segment_before({tp: times.of(tp) for tp in partitions})
        segments = self.log_offsets.segments(partitions)
        return {tp: by_segment_end(before[tp], segments[tp]) for tp in partitions}


def batch_ranges(starts: Numbers, ends: Numbers) -> list[OffsetRange]:
    """A range for each partition, in order. An end before its start makes an empty range: times, or
    a log that changed meanwhile, can cause it. Such numbers in the options were rejected before."""
    return [OffsetRange(*tp, start, max(start, ends[tp])) for tp, start in sorted(starts.items())]


def by_segment_end(last_before: int | None, borders: Sequence[int]) -> int:
    """The end of the segment that was active when the segment at `last_before` was complete.
    `borders`: first offsets of the segments, then the log end."""
    later = [border for border in borders if last_before is None or border > last_before]
    # later[0] is the start of the active segment, later[1] its end.
    return later[min(1, len(later) - 1)] if later else borders[-1]
