"""The metrics of a view, with the names and labels of kafka_exporter. Pure.

Names that kafka_exporter lacks begin with kafka08_, or extend its own:
`kafka_consumergroup_lag_seconds` and `kafka_consumergroup_verdict`. Groups of both stores have the
same labels; lag and verdict use the larger offset of the two. An unknown lag has no sample, nor has
the verdict on it: 0 and OK would claim that the group keeps up. Source of the names:
danielqsj/kafka_exporter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from kafka08.exporter.histories import Histories, uncommitted_verdict
from kafka08.exporter.uncommitted import (
    Ages,
    UncommittedTopic,
    shared_samples,
    uncommitted_topics,
)
from kafka08.exporter.verdict import Verdict
from kafka08.metrics import Family, Labels, Sample, Shared, gauge
from kafka08.observe.lag import UNKNOWN, lag_between
from kafka08.observe.snapshot import ClusterView
from kafka08.structs import TopicPartition, host_port

GROUP: Final = "kafka_consumergroup"
PARTITION: Final = "kafka_topic_partition"


def families_of(view: ClusterView, histories: Histories) -> Iterator[Family]:
    """All families of the cluster at the time of `view`."""
    yield gauge("kafka_brokers", "Brokers that are registered.", len(view.brokers))
    yield Family(
        "kafka_broker_info",
        "1 for each broker.",
        [
            Sample("", {"id": str(b.id), "address": host_port(b.host, b.port)}, 1)
            for b in view.brokers.values()
        ],
    )
    if view.has_zookeeper:
        yield gauge(
            "kafka08_controllers", "1 if a registered broker is controller, else 0.",
            view.controller in view.brokers,
        )  # fmt: skip
    yield from _of_partitions(view)
    yield from _of_groups(view, histories)
    yield gauge("kafka08_exporter_read_seconds", "Time to read all of this.", view.seconds)
    yield gauge("kafka08_exporter_read_time_seconds", "When it was read.", view.now_ms / 1000)
    failed = len(view.failed_requests)
    yield gauge("kafka08_exporter_failed_requests", "Requests that failed.", failed)


def labels_of(tp: TopicPartition) -> Labels:
    return Labels(partition=str(tp.partition), topic=tp.topic)


def labels_in_group(group: str, tp: TopicPartition) -> Labels:
    return Labels(consumergroup=group, partition=str(tp.partition), topic=tp.topic)


def _of_partitions(view: ClusterView) -> Iterator[Family]:
    counts: defaultdict[str, int] = defaultdict(int)
    for tp in view.partitions:
        counts[tp.topic] += 1
    yield Family(
        "kafka_topic_partitions",
        "Partitions of a topic.",
        [Sample("", {"topic": topic}, count) for topic, count in counts.items()],
    )
    labelled = [(labels_of(tp), p) for tp, p in view.partitions.items()]

    def row(name: str, says: str, value: object) -> Family:
        assert callable(value)
        samples = (
            Sample("", labels, number)
            for labels, partition in labelled
            if (number := value(partition)) is not None
        )
        return Family(f"{PARTITION}_{name}", says, samples)

    yield row("current_offset", "Where a log ends.", lambda p: p.end)
    if any(p.stable is not None for p in view.partitions.values()):
        yield row(
            "last_stable_offset",
            "Where its first open transaction begins, else where the log ends.",
            lambda p: p.stable,
        )
    yield row("oldest_offset", "Where a log starts.", lambda p: p.start)
    yield row("leader", "Broker that leads it; -1: no live one.", lambda p: p.leader)
    yield row(
        "leader_is_preferred",
        "1 if its preferred replica leads.",
        lambda p: int(bool(p.replicas) and p.leader == p.replicas[0]),
    )
    yield row("replicas", "Replicas that it is assigned.", lambda p: len(p.replicas))
    yield row("in_sync_replica", "Replicas that are in sync.", lambda p: len(p.isr))
    yield row(
        "under_replicated_partition",
        "1 if fewer are in sync than assigned.",
        lambda p: int(len(p.isr) < len(p.replicas)),
    )


def _of_groups(view: ClusterView, histories: Histories) -> Iterator[Family]:
    offsets: list[Sample] = []
    offset_sums: list[Sample] = []
    lags: list[Sample] = []
    lag_sums: list[Sample] = []
    zookeeper: list[Sample] = []
    late: list[Sample] = []
    verdicts: list[Sample] = []
    groups: list[Sample] = []
    for name, group in view.groups.items():
        offset_sum: defaultdict[str, int] = defaultdict(int)
        labelled: dict[TopicPartition, Labels] = {}
        newest = group.newest()
        for tp, lag in view.lags[name].own.items():
            committed = newest.get(tp)
            labels = labelled[tp] = labels_in_group(name, tp)
            if committed is not None:
                offsets.append(Sample("", labels, committed.offset))
                offset_sum[tp.topic] += committed.offset
            if lag.messages is not None:
                lags.append(Sample("", labels, lag.messages))
                seconds = histories.seconds_late(view, tp, committed.offset if committed else 0)
                if seconds is not None:
                    late.append(Sample("", labels, seconds))
            if lag != UNKNOWN:
                verdict = histories.verdict(view, name, tp)
                verdicts.append(Sample("", labels, int(verdict)))
        for tp, committed in group.zookeeper.items():
            if (partition := view.partitions.get(tp)) is not None:
                lag = lag_between(committed.offset, partition.start, partition.end)
                if lag.messages is not None:
                    zookeeper.append(Sample("", labelled[tp], lag.messages))
        for topic, value in offset_sum.items():
            labels = Labels(consumergroup=name, topic=topic)
            offset_sums.append(Sample("", labels, value))
        for topic, lag_sum in view.lags[name].by_topic().items():
            if lag_sum.lag is not None:
                labels = Labels(consumergroup=name, topic=topic)
                lag_sums.append(Sample("", labels, lag_sum.lag))
        if (whole := histories.of_group(view, name)) is not None:
            groups.append(Sample("", {"consumergroup": name}, int(whole)))
    topics = uncommitted_topics(view)
    ages = Ages(view, histories)
    yield Family(f"{GROUP}_current_offset", "What a group committed.", offsets)
    yield Family(f"{GROUP}_current_offset_sum", "The same, of a topic.", offset_sums)
    yield Family(
        f"{GROUP}_lag",
        "Messages that a group has not read.",
        lags,
        shared=(_shared(view, one.groups, one.lags) for one in topics.values()),
    )
    yield Family(f"{GROUP}_lag_sum", "The same, of a topic.", lag_sums)
    yield Family(
        f"{GROUP}zookeeper_lag_zookeeper", "Lag of what it committed to ZooKeeper.", zookeeper
    )
    yield Family(
        f"{GROUP}_lag_seconds",
        "How long ago the next message that it reads was written.",
        late,
        shared=(_shared(view, one.groups, ages.of(one.lags)) for one in topics.values()),
    )
    yield Family(
        f"{GROUP}_members",
        "Members of a group.",
        [
            Sample("", {"consumergroup": n}, g.members)
            for n, g in view.groups.items()
            if g.members is not None
        ],
    )
    says = ", ".join(f"{verdict.value} {verdict.name}" for verdict in Verdict)
    yield Family(
        f"{GROUP}_verdict",
        f"Burrow's verdict: {says}.",
        verdicts,
        shared=(shared for one in topics.values() for shared in _shared_verdicts(view, one)),
    )
    yield Family(f"{GROUP}_status", f"The worst verdict of a group: {says}.", groups)


def _shared(
    view: ClusterView, groups: Collection[str], values: Mapping[TopicPartition, float]
) -> Shared:
    return shared_samples(view, groups, values, "consumergroup", labels_of)


def _shared_verdicts(view: ClusterView, topic: UncommittedTopic) -> Iterator[Shared]:
    """Groups with members and those without differ where there are messages."""
    by_verdict: defaultdict[Verdict, list[str]] = defaultdict(list)
    for name in topic.groups:
        by_verdict[uncommitted_verdict(view.groups[name])].append(name)
    for verdict, names in by_verdict.items():
        values = {tp: verdict if lag else Verdict.OK for tp, lag in topic.lags.items()}
        yield _shared(view, names, {tp: int(value) for tp, value in values.items()})
