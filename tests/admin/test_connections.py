"""How long a user waits for a coordinator."""

from __future__ import annotations

import pytest

from kafka08.admin.connections import Connections
from kafka08.errors import ConsumerCoordinatorNotAvailable
from kafka08.structs import TopicPartition
from tests.observe.test_coordinator_reader import Cluster


@pytest.mark.parametrize(("exists", "seconds"), [(True, (2, 5)), (False, (14, 17))])
def test_a_coordinator_without_a_leader_is_given_up_soon(
    exists: bool, seconds: tuple[int, int]
) -> None:
    """`offsets set` waited for 20 s although the group's partition of the offsets topic had no
    leader. A topic that is only being created gets the whole time."""
    cluster = Cluster(["a"])
    cluster.has_offsets_topic = exists
    runtime = cluster.network.runtime(cluster.clock)
    with Connections(None, "b1:9092", runtime=runtime) as connections:
        connections.wait_less()
        started = cluster.clock.monotonic()
        found = connections.coordinators.fetch({"a": [TopicPartition("t", 0)]})
    assert isinstance(found["a"], ConsumerCoordinatorNotAvailable)
    least, most = seconds
    assert least < cluster.clock.monotonic() - started < most
