"""Groups of another client: librdkafka on brokers of the levels that have a coordinator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.embedded import EmbeddedCluster
from tests.integration.group_members import Workload, delivered_again
from tests.waiting import until

PARTITIONS = 6
PART = 300
"""Messages between two changes of the group."""


@pytest.fixture(scope="module", params=["0.9.0", "0.10.2"])
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def cluster(level: str) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2, level=level, config={"offsets.topic.num.partitions": 3}) as c:
        c.create_topic("t", partitions=PARTITIONS)
        yield c


def test_members_join_leave_and_die(cluster: EmbeddedCluster, level: str, tmp_path: Path) -> None:
    """Every message is delivered, and only the last one of a killed member may be delivered
    twice."""
    group = Workload(cluster, level, "t", PARTITIONS)
    try:
        for _ in range(3):
            group.join("g", tmp_path)
            group.produce(PART)
        until(lambda: group.settled(2, 2, 2), "three members share the partitions")
        group.members[0].process.terminate()
        assert group.members[0].process.wait(20) == 0
        group.produce(PART)
        until(lambda: group.settled(3, 3), "the others share what a member left")
        group.members[1].end()
        group.produce(PART)
        until(lambda: group.settled(6), "the last one takes what a dead member had")
        until(group.all_delivered, "all is delivered")
    finally:
        group.end()
    counts = Counter(event.value for event in group.delivered)
    assert {str(value) for value in range(group.sent)} == counts.keys()
    assert sum(counts.values()) - group.sent <= 1
    assert delivered_again(group.delivered, group.committed) == []
