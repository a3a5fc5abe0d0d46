"""How late a group is and what is said of it, from views alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka08.exporter.families import families_of
from kafka08.exporter.histories import ENDS_MAX, WATCHED_MS_MIN, Histories
from kafka08.exporter.kminion_families import kminion_families
from kafka08.exporter.verdict import HISTORY_MAX, Verdict
from kafka08.metrics import Sample
from kafka08.observe.snapshot import ClusterView, Committed, GroupState, PartitionState
from kafka08.structs import Broker, TopicPartition

T0 = TopicPartition("t", 0)
NOW = 1_700_000_000_000
STEP = 15_000


def view(time: int, end: int | None, offset: int | None = None, version: int = -1) -> ClusterView:
    """The cluster after `time` intervals."""
    committed = {} if offset is None else {T0: Committed(offset, version)}
    return ClusterView(
        NOW + time * STEP,
        {1: Broker(1, "h", 9092)},
        1,
        {T0: PartitionState(1, (1, 2), (1,), 0, end)},
        {"g": GroupState(1, committed)},
    )


def watched(*views: ClusterView) -> Histories:
    histories = Histories()
    for one in views:
        histories.add(one)
    return histories


def test_a_group_at_the_end_is_not_late() -> None:
    """It is not, however old the last message is."""
    last = view(100, 10)
    assert 0.0 == watched(view(0, 10), last).seconds_late(last, T0, 10)


def test_a_group_is_as_late_as_its_next_message_is_old() -> None:
    """Between two looks, in proportion: 100 messages in 15 s."""
    last = view(2, 200)
    histories = watched(view(0, 0), view(1, 100), last)
    assert pytest.approx(7.5) == histories.seconds_late(last, T0, 150)
    assert pytest.approx(15.0) == histories.seconds_late(last, T0, 100)
    assert pytest.approx(27.0) == histories.seconds_late(last, T0, 20)


def test_a_group_behind_the_history_is_at_least_as_late_as_it() -> None:
    """Its lateness is at least the age of the oldest remembered log end."""
    last = view(4, 500)
    assert 4 * STEP / 1000 == watched(view(0, 400), last).seconds_late(last, T0, 3)


def test_a_pause_of_the_producer_does_not_count_as_written_time() -> None:
    """The log stood still for ten intervals; what came then is new."""
    views = [view(0, 0), *(view(n, 100) for n in range(1, 11)), view(11, 200)]
    histories = watched(*views)
    late = histories.seconds_late(views[-1], T0, 100)
    assert late is not None
    assert late <= STEP / 1000


def test_the_timestamp_of_the_next_message_is_stronger_than_the_history() -> None:
    """Of the first one that is left, where those that were committed are deleted."""
    last = view(2, 200)
    stamped = replace(last, times={(T0, 150): last.now_ms - 90_000})
    histories = watched(view(0, 0), view(1, 100), last)
    assert 90.0 == histories.seconds_late(stamped, T0, 150)
    assert pytest.approx(15.0) == histories.seconds_late(stamped, T0, 100)
    cut = replace(stamped, partitions={T0: replace(stamped.partitions[T0], start=150)})
    assert 90.0 == histories.seconds_late(cut, T0, 20)
    future = replace(last, times={(T0, 150): last.now_ms + 90_000})
    assert 0.0 == histories.seconds_late(future, T0, 150)


def test_a_topic_made_again_begins_a_new_history() -> None:
    """Its ends are lower than those of the old one."""
    last = view(3, 5)
    histories = watched(view(0, 100), view(1, 200), last)
    assert 0.0 == histories.seconds_late(last, T0, 2)


def test_nothing_is_said_where_the_end_is_not_known() -> None:
    """Its leader did not answer."""
    last = view(1, None, 3)
    histories = watched(view(0, 10, 3), last)
    assert histories.seconds_late(last, T0, 3) is None
    assert Verdict.OK is histories.verdict(last, "g", T0)


def test_a_stalled_group_is_known_by_the_versions_of_its_commits() -> None:
    """The same offset again and again, while the log grows: ZooKeeper counts the commits."""
    views = [view(n, 100 + n, 7, version=n) for n in range(6)]
    assert Verdict.STALL is watched(*views).verdict(views[-1], "g", T0)


def test_a_silent_group_is_stopped_after_its_history() -> None:
    """The verdict is STOP once its silence is as long as its history of commits, and not before."""
    moving = [view(n, 100 + 10 * n, 5 * n, version=n) for n in range(5)]
    silent = [view(n, 100 + 10 * n, 20, version=4) for n in range(5, 12)]
    histories = watched(*moving, *silent[:4])
    assert Verdict.STOP is not histories.verdict(silent[3], "g", T0)
    for one in silent[4:]:
        histories.add(one)
    assert Verdict.STOP is histories.verdict(silent[-1], "g", T0)


def test_an_exporter_that_has_just_started_is_watching() -> None:
    """One commit is no history, until it has been looked at long enough: neither good nor bad."""
    views = [view(n, 100 + n, 7) for n in range(WATCHED_MS_MIN // STEP + 2)]
    histories = watched(*views[:5])
    assert Verdict.WATCHING is histories.verdict(views[4], "g", T0)
    for one in views[5:]:
        histories.add(one)
    assert Verdict.STOP is histories.verdict(views[-1], "g", T0)


def test_a_group_without_members_has_stopped_at_once() -> None:
    """With unread messages: nobody will read them. One that is seen to commit has a reader without
    membership, as Spark's."""

    def dead(time: int, offset: int) -> ClusterView:
        one = view(time, 100, offset)
        return replace(one, groups={"g": replace(one.groups["g"], members=0)})

    assert Verdict.STOP is watched(last := dead(0, 7)).verdict(last, "g", T0)
    assert Verdict.OK is watched(last := dead(0, 100)).verdict(last, "g", T0)
    histories = watched(dead(0, 7), last := dead(1, 8))
    assert Verdict.WATCHING is histories.verdict(last, "g", T0)
    unknown = replace(last, groups={"g": replace(last.groups["g"], members=None)})
    assert Verdict.WATCHING is watched(unknown).verdict(unknown, "g", T0)


def test_an_offset_beyond_the_end_is_bad_at_once() -> None:
    """Its lag is unknown, and so is how late the group is: 0 and OK would say that it keeps up."""
    last = view(0, 20, 50)
    histories = watched(last)
    assert Verdict.BEYOND is histories.verdict(last, "g", T0)
    found = {f.name: f.samples for f in families_of(last, histories)}
    assert [7] == [sample.value for sample in found["kafka_consumergroup_status"]]
    assert [] == found["kafka_consumergroup_lag"]
    assert [] == found["kafka_consumergroup_lag_seconds"]


def test_histories_are_bounded_and_forget_deleted_topics() -> None:
    """A history has at most ENDS_MAX ends and HISTORY_MAX commits, and none of a deleted topic or
    group."""
    histories = Histories()
    for n in range(ENDS_MAX * 2):
        histories.add(view(n, n * 2, n, version=n))
    assert ENDS_MAX == len(histories._ends[T0].offsets)
    assert HISTORY_MAX == len(histories._groups["g"][T0].commits)
    histories.add(ClusterView(NOW))
    assert not histories._ends
    assert not histories._groups


def test_commits_are_counted() -> None:
    """Each to ZooKeeper, whose znodes count; to Kafka what is seen to change. The first look, and a
    group that is new, count as none."""
    views = [view(0, 9, 1, version=5), view(1, 9, 1, version=8), view(2, 9, 2), view(3, 9, 4)]
    counts = []
    histories = Histories()
    for one in [*views, view(4, 9, 4), ClusterView(NOW), view(5, 9, 4)]:
        histories.add(one)
        counts.append(histories.commits.get("g"))
    assert [0, 3, 4, 5, 5, None, 0] == counts


def samples(shown: ClusterView, histories: Histories) -> dict[str, list[Sample]]:
    return {family.name: list(family.samples) for family in families_of(shown, histories)}


def test_both_stores_have_their_lag_and_the_newer_offset_counts() -> None:
    """ZooKeeper has 5, Kafka 8, the log ends at 10."""
    shown = view(0, 10, 5)
    shown = replace(
        shown, groups={"g": replace(shown.groups["g"], kafka={T0: Committed(8)}, members=3)}
    )
    found = samples(shown, watched(shown))
    labels = {"consumergroup": "g", "topic": "t", "partition": "0"}
    assert [Sample("", labels, 8)] == found["kafka_consumergroup_current_offset"]
    assert [Sample("", labels, 2)] == found["kafka_consumergroup_lag"]
    assert [Sample("", labels, 5)] == found["kafka_consumergroupzookeeper_lag_zookeeper"]
    of_topic = {"consumergroup": "g", "topic": "t"}
    assert [Sample("", of_topic, 2)] == found["kafka_consumergroup_lag_sum"]
    assert [Sample("", {"consumergroup": "g"}, 3)] == found["kafka_consumergroup_members"]


def test_a_lag_that_is_unknown_has_no_sample() -> None:
    """Neither a sum nor a status: with all brokers down, 0 and OK would end the alerts of a group.
    A group that has members and no commit has no status either; one that has nothing is OK."""
    shown = view(0, None, 5)
    shown = replace(shown, groups={**shown.groups, "new": GroupState(1), "empty": GroupState(0)})
    histories = watched(shown)
    found = samples(shown, histories)
    assert [5] == [sample.value for sample in found["kafka_consumergroup_current_offset_sum"]]
    assert [] == found["kafka_consumergroup_lag_sum"]
    assert [Sample("", {"consumergroup": "empty"}, 1)] == found["kafka_consumergroup_status"]
    of_kminion = {f.name: list(f.samples) for f in kminion_families(shown, histories)}
    group_topic = "kminion_kafka_consumer_group_topic"
    assert [5] == [sample.value for sample in of_kminion[f"{group_topic}_offset_sum"]]
    assert [] == of_kminion[f"{group_topic}_lag"]


def test_a_partition_has_kafka_exporters_names() -> None:
    """A partition has kafka_exporter's metrics, such as under-replicated and led by its preferred
    replica."""
    shown = view(0, 10)
    found = samples(shown, watched(shown))
    labels = {"topic": "t", "partition": "0"}
    values = {
        name.removeprefix("kafka_topic_partition_"): of[0].value
        for name, of in found.items()
        if of and of[0].labels == labels
    }
    assert {
        "current_offset": 10,
        "oldest_offset": 0,
        "leader": 1,
        "leader_is_preferred": 1,
        "replicas": 2,
        "in_sync_replica": 1,
        "under_replicated_partition": 1,
    } == values
