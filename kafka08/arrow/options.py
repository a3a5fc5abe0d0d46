"""The options of a read, checked before the first request to the cluster. Pure, without Spark.

Where Spark's own connector (spark-sql-kafka-0-10) has an option, its name and its checks are the
same; docs/spark.md lists all. Source: KafkaSourceProvider of Spark 4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kafka08.arrow.bounds import (
    Bound,
    Committed,
    Extreme,
    Offsets,
    Times,
    take_end,
    take_start,
)
from kafka08.arrow.option_text import OptionText, partitions_from_json
from kafka08.arrow.ranges import OffsetRange, ranges_from_json
from kafka08.arrow.settings import ClusterAddress, ReadSettings, take_settings
from kafka08.client.requests import StorageName
from kafka08.consumer.java_pattern import compile_java_pattern
from kafka08.consumer.pattern_matcher import Matcher
from kafka08.errors import ConfigError
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

MAX_TRIGGER_DELAY_MS: Final = 15 * 60_000
GRAINS: Final = ("message", "segment")
SPLITS: Final = ("offsets", "bytes")
STORAGES: Final = ("zookeeper", "kafka")
ENDING: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
STARTING: Final = (
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
)
TRIGGER_LIMITS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
SUBSCRIPTIONS: Final = ("assign", "subscribe", "subscribePattern")


@dataclass(frozen=True, slots=True)
class Topics:
    """All partitions of these topics, which must exist."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """All partitions of every topic whose whole name matches a Java pattern."""

    text: str

    def compiled(self) -> Matcher:
        return compile_java_pattern(self.text)


@dataclass(frozen=True, slots=True)
class Assignment:
    """These partitions, which must exist."""

    partitions: tuple[TopicPartition, ...]


Subscription: TypeAlias = Topics | TopicPattern | Assignment


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of one read.

    address       of the cluster
    settings      for every task
    ranges        exact ranges; with them `subscription` is None, and start and end have no meaning
    start, end    where to read; a stream has no end (LATEST)
    min_partitions, max_records_per_partition   how ranges are split into tasks; None: not split
    split_by_bytes   the share of min_partitions is by bytes, which are measured; else by offsets
    min_offsets_per_trigger, max_offsets_per_trigger, max_trigger_delay_ms   of a stream
    include_headers   add the column `headers`, which is null where a message has none
    push_filters  let Spark pass filters on topic, partition, offset and timestamp to the reader
    group         its committed offsets are used (kafka.group.id); "" without one
    storage       the store from which the group's offsets are read
    commit_to     the store to which a stream commits for the group; None: it does not commit
    """

    address: ClusterAddress
    settings: ReadSettings
    ranges: tuple[OffsetRange, ...] | None
    subscription: Subscription | None
    start: Bound
    end: Bound
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    split_by_bytes: bool = False
    min_offsets_per_trigger: int | None = None
    max_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = MAX_TRIGGER_DELAY_MS
    include_headers: bool = False
    push_filters: bool = False
    group: str = ""
    storage: StorageName = "zookeeper"
    commit_to: StorageName | None = None

    def topic_filter(self) -> Callable[[str], bool]:
        """Whether a topic of this name may be read."""
        if isinstance(self.subscription, TopicPattern):
            return self.subscription.compiled().fullmatch
        if isinstance(self.subscription, Topics):
            return frozenset(self.subscription.names).__contains__
        partitions = self.subscription.partitions if self.subscription else self.ranges or ()
        return frozenset(each.topic for each in partitions).__contains__


def parse_read_options(options: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """Raises ConfigError, which names the option and its allowed values."""
    if not options:
        raise ConfigError(
            "no options reached the reader (Spark drops the OPTIONS of a permanent table): use "
            "spark.read.format('kafka08').option(…), CREATE TEMPORARY VIEW … USING kafka08 "
            "OPTIONS (…), or SELECT … FROM t WITH (…)"
        )
    given = {name.lower() for name in options}
    text = OptionText(options)
    if streaming:
        text.ignore("checkpointlocation")
    _refuse_contradictions(given, streaming)
    if not streaming:
        _note_trigger_limits(given)
    ranges, subscription = _take_subscription(text)
    segment_grain = text.take_choice("timestampGranularity", GRAINS, "message") == "segment"
    start = take_start(text, streaming=streaming, segment_grain=segment_grain)
    end = Extreme.LATEST if streaming else take_end(text, segment_grain=segment_grain)
    low, high = (text.take_number(f"{which}OffsetsPerTrigger") for which in ("min", "max"))
    if low is not None and high is not None and low > high:
        raise ConfigError(
            f"minOffsetsPerTrigger: {low} is above maxOffsetsPerTrigger, which is {high}"
        )
    text.take("groupIdPrefix")  # prefix of group ids of new consumers; without effect on 0.8
    address, settings, group, storage = take_settings(text)
    parsed = ReadOptions(
        address=address,
        settings=settings,
        ranges=ranges,
        subscription=subscription,
        start=start,
        end=end,
        min_partitions=text.take_number("minPartitions"),
        max_records_per_partition=text.take_number("maxRecordsPerPartition"),
        split_by_bytes=text.take_choice("splitBy", SPLITS, "offsets") == "bytes",
        min_offsets_per_trigger=low,
        max_offsets_per_trigger=high,
        max_trigger_delay_ms=text.take_duration_ms("maxTriggerDelay", MAX_TRIGGER_DELAY_MS),
        include_headers=text.take_bool("includeHeaders", False),
        push_filters=text.take_bool("pushFilters", False),
        group=group,
        storage=storage,
        commit_to=text.take_choice("commitOffsets", STORAGES),
    )
    text.finish()
    _check_together(parsed, streaming)
    return parsed


def _refuse_contradictions(given: set[str], streaming: bool) -> None:
    if streaming:
        for name in ENDING:
            if name.lower() in given:
                raise ConfigError(f"{name} is not valid in a stream, which has no end")
        if "offsetranges" in given:
            raise ConfigError("offsetRanges is not valid in a stream: ranges have an end")
    elif "commitoffsets" in given:
        raise ConfigError("commitOffsets is for streams; a batch does not move a group")
    if "offsetranges" in given:
        for name in (*SUBSCRIPTIONS, *STARTING, *ENDING):
            if name.lower() in given:
                raise ConfigError(f"offsetRanges excludes {name}: ranges say what is read")


def _note_trigger_limits(given: set[str]) -> None:
    """Log that a batch ignores the limits of a stream's batches, as Spark's own connector does."""
    if ignored := [name for name in TRIGGER_LIMITS if name.lower() in given]:
        logger.warning("%s: without effect in a batch, which has no triggers", ", ".join(ignored))


def _take_subscription(
    text: OptionText,
) -> tuple[tuple[OffsetRange, ...] | None, Subscription | None]:
    """Exact ranges, or the one subscription that is required."""
    ranges = text.take("offsetRanges")
    chosen = {name: text.take(name) for name in SUBSCRIPTIONS}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if ranges is not None:
        return ranges_from_json(ranges), None
    if len(chosen) != 1:
        raise ConfigError(
            f"exactly one of {', '.join(SUBSCRIPTIONS)} or offsetRanges must be given"
            + (f", not {' and '.join(chosen)}" if chosen else "")
        )
    ((name, value),) = chosen.items()
    assert value is not None
    if name == "assign":
        return None, Assignment(partitions_from_json(value, name))
    if name == "subscribePattern":
        pattern = TopicPattern(value.strip())
        if not pattern.text:
            raise ConfigError(f"subscribePattern: {value!r} matches no topic")
        pattern.compiled()
        return None, pattern
    topics = tuple(sorted({topic.strip() for topic in value.split(",") if topic.strip()}))
    if not topics:
        raise ConfigError(f"subscribe: {value!r} names no topic")
    return None, Topics(topics)


def _check_together(parsed: ReadOptions, streaming: bool) -> None:
    """Check conditions on more than one option."""
    if parsed.split_by_bytes and parsed.min_partitions is None:
        raise ConfigError("splitBy=bytes needs minPartitions: how many parts there should be")
    if not parsed.group and (parsed.commit_to or isinstance(parsed.start, Committed)):
        option = "commitOffsets" if parsed.commit_to else "startingOffsets=committed"
        raise ConfigError(f"{option} needs kafka.group.id")
    if parsed.include_headers and parsed.address.negotiates is False:
        # For requests of 0.8 a broker drops them.
        raise ConfigError("includeHeaders needs kafka.api.version.request=true")
    if isinstance(parsed.subscription, Assignment):
        for name, bound in (("startingOffsets", parsed.start), ("endingOffsets", parsed.end)):
            check_same_partitions(name, bound, parsed.subscription.partitions)
    if not streaming and isinstance(parsed.start, Offsets) and isinstance(parsed.end, Offsets):
        for tp, offset in parsed.start.by_partition.items():
            until = parsed.end.by_partition.get(tp, -1)
            if offset > until >= 0:
                raise ConfigError(f"{tp}: startingOffsets has {offset}, endingOffsets {until}")


def check_same_partitions(
    option: str, bound: Bound, subscribed: tuple[TopicPartition, ...]
) -> None:
    """Reject a map of offsets or times whose partitions are not exactly the subscribed ones."""
    if not isinstance(bound, Offsets | Times) or bound.by_partition is None:
        return
    given = bound.by_partition
    by_offset = isinstance(bound, Offsets)
    name = option if by_offset else f"{option}ByTimestamp"
    ends = " (use -1 for latest, -2 for earliest)" if by_offset else ""
    missing = [str(tp) for tp in subscribed if tp not in given]
    known = set(subscribed)
    extra = [str(tp) for tp in sorted(given) if tp not in known]
    if missing or extra:
        raise ConfigError(
            f"{name} must name exactly the subscribed partitions{ends}; "
            f"missing: {', '.join(missing) or 'none'}; not subscribed: {', '.join(extra) or 'none'}"
        )
