"""Groups that have a coordinator, listed from scripted brokers."""

from __future__ import annotations

import pytest

from kafka08.client import ClusterClient, RetryPolicy
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailable,
    LeaderNotAvailable,
    NotCoordinatorForConsumer,
    OffsetsLoadInProgress,
)
from kafka08.levels import Level
from kafka08.observe.coordinator_reader import AT_ONCE, CoordinatorReader
from kafka08.observe.reader import GROUP_S, ClusterReader
from kafka08.protocol.api_versions import ApiVersionRange, ApiVersionsRequest, ApiVersionsResponse
from kafka08.protocol.apis import APIS
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest, ConsumerMetadataResponse
from kafka08.protocol.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka08.protocol.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kafka08.protocol.metadata import (
    BrokerEndpoint,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafka08.protocol.offsets import OffsetsRequest, OffsetsResponse
from kafka08.protocol.types import Request, Response
from kafka08.protocol.version_ranges import at_level
from kafka08.structs import NO_LEADER, OFFSETS_TOPIC
from kafka08.waiting import give_up_at
from tests.mock_clock import MockClock
from tests.network.scripted import Hangup, Script, ScriptedNetwork


class Cluster:
    """Brokers 1, 2, … with these groups each; None: of 0.8, which closes the connection on a key
    that it does not know. codes: of a broker's ListGroups. moved: groups that Describe answers 16.
    drops: this many connections are lost when ListGroups arrives. seconds: of each response.
    """

    def __init__(self, *groups: list[str] | None) -> None:
        self.network = ScriptedNetwork(level=Level.V0_10_2)
        self.clock = MockClock()
        self.codes: dict[int, int] = {}
        self.moved: set[str] = set()
        self.has_offsets_topic = False
        self.drops = 0
        self.seconds = 0.0
        self._brokers = [BrokerEndpoint(n, f"b{n}", 9092) for n in range(1, len(groups) + 1)]
        for broker, names in zip(self._brokers, groups, strict=True):
            self.network.broker(broker.host, broker.port, self._script(broker.broker_id, names))

    def reader(self) -> CoordinatorReader:
        cluster = ClusterClient(
            [(b.host, b.port) for b in self._brokers],
            retry_policy=RetryPolicy(2),
            runtime=self.network.runtime(self.clock),
        )
        return CoordinatorReader(cluster, self.clock)

    def _script(self, broker_id: int, groups: list[str] | None) -> Script:
        def respond(request: Request) -> Response | None:
            left = give_up_at() - self.clock.monotonic()
            self.clock.advance(min(self.seconds, max(left, 0.001)))
            if self.seconds >= left:
                return None
            match request:
                case MetadataRequest():
                    return MetadataResponse(self._brokers, self._topics())
                case ConsumerMetadataRequest():
                    return ConsumerMetadataResponse(
                        ConsumerCoordinatorNotAvailable.code, -1, "", -1
                    )
                case OffsetFetchRequest():
                    return OffsetFetchResponse([])
                case OffsetsRequest():
                    return OffsetsResponse([])
                case _ if groups is None:
                    raise Hangup
                case ApiVersionsRequest():
                    served = [(api.key, *at_level(api, Level.V0_10_2)) for api in APIS]
                    return ApiVersionsResponse(0, [ApiVersionRange(*one) for one in served])
                case ListGroupsRequest() if self.drops:
                    self.drops -= 1
                    raise Hangup
                case ListGroupsRequest():
                    listed = [ListedGroup(name, "consumer") for name in groups]
                    return ListGroupsResponse(self.codes.get(broker_id, NO_ERROR), listed)
                case DescribeGroupsRequest():
                    return DescribeGroupsResponse([self._described(g) for g in request.groups])
            raise AssertionError(f"{request} was not expected")

        return respond

    def _topics(self) -> list[TopicMetadata]:
        if not self.has_offsets_topic:
            return []
        partition = PartitionMetadata(LeaderNotAvailable.code, 0, NO_LEADER, [1], [])
        return [TopicMetadata(NO_ERROR, OFFSETS_TOPIC, [partition])]

    def _described(self, name: str) -> DescribedGroup:
        if name in self.moved:
            return DescribedGroup(NotCoordinatorForConsumer.code, name, "", "", "", [])
        return DescribedGroup(NO_ERROR, name, "Empty", "consumer", "", [])


def test_every_broker_is_asked_and_one_of_0_8_has_no_groups() -> None:
    """It closes the connection, which is no failure of the list."""
    cluster = Cluster(["b"], None, ["a"])
    found = cluster.reader().groups()
    assert [(g.name, g.coordinator.id) for g in found.groups] == [("a", 3), ("b", 1)]
    assert (found.failed_requests, found.old_brokers) == ((), 1)


def test_a_lost_connection_is_no_sign_of_0_8() -> None:
    """The request is sent again: a broker of 0.8 closes each connection. (A broker of 0.10 whose
    connection was lost counted as one of 0.8, and its groups were missing.)"""
    cluster = Cluster(["a"])
    cluster.drops = 1
    found = cluster.reader().groups()
    assert [g.name for g in found.groups] == ["a"]
    assert (found.failed_requests, found.old_brokers) == ((), 0)


def test_failed_requests_are_noted() -> None:
    """A dead broker, a loading one and a group that moves are noted, and the other groups are
    listed."""
    cluster = Cluster(["a", "b"], ["c"], ["d"])
    cluster.codes[1] = OffsetsLoadInProgress.code
    cluster.moved = {"b"}
    reader = cluster.reader()
    reader.groups()
    cluster.network.remove("b3", 9092)
    found = reader.groups()
    assert [g.name for g in found.groups] == ["a", "c"]
    loading, moved, gone = found.failed_requests
    assert "broker 1: it is loading" in loading
    assert "group b has just moved" in moved
    assert "broker 3: cannot connect to b3:9092" in gone


def test_a_thousand_groups_are_described_in_parts() -> None:
    """No response grows with the number of groups."""
    names = [f"g{n:04d}" for n in range(1000)]
    cluster = Cluster(names)
    assert [g.name for g in cluster.reader().groups().groups] == names
    asked = cluster.network.requests(DescribeGroupsRequest)
    assert {len(r.groups) for r in asked} == {AT_ONCE}  # type: ignore[attr-defined]


def test_a_group_without_a_coordinator_is_given_up_within_seconds() -> None:
    """If the group's partition of the offsets topic has no leader, the response is error 15, after
    about 3 s. (Each of 15 tries took 100 searches: `group describe` waited for minutes.)"""
    cluster = Cluster(["a"])
    cluster.has_offsets_topic = True
    started = cluster.clock.monotonic()
    with pytest.raises(ConsumerCoordinatorNotAvailable):
        cluster.reader().describe("a")
    assert 2 < cluster.clock.monotonic() - started < 5


def test_no_coordinator_is_asked_for_without_an_offsets_topic() -> None:
    """The question would create it."""
    cluster = Cluster(["a"])
    assert cluster.reader().describe("a") is None
    assert {type(request) for _, request in cluster.network.asked} == {MetadataRequest}


def test_groups_are_read_for_a_limited_time() -> None:
    """However many requests that takes, of which each has its own timeout. (With 3,000 groups at a
    broker that took 4.9 s for each response a command took three minutes.)"""
    names = [f"g{n:04d}" for n in range(3000)]
    cluster = Cluster(names)
    with ClusterReader(None, "b1:9092", runtime=cluster.network.runtime(cluster.clock)) as reader:
        reader.read_groups(names[:5])
        began, cluster.seconds = cluster.clock.monotonic(), 1.9
        view = reader.read_groups(names[:5])
    assert [True] * 5 == [view.groups[name].unknown_group is not None for name in names[:5]]
    assert cluster.clock.monotonic() - began == pytest.approx(GROUP_S, abs=1.0)
