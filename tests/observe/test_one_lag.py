"""One group has one lag: in its facts, by topic, in the rows of top and console, in metrics."""

from __future__ import annotations

import pytest

from kafka08.exporter import families_of
from kafka08.exporter.histories import Histories
from kafka08.exporter.kminion_families import kminion_families
from kafka08.exporter.summary import group_partitions, summary_of
from kafka08.exposition import text_of
from kafka08.groups import explain, lag_by_topic
from kafka08.observe.group import group_facts
from kafka08.observe.snapshot import ClusterView, Committed, GroupState, PartitionState
from kafka08.structs import Broker, TopicPartition

TP = TopicPartition("t", 0)
Case = tuple[GroupState, PartitionState | None]


def log(start: int | None, end: int | None) -> PartitionState:
    return PartitionState(1, (1,), (1,), start, end)


def committed(zookeeper: int | None, kafka: int | None = None) -> GroupState:
    """A group with a member that nobody describes."""
    stores = [{} if at is None else {TP: Committed(at)} for at in (zookeeper, kafka)]
    return GroupState(1, stores[0], stores[1], in_zookeeper=True, topics={"t"})


CASES: dict[str, tuple[Case, int | None, str | None]] = {
    "in the log": ((committed(15), log(10, 20)), 5, "WATCHING"),
    "at its end": ((committed(20), log(10, 20)), 0, "OK"),
    "the larger of both stores": ((committed(12, 17), log(10, 20)), 3, "WATCHING"),
    "below its start": ((committed(5), log(10, 20)), 15, "WATCHING"),
    "beyond its end": ((committed(50), log(0, 20)), None, "BEYOND"),
    "never committed": ((committed(None), log(10, 20)), 10, "WATCHING"),
    "a log that never had a message": ((committed(None), log(0, 0)), 0, "OK"),
    "no offset of 0.8.2.2": ((committed(-1), log(10, 20)), 10, "WATCHING"),
    "a leader without a response": ((committed(15), log(None, None)), None, None),
    "a negative end": ((committed(15), log(10, -1)), None, None),
    "a deleted topic": ((committed(15), None), None, None),
}


@pytest.mark.parametrize("name", CASES)
def test_every_view_has_the_same_lag(name: str) -> None:
    """And the same verdict; None is unknown, and has no sample."""
    (group, partition), lag, verdict = CASES[name]
    partitions = {} if partition is None else {TP: partition}
    view = ClusterView(
        1000, {1: Broker(1, "h", 9092)}, 1, partitions, {"g": group},
        topics={} if partition is None else {"t": (0,)},
    )  # fmt: skip
    histories = Histories()
    histories.add(view)
    facts = group_facts(view, "g")
    [row] = group_partitions(view, histories, "g")
    [of_group] = summary_of(view, None, histories).groups
    found = text_of([*families_of(view, histories), *kminion_families(view, histories)])
    assert [lag] == [p.lag for p in facts.partitions]
    assert (lag, verdict) == (row.lag, row.verdict) == (of_group.lag, of_group.verdict)
    assert lag == sum(topic.lag for topic in lag_by_topic(facts.partitions)) or lag is None
    for metric in ("kafka_consumergroup_lag", "kafka_consumergroup_lag_sum",
                   "kminion_kafka_consumer_group_topic_lag",
                   "kminion_kafka_consumer_group_topic_partition_lag"):  # fmt: skip
        assert values(found, metric) == ([] if lag is None else [lag]), metric
    assert (verdict is None) == (values(found, "kafka_consumergroup_verdict") == [])


def test_an_offset_beyond_the_end_is_a_finding() -> None:
    """It says what happened, and that the lag is a lower bound at best."""
    (group, partition), *_ = CASES["beyond its end"]
    assert partition is not None
    view = ClusterView(1000, {}, 1, {TP: partition}, {"g": group}, topics={"t": (0,)})
    facts = group_facts(view, "g")
    assert "outside-log" in {finding.kind for finding in explain(facts) if finding.problem}
    [topic] = lag_by_topic(facts.partitions)
    assert (topic.beyond_end, topic.is_exact, topic.lag_text) == ((TP,), False, "unknown")


def values(text: str, name: str) -> list[float]:
    return [float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"{name}{{")]
