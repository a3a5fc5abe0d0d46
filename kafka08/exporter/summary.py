"""The rows of a live view of a cluster: for each broker, topic, group, and partition of a group.
Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kafka08.exporter.histories import Histories
from kafka08.exporter.uncommitted import Ages
from kafka08.observe.lag import UNKNOWN, Lag
from kafka08.observe.snapshot import ClusterView, Committed, PartitionState
from kafka08.structs import NOT_REGISTERED, TopicPartition, host_port

NEW = PartitionState(-1, (), (), 0, 0)
"""A partition before its first message."""


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A registered broker, or one that has replicas.

    address      NOT_REGISTERED without a registration
    per_second   messages into the partitions that it leads; None in the first view
    """

    broker: int
    address: str
    is_controller: bool
    leaders: int
    replicas: int
    out_of_sync: int
    per_second: float | None


@dataclass(frozen=True, slots=True)
class TopicRow:
    """messages     in the logs whose range is known; None if no range is
    per_second   messages appended; None in the first view, and if no log end is known
    """

    topic: str
    partitions: int
    messages: int | None
    per_second: float | None
    under_replicated: int
    offline: int


@dataclass(frozen=True, slots=True)
class GroupRow:
    """members        None: unknown
    partitions     of its topics, committed or not
    lag            messages, over the partitions where it is known; None if it is of none
    seconds_late   largest time lag of a partition; None: unknown
    per_second     messages that it read; None in the first view
    verdict        of the whole group; None if it is unknown in all partitions
    state          what its coordinator says; None without one
    """

    group: str
    members: int | None
    partitions: int
    lag: int | None
    seconds_late: float | None
    per_second: float | None
    verdict: str | None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class GroupPartitionRow:
    """lag       None: unknown; then `verdict` is BEYOND, or None, too"""

    group: str
    topic: str
    partition: int
    zookeeper: int | None
    kafka: int | None
    log_end: int | None
    lag: int | None
    seconds_late: float | None
    verdict: str | None


@dataclass(frozen=True, slots=True)
class Summary:
    """controller        None: no broker is, or it is not known since ZooKeeper was not read
    failed_requests   what is unknown because a request failed, each with its reason
    """

    brokers: tuple[BrokerRow, ...]
    topics: tuple[TopicRow, ...]
    groups: tuple[GroupRow, ...]
    controller: int | None
    under_replicated: int
    offline: int
    failed_requests: tuple[str, ...]
    has_zookeeper: bool


def summary_of(view: ClusterView, before: ClusterView | None, histories: Histories) -> Summary:
    """The rows of `view`, sorted by name; rates since `before`."""
    topics = _topics(view, before)
    ages = Ages(view, histories)
    return Summary(
        _brokers(view, before),
        topics,
        tuple(_group(name, view, before, histories, ages) for name in sorted(view.groups)),
        view.controller,
        sum(row.under_replicated for row in topics),
        sum(row.offline for row in topics),
        view.failed_requests,
        view.has_zookeeper,
    )


def group_partitions(
    view: ClusterView, histories: Histories, group: str
) -> list[GroupPartitionRow]:
    """A row for each partition that concerns the group, in order; [] for an unknown group."""
    facts = view.groups.get(group)
    if facts is None:
        return []
    rows = []
    newest = facts.newest()
    for tp, lag in sorted(view.lags[group].items()):
        in_zookeeper, in_kafka = facts.zookeeper.get(tp), facts.kafka.get(tp)
        partition, at = view.partitions.get(tp), newest.get(tp)
        rows.append(
            GroupPartitionRow(
                group,
                *tp,
                None if in_zookeeper is None else in_zookeeper.offset,
                None if in_kafka is None else in_kafka.offset,
                None if partition is None else partition.end,
                lag.messages,
                late(view, histories, tp, lag, at),
                None if lag == UNKNOWN else histories.verdict(view, group, tp).name,
            )
        )
    return rows


def late(
    view: ClusterView, histories: Histories, tp: TopicPartition, lag: Lag, at: Committed | None
) -> float | None:
    """The time lag; None: unknown, as the lag is."""
    if lag.messages is None:
        return None
    return histories.seconds_late(view, tp, 0 if at is None else at.offset)


def _brokers(view: ClusterView, before: ClusterView | None) -> tuple[BrokerRow, ...]:
    seconds, came = seconds_between(view, before), arrived(view, before)
    messages: defaultdict[int, int] = defaultdict(int)
    leaders: defaultdict[int, int] = defaultdict(int)
    replicas: defaultdict[int, int] = defaultdict(int)
    out_of_sync: defaultdict[int, int] = defaultdict(int)
    for tp, partition in view.partitions.items():
        leaders[partition.leader] += 1
        messages[partition.leader] += came.get(tp, 0)
        for broker_id in partition.replicas:
            replicas[broker_id] += 1
            in_sync = broker_id in partition.isr and broker_id in view.brokers
            out_of_sync[broker_id] += not in_sync
    return tuple(
        BrokerRow(
            broker_id,
            NOT_REGISTERED if broker is None else host_port(broker.host, broker.port),
            broker_id == view.controller,
            leaders[broker_id],
            replicas[broker_id],
            out_of_sync[broker_id],
            None if seconds is None else messages[broker_id] / seconds,
        )
        for broker_id in sorted(view.brokers.keys() | replicas.keys())
        for broker in [view.brokers.get(broker_id)]
    )


def _topics(view: ClusterView, before: ClusterView | None) -> tuple[TopicRow, ...]:
    by_topic: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for tp in view.partitions:
        by_topic[tp.topic].append(tp)
    seconds, came = seconds_between(view, before), arrived(view, before)
    rows = []
    for topic, partitions in sorted(by_topic.items()):
        views = [view.partitions[tp] for tp in partitions]
        rows.append(
            TopicRow(
                topic,
                len(partitions),
                added(
                    [p.end - p.start for p in views if p.start is not None and p.end is not None]
                ),
                rate([came[tp] for tp in partitions if tp in came], seconds),
                sum(len(p.isr) < len(p.replicas) for p in views),
                sum(p.leader not in view.brokers for p in views),
            )
        )
    return tuple(rows)


def _group(
    name: str,
    view: ClusterView,
    before: ClusterView | None,
    histories: Histories,
    ages: Ages,
) -> GroupRow:
    facts = view.groups[name]
    newest = facts.newest()
    earlier = before.groups.get(name) if before is not None else None
    known = {} if earlier is None else earlier.newest()
    seconds = seconds_between(view, before)
    read = sum(
        max(0, committed.offset - known[tp].offset)
        for tp, committed in newest.items()
        if tp in known
    )
    lags = view.lags[name]
    total = lags.total()
    late_own = [late(view, histories, tp, lag, newest.get(tp)) for tp, lag in lags.own.items()]
    times = [*ages.oldest(lags), *(seconds for seconds in late_own if seconds is not None)]
    verdict = histories.of_group(view, name)
    is_read = total.partitions or facts.members != 0
    return GroupRow(
        name,
        facts.members,
        total.partitions,
        total.lag if is_read else 0,
        max(times, default=None),
        None if seconds is None else read / seconds,
        None if verdict is None else verdict.name,
        None if facts.coordinated is None else facts.coordinated.state,
    )


def added(numbers: Sequence[int]) -> int | None:
    """The sum of the known values; None without any: unknown is not 0."""
    return sum(numbers) if numbers else None


def rate(numbers: Sequence[int], seconds: float | None) -> float | None:
    """The rate; None without a count or a time."""
    return sum(numbers) / seconds if numbers and seconds is not None else None


def arrived(view: ClusterView, before: ClusterView | None) -> dict[TopicPartition, int]:
    """partition → messages appended since `before`, for partitions whose ends are known. One that
    was created since began with offset 0."""
    if before is None:
        return {}
    return {
        tp: max(0, partition.end - earlier_end)
        for tp, partition in view.partitions.items()
        if partition.end is not None
        and (earlier_end := before.partitions.get(tp, NEW).end) is not None
    }


def seconds_between(view: ClusterView, before: ClusterView | None) -> float | None:
    """None without an earlier view, and if the clock was set back since: rates are unknown then."""
    if before is None or view.now_ms <= before.now_ms:
        return None
    return (view.now_ms - before.now_ms) / 1000
