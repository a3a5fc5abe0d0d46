"""The metrics of a view with the names and labels of kminion, for Grafana's dashboards 14012, 14013
and 14014. Pure.

Missing are sizes of log directories (no broker before 1.0 reports them) and assignments of
members. Unknown labels are empty; a lag that is unknown has no sample. Source of the names:
redpanda-data/kminion, docs/metrics.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from kafka08 import __version__
from kafka08.exporter.histories import Histories
from kafka08.exporter.uncommitted import shared_samples, uncommitted_topics
from kafka08.metrics import Family, Labels, Sample
from kafka08.observe.snapshot import ClusterView
from kafka08.structs import TopicPartition

PREFIX: Final = "kminion_kafka"


def kminion_families(view: ClusterView, histories: Histories) -> Iterator[Family]:
    """All families of the cluster at the time of `view`."""
    yield Family(
        "kminion_exporter_up", "Always 1.", [Sample("", {"version": f"kafka08 {__version__}"}, 1)]
    )
    yield from _of_brokers(view)
    yield from _of_topics(view)
    yield from _of_groups(view, histories)


def _of_brokers(view: ClusterView) -> Iterator[Family]:
    cluster = {
        "broker_count": str(len(view.brokers)),
        "cluster_id": "",
        "cluster_version": "",
        "controller_id": "" if view.controller is None else str(view.controller),
    }
    yield Family(f"{PREFIX}_cluster_info", "1.", [Sample("", cluster, 1)])
    brokers = [
        {
            "broker_id": str(b.id),
            "address": b.host,
            "port": str(b.port),
            "rack_id": "",
            "is_controller": str(b.id == view.controller).lower(),
        }
        for b in view.brokers.values()
    ]
    samples = [Sample("", labels, 1) for labels in brokers]
    yield Family(f"{PREFIX}_broker_info", "1 for each broker.", samples)


def _of_topics(view: ClusterView) -> Iterator[Family]:
    counts: defaultdict[str, int] = defaultdict(int)
    replicas: dict[str, int] = {}
    for tp, partition in view.partitions.items():
        counts[tp.topic] += 1
        replicas[tp.topic] = max(replicas.get(tp.topic, 0), len(partition.replicas))
    infos = [
        {
            "topic_name": topic,
            "partition_count": str(count),
            "replication_factor": str(replicas[topic]),
            "cleanup_policy": "",
        }
        for topic, count in counts.items()
    ]
    samples = [Sample("", labels, 1) for labels in infos]
    yield Family(f"{PREFIX}_topic_info", "1 for each topic.", samples)
    ends = {tp: p.end for tp, p in view.partitions.items() if p.end is not None}
    starts = {tp: p.start for tp, p in view.partitions.items() if p.start is not None}
    for mark, says, values in (("high", "Where a log ends.", ends), ("low", "Starts.", starts)):
        sums: defaultdict[str, int] = defaultdict(int)
        rows = []
        for tp, value in values.items():
            sums[tp.topic] += value
            labels = {"topic_name": tp.topic, "partition_id": str(tp.partition)}
            rows.append(Sample("", labels, value))
        yield Family(f"{PREFIX}_topic_partition_{mark}_water_mark", says, rows)
        of_topics = [Sample("", {"topic_name": topic}, value) for topic, value in sums.items()]
        yield Family(f"{PREFIX}_topic_{mark}_water_mark_sum", "The same, of a topic.", of_topics)


def _of_groups(view: ClusterView, histories: Histories) -> Iterator[Family]:
    infos: list[Sample] = []
    members: list[Sample] = []
    offset_sums: list[Sample] = []
    lags: list[Sample] = []
    lag_sums: list[Sample] = []
    for name, group in view.groups.items():
        info = {
            "group_id": name,
            "state": "" if group.members is None else "Stable" if group.members else "Empty",
            "protocol": "",
            "protocol_type": "consumer",
            "coordinator_id": "",
        }
        if (one := group.coordinated) is not None and one.members:
            info |= {
                "state": one.state,
                "protocol": one.protocol,
                "protocol_type": one.protocol_type,
                "coordinator_id": str(one.coordinator.id),
            }
        infos.append(Sample("", info, int(bool(group.members))))
        if group.members is not None:
            members.append(Sample("", {"group_id": name}, group.members))
        offset_sum: defaultdict[str, int] = defaultdict(int)
        for tp, committed in group.newest().items():
            offset_sum[tp.topic] += committed.offset
        for tp, lag in view.lags[name].own.items():
            if lag.messages is not None:
                labels = Labels(group_id=name, **_labels_of(tp))
                lags.append(Sample("", labels, lag.messages))
        for topic, value in offset_sum.items():
            labels = Labels(group_id=name, topic_name=topic)
            offset_sums.append(Sample("", labels, value))
        for topic, lag_sum in view.lags[name].by_topic().items():
            if lag_sum.lag is not None:
                labels = Labels(group_id=name, topic_name=topic)
                lag_sums.append(Sample("", labels, lag_sum.lag))
    yield Family(f"{PREFIX}_consumer_group_info", "1 if the group has members.", infos)
    yield Family(f"{PREFIX}_consumer_group_members", "Members of a group.", members)
    yield Family(
        f"{PREFIX}_consumer_group_offset_commits",
        "Commits of a group that were seen: in ZooKeeper each, in Kafka one per read.",
        [Sample("_total", {"group_id": n}, c) for n, c in histories.commits.items()],
        "counter",
    )
    group_topic = f"{PREFIX}_consumer_group_topic"
    yield Family(f"{group_topic}_offset_sum", "What a group committed in a topic.", offset_sums)
    yield Family(f"{group_topic}_lag", "Messages of a topic that a group has not read.", lag_sums)
    yield Family(
        f"{group_topic}_partition_lag",
        "The same, of a partition.",
        lags,
        shared=(
            shared_samples(view, one.groups, one.lags, "group_id", _labels_of)
            for one in uncommitted_topics(view).values()
        ),
    )


def _labels_of(tp: TopicPartition) -> Labels:
    return Labels(partition_id=str(tp.partition), topic_name=tp.topic)
