"""The content of both pages, from views alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka08.doctor.snapshot import LogDirectoryFacts, LogOnDisk
from kafka08.exporter.histories import Histories
from kafka08.exporter.summary import summary_of
from kafka08.pages.overview import bytes_by_topic, overview_of
from kafka08.pages.trends import POINTS_MAX, SERIES_MAX, Trends, append
from kafka08.pages.view_json import view_as_json, view_of_json
from kafka08.structs import TopicPartition
from tests.pages.clusters import BROKERS, EMPTY, NOW, overview, view


def test_brokers_have_the_rate_of_the_partitions_that_they_lead() -> None:
    """Two topics of three partitions, each led by another broker: 20 messages a second each."""
    shown = overview_of(overview(view(4), view(2)))
    assert [(1, 20.0), (2, 20.0), (3, 20.0)] == [
        (row["broker"], row["per_second"]) for row in shown["brokers"]
    ]


def test_a_broker_that_only_has_replicas_is_shown_as_not_alive() -> None:
    """Its registration is gone, its replicas are not."""
    rows = overview_of(overview(view(brokers={1: BROKERS[1], 2: BROKERS[2]})))["brokers"]
    assert [(1, True), (2, True), (3, False)] == [(r["broker"], r["is_alive"]) for r in rows]
    assert 4 == rows[2]["replicas"] == rows[2]["out_of_sync"]


def test_without_a_view_before_there_is_no_rate() -> None:
    """None, which the page shows as a dash; not 0."""
    shown = overview_of(overview(view()))
    assert {None} == {row["per_second"] for row in (*shown["brokers"], *shown["topics"])}
    assert shown["since_ms"] is None


def test_bytes_of_a_topic_are_added_up_over_directories() -> None:
    """Each has other replicas."""
    logs = {TopicPartition("t", n): LogOnDisk(100, 0, 0) for n in range(3)}
    directories = [LogDirectoryFacts(path, logs=logs) for path in ("a", "b")]
    assert {"t": 600} == bytes_by_topic(directories)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=3 * POINTS_MAX))
def test_a_series_stays_bounded_and_keeps_both_ends(values: list[int]) -> None:
    """In the order of time, however long it is watched."""
    points: list[tuple[int, float]] = []
    for time_ms, value in enumerate(values):
        append(points, (time_ms, value))
    assert len(points) <= POINTS_MAX
    assert points == sorted(points, key=lambda point: point[0])
    ends = [points[0], points[-1]]
    assert [(0, values[0]), (len(values) - 1, values[-1])] == ends


def test_deleted_groups_have_no_series() -> None:
    """The page would grow for ever where each run has its own group."""
    trends = Trends()
    for now in (view(1, group="a"), view(2, group="b")):
        histories = Histories()
        histories.add(now)
        trends.add(now.now_ms, summary_of(now, None, histories))
    assert {"b"} == trends.lags.keys()


def test_more_groups_than_have_a_series_are_no_error() -> None:
    """This holds even if another program wrote them."""
    found = Trends.of_dict({"incoming": [], "lags": {str(n): [[NOW, 1]] for n in range(1000)}})
    assert SERIES_MAX == len(found.lags)


def test_a_view_comes_back_from_json() -> None:
    """All that rates and verdicts of the next report go by."""
    for one in (view(3), EMPTY):
        again = view_of_json(view_as_json(one))
        assert (one.now_ms, one.brokers, one.controller) == (
            again.now_ms,
            again.brokers,
            again.controller,
        )
        assert one.partitions == again.partitions
        assert one.groups == again.groups
