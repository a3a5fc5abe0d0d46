"""The lags of many groups: what each has not committed is worked out once for all."""

from __future__ import annotations

from random import Random

import pytest

from kafka08.errors import KafkaError
from kafka08.exporter import families_of
from kafka08.exporter.histories import Histories
from kafka08.exporter.kminion_families import kminion_families
from kafka08.exporter.summary import summary_of
from kafka08.exporter.verdict import Verdict
from kafka08.exposition import text_of
from kafka08.observe.group import group_facts
from kafka08.observe.group_lags import sum_of
from kafka08.observe.lag import UNKNOWN, Lag, lag_between
from kafka08.observe.snapshot import ClusterView, Committed, GroupState, Owner, PartitionState
from kafka08.structs import TopicPartition

TOPICS = {"a": tuple(range(5)), "b": tuple(range(3)), "empty": ()}
TPS = [TopicPartition(topic, n) for topic, numbers in TOPICS.items() for n in numbers]
PARTITION_LAG = "kminion_kafka_consumer_group_topic_partition_lag"
GONE = [TopicPartition("a", 9), TopicPartition("deleted", 0)]


def drawn_log(random: Random) -> PartitionState:
    start = random.choice([0, 3, None])
    end = random.choice([None, (start or 0), (start or 0) + 7])
    return PartitionState(1, (1,), (1,), start, end)


def drawn_group(random: Random) -> GroupState:
    known = random.sample([*TPS, *GONE], random.randrange(5))
    stores: list[dict[TopicPartition, Committed]] = [{}, {}]
    for tp in known:
        random.choice(stores)[tp] = Committed(random.choice([-1, 0, 4, 50]))
    return GroupState(
        random.choice([None, 0, 2]),
        stores[0],
        stores[1],
        owners={tp: Owner("thread-0", 5) for tp in random.sample([*TPS, *GONE], 2)},
        unreadable=dict.fromkeys(random.sample(TPS, random.randrange(2)), "?"),
        topics=set(random.sample(sorted(TOPICS), 1)),
        unknown_offsets=random.choice([None, None, KafkaError("silent")]),
    )


def drawn_view(seed: int) -> ClusterView:
    random = Random(seed)
    partitions = {tp: drawn_log(random) for tp in TPS if random.random() < 0.9}
    groups = {f"g{n}": drawn_group(random) for n in range(6)}
    return ClusterView(1000, {}, 1, partitions, groups, topics=TOPICS)


def lag_in(view: ClusterView, group: GroupState, tp: TopicPartition) -> Lag:
    """As lag.py says, of one partition."""
    at, log = group.newest().get(tp), view.partitions.get(tp)
    if log is None or tp in group.unreadable or (at is None and group.unknown_offsets):
        return UNKNOWN
    return lag_between(None if at is None else at.offset, log.start, log.end)


@pytest.mark.parametrize("seed", range(40))
def test_lags_are_those_of_each_partition(seed: int) -> None:
    """Each lag, and the sums by topic, are those of the partitions taken one by one."""
    view = drawn_view(seed)
    for name, group in view.groups.items():
        expected = {tp: lag_in(view, group, tp) for tp in group.concerned(TOPICS)}
        lags = view.lags[name]
        assert dict(lags) == expected
        assert len(lags) == len(expected)
        by_topic = {topic: found for topic, found in lags.by_topic().items() if found.partitions}
        assert by_topic == {
            topic: sum_of(lag for tp, lag in expected.items() if tp.topic == topic)
            for topic in {tp.topic for tp in expected}
        }
        assert lags.total() == sum_of(expected.values())


@pytest.mark.parametrize("seed", range(40))
def test_the_metrics_are_those_of_each_partition(seed: int) -> None:
    """A sample for each partition with a known lag, under both exporters' names, with the verdict
    and the time lag of that partition; the status is the worst verdict."""
    view = drawn_view(seed)
    histories = Histories()
    histories.add(view)
    lines = text_of([*families_of(view, histories), *kminion_families(view, histories)])
    expected = []
    for name, group in view.groups.items():
        for tp in group.concerned(TOPICS):
            labels = f'consumergroup="{name}",partition="{tp.partition}",topic="{tp.topic}"'
            lag, at = lag_in(view, group, tp), group.newest().get(tp)
            if lag.messages is not None:
                kminion = f'group_id="{name}",partition_id="{tp.partition}",topic_name="{tp.topic}"'
                age = histories.seconds_late(view, tp, at.offset if at else 0)
                expected += [
                    f"kafka_consumergroup_lag{{{labels}}} {lag.messages}.0",
                    f"{PARTITION_LAG}{{{kminion}}} {lag.messages}.0",
                    f"kafka_consumergroup_lag_seconds{{{labels}}} {age}",
                ]
            if lag != UNKNOWN:
                verdict = int(histories.verdict(view, name, tp))
                expected.append(f"kafka_consumergroup_verdict{{{labels}}} {verdict}.0")
    names = (
        "kafka_consumergroup_lag{",
        "kafka_consumergroup_lag_seconds{",
        "kafka_consumergroup_verdict{",
        f"{PARTITION_LAG}{{",
    )
    found = [line for line in lines.splitlines() if line.startswith(names)]
    assert sorted(found) == sorted(expected)


def test_a_row_of_a_group_costs_what_it_has_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a row of `top` no verdict is asked for where the group has committed nothing, which were
    a million in a thousand partitions of a thousand groups."""
    tps = [TopicPartition("t", number) for number in range(100)]
    groups = {f"g{n}": GroupState(0, {tps[n]: Committed(1)}, topics={"t"}) for n in range(20)}
    log = PartitionState(1, (1,), (1,), 0, 5)
    view = ClusterView(
        1000, {}, 1, dict.fromkeys(tps, log), groups, topics={"t": tuple(range(100))}
    )
    histories = Histories()
    histories.add(view)
    asked: list[TopicPartition] = []
    verdict = histories.verdict

    def counted(view: ClusterView, name: str, tp: TopicPartition) -> Verdict:
        asked.append(tp)
        return verdict(view, name, tp)

    monkeypatch.setattr(histories, "verdict", counted)
    rows = summary_of(view, None, histories).groups
    assert [(row.partitions, row.lag) for row in rows] == [(100, 4 + 99 * 5)] * 20
    assert len(asked) == 20


def test_groups_share_the_facts_of_what_they_have_not_committed() -> None:
    """Facts of a partition without an owner or an offset are the same object for all groups."""
    tps = [TopicPartition("t", number) for number in range(3)]
    groups = {name: GroupState(0, {tps[0]: Committed(1)}, topics={"t"}) for name in ("g", "h")}
    log = PartitionState(1, (1,), (1,), 0, 5)
    view = ClusterView(1000, {}, 1, dict.fromkeys(tps, log), groups, topics={"t": (0, 1, 2)})
    first, second = (group_facts(view, name).partitions for name in groups)
    assert first == second
    assert [a is b for a, b in zip(first, second, strict=True)] == [False, True, True]
