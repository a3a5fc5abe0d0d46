"""ClusterClient: metadata when it is needed, leaders asked together, errors that pass."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing
from threading import Barrier

import pytest

from kafka08.client.cluster import COORDINATOR_TRIES, ClusterClient
from kafka08.client.requests import offsets_request, offsets_results
from kafka08.client.retry import RetryPolicy
from kafka08.errors import (
    ApiError,
    Closed,
    ConnectionFailed,
    ConsumerCoordinatorNotAvailable,
    InvalidTopic,
    LeaderNotAvailable,
    NoBrokersAvailable,
    NotCoordinatorForConsumer,
    NotLeaderForPartition,
    OffsetOutOfRange,
    RequestTimeout,
    UnknownTopicOrPartition,
    error_of,
)
from kafka08.network.connection import Connection
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest, ConsumerMetadataResponse
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse, TopicMetadata
from kafka08.protocol.offsets import OffsetsRequest, OffsetsResponse
from kafka08.protocol.types import Request, Response
from kafka08.structs import LATEST_OFFSET, NO_LEADER, Broker, TopicPartition
from kafka08.waiting import give_up_at
from tests.client.epoch_cluster import EpochCluster
from tests.client.fake_cluster import PORT, FakeCluster

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster({"t": {0: 1, 1: 2}, "u": {0: 2}})


@pytest.fixture
def client(cluster: FakeCluster) -> ClusterClient:
    return ClusterClient(
        cluster.bootstrap,
        runtime=cluster.runtime,
    )


def log_ends(
    connection: Connection, wanted: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | ApiError]:
    """The request of `ask_leaders` here: the log ends of the partitions that one broker leads."""
    response = connection.send(offsets_request(wanted))
    assert isinstance(response, OffsetsResponse)
    return {
        tp: error_of(result.error_code, str(tp)) or result.offsets[0]
        for tp, result in offsets_results(response).items()
    }


def test_metadata_is_asked_for_once(cluster: FakeCluster, client: ClusterClient) -> None:
    """Leaders and partitions of a known topic take no further request."""
    assert client.leader(T0) == Broker(1, "b1", PORT)
    assert client.leader(T1) == Broker(2, "b2", PORT)
    assert [info.partition for info in client.partitions("t")] == [0, 1]
    assert cluster.network.requests(MetadataRequest) == [MetadataRequest(None)]
    assert client.brokers() == [Broker(1, "b1", PORT), Broker(2, "b2", PORT)]


def test_only_a_client_that_creates_topics_asks_by_name(cluster: FakeCluster) -> None:
    """A broker with auto.create.topics.enable creates each topic of such a request: a reader would
    bring a deleted topic back."""
    for creates_topics, asked in (
        (True, MetadataRequest(["gone"])),
        (False, MetadataRequest(None)),
    ):
        cluster.network.asked.clear()
        client = ClusterClient(
            cluster.bootstrap, creates_topics=creates_topics, runtime=cluster.runtime
        )
        with pytest.raises(UnknownTopicOrPartition, match="topic gone"):
            client.partitions("gone")
        with pytest.raises(UnknownTopicOrPartition, match="topic gone"):
            client.ask_leaders({TopicPartition("gone", 0): LATEST_OFFSET}, log_ends)
        requests = cluster.network.requests(MetadataRequest)
        assert requests == [asked] * len(requests)


def test_one_living_broker_is_enough(cluster: FakeCluster) -> None:
    """Addresses that refuse are passed over, whatever order chance gives."""
    bootstrap = [("gone", 1), ("b2", PORT), ("gone", 2)]
    for _ in range(8):
        client = ClusterClient(bootstrap, runtime=cluster.network.runtime())
        assert client.leader(T0).id == 1


def test_no_broker_at_all_names_each_failure(cluster: FakeCluster) -> None:
    """NoBrokersAvailable says what happened at every address."""
    client = ClusterClient([("x", 1), ("y", 2)], runtime=cluster.network.runtime())
    with pytest.raises(NoBrokersAvailable, match=r"x:1: .*refused") as caught:
        client.brokers()
    assert "y:2: " in str(caught.value)


def test_a_dead_broker_is_warned_of_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    """The client does not log each try: a consumer that waited for its brokers used to log nine
    lines a second."""
    with closing(ClusterClient([("127.0.0.1", 1)])) as client:
        for _ in range(3):
            with pytest.raises(NoBrokersAvailable):
                client.refresh()
    assert [logging.WARNING] == [r.levelno for r in caplog.records if r.levelno > logging.DEBUG]


def test_brokers_that_metadata_named_are_asked_when_the_bootstrap_is_gone(
    cluster: FakeCluster,
) -> None:
    """The bootstrap list is only a beginning."""
    client = ClusterClient([("b1", PORT)], runtime=cluster.network.runtime())
    client.refresh(["t"])
    cluster.down(1)
    assert client.refresh(["u"]).leader(U0).id == 2


def starting(request: Request) -> Response:
    """The response of a broker without metadata."""
    assert isinstance(request, MetadataRequest)
    return MetadataResponse([], [])


def test_a_broker_that_has_just_started_is_skipped(cluster: FakeCluster) -> None:
    """A broker of 0.8 responds to Metadata before the controller's first UpdateMetadata: another
    broker knows all topics, in whatever order they are tried."""
    cluster.network.broker("b1", PORT, starting)
    for _ in range(8):
        client = ClusterClient(cluster.bootstrap, runtime=cluster.network.runtime())
        assert client.refresh().topics.keys() == {"t", "u"}


def test_topics_do_not_vanish_in_a_cluster_that_is_starting(
    cluster: FakeCluster, client: ClusterClient
) -> None:
    """Where no broker lists any, known topics stay, and the error is one that passes."""
    client.refresh()
    cluster.down(1)
    cluster.down(2)
    for host in ("b1", "b2"):
        cluster.network.broker(host, PORT, starting)
    with pytest.raises(NoBrokersAvailable, match="just started"):
        client.refresh()
    assert client.metadata.topics.keys() == {"t", "u"}


def test_a_fresh_cluster_has_no_brokers_and_no_topics() -> None:
    """In 0.8 brokers learn of each other with the first topic; until then Metadata is empty."""
    cluster = FakeCluster({})
    client = ClusterClient(cluster.bootstrap, runtime=cluster.network.runtime())
    for host in ("b1", "b2"):
        cluster.network.broker(host, PORT, starting)
    assert client.brokers() == []
    assert client.refresh().topics == {}


def test_each_leader_is_asked_once_for_all_that_it_leads(
    cluster: FakeCluster, client: ClusterClient
) -> None:
    """Three partitions on two brokers make two requests."""
    cluster.append(U0, b"a", b"b")
    wanted = dict.fromkeys((T0, T1, U0), LATEST_OFFSET)
    assert client.ask_leaders(wanted, log_ends) == {T0: 0, T1: 0, U0: 2}
    assert len(cluster.network.requests(OffsetsRequest)) == 2


def test_leaders_are_asked_side_by_side(cluster: FakeCluster, client: ClusterClient) -> None:
    """Each is asked while the other has not responded yet."""
    both = Barrier(2)

    def ask(
        connection: Connection, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | ApiError]:
        both.wait(timeout=60.0)
        return log_ends(connection, wanted)

    wanted = dict.fromkeys((T0, T1, U0), LATEST_OFFSET)
    assert client.ask_leaders(wanted, ask) == {T0: 0, T1: 0, U0: 0}


def test_only_failed_partitions_are_retried_at_the_new_leader(
    cluster: FakeCluster, client: ClusterClient
) -> None:
    """After NotLeaderForPartition come the backoff, metadata, and a request for the failed
    partitions."""
    client.refresh()
    cluster.leaders[T0] = 2
    assert client.ask_leaders(dict.fromkeys((T0, U0), LATEST_OFFSET), log_ends) == {T0: 0, U0: 0}
    kinds = [type(request).__name__ for _, request in cluster.network.asked]
    assert kinds == [
        "MetadataRequest",
        "OffsetsRequest",
        "OffsetsRequest",
        "MetadataRequest",
        "OffsetsRequest",
    ]
    assert cluster.network.asked[-1] == (("b2", PORT), offsets_request({T0: LATEST_OFFSET}))
    assert cluster.clock.slept == [0.1]


def test_a_leader_that_died_is_looked_for(cluster: FakeCluster, client: ClusterClient) -> None:
    """A refused connection means that the partition may have moved."""
    client.refresh()
    cluster.down(1)
    cluster.leaders[T0] = 2
    assert client.ask_leaders({T0: LATEST_OFFSET}, log_ends) == {T0: 0}


def test_a_partition_without_leader_is_waited_for_and_then_named(
    cluster: FakeCluster, client: ClusterClient
) -> None:
    """After the tries of the policy the error is LeaderNotAvailable of that partition."""
    cluster.leaders[T1] = NO_LEADER
    with pytest.raises(LeaderNotAvailable, match=r"\[t,1\]"):
        client.ask_leaders(dict.fromkeys((T0, T1), LATEST_OFFSET), log_ends)
    assert len(cluster.clock.slept) == 3
    assert len(cluster.network.requests(OffsetsRequest)) == 1


def test_an_error_that_does_not_pass_wins(cluster: FakeCluster, client: ClusterClient) -> None:
    """It is raised at once, although another partition could be tried again."""
    cluster.refuse(T0, NotLeaderForPartition.code)
    cluster.refuse(T1, OffsetOutOfRange.code)
    with pytest.raises(OffsetOutOfRange, match=r"\[t,1\]"):
        client.ask_leaders(dict.fromkeys((T0, T1), LATEST_OFFSET), log_ends)
    assert cluster.clock.slept == []


def test_at_leader_tries_again_too(cluster: FakeCluster, client: ClusterClient) -> None:
    """A question about a single partition is also repeated with new metadata."""
    cluster.refuse(T0, NotLeaderForPartition.code, NotLeaderForPartition.code)

    def ask(connection: Connection) -> int:
        response = log_ends(connection, {T0: LATEST_OFFSET})[T0]
        if isinstance(response, ApiError):
            raise response
        return response

    assert client.at_leader(T0, ask) == 0
    assert len(cluster.clock.slept) == 2


def test_one_illegal_name_does_not_take_the_others_with_it(cluster: FakeCluster) -> None:
    """0.8 answers 17 for every topic of a request with an illegal name: they are asked one by
    one."""

    def script(request: Request) -> Response | None:
        if isinstance(request, MetadataRequest) and request.topics and "b!d" in request.topics:
            return MetadataResponse([], [TopicMetadata(17, topic, []) for topic in request.topics])
        return cluster.respond(1, request)

    cluster.network.broker("b1", PORT, script)
    runtime = cluster.network.runtime()
    client = ClusterClient([("b1", PORT)], creates_topics=True, runtime=runtime)
    metadata = client.refresh(["b!d", "t"])
    assert metadata.leader(T0).id == 1
    with pytest.raises(InvalidTopic, match="b!d"):
        metadata.partitions("b!d")


def test_an_unknown_topic_is_asked_for_each_time(
    cluster: FakeCluster, client: ClusterClient
) -> None:
    """It may have been created meanwhile."""
    with pytest.raises(UnknownTopicOrPartition):
        client.partitions("new")
    cluster.leaders[TopicPartition("new", 0)] = 1
    assert len(client.partitions("new")) == 1


def test_the_coordinator_is_waited_for_and_remembered(
    cluster: FakeCluster, client: ClusterClient
) -> None:
    """15 while the offsets topic is being made; then one question per group until forgotten."""
    found = cluster.coordinator
    cluster.coordinator = ConsumerMetadataResponse(15, -1, "", -1)

    def appear(seconds: float) -> None:
        cluster.coordinator = found

    cluster.clock.sleep = appear  # type: ignore[method-assign]
    assert client.coordinator("g") == Broker(1, "b1", PORT)
    assert client.coordinator("g") == Broker(1, "b1", PORT)
    assert len(cluster.network.requests(ConsumerMetadataRequest)) == 2
    client.forget_coordinator("g")
    client.coordinator("g")
    assert len(cluster.network.requests(ConsumerMetadataRequest)) == 3


def test_a_coordinator_that_never_appears_is_given_up(
    cluster: FakeCluster, client: ClusterClient
) -> None:
    """After COORDINATOR_TRIES the error of the brokers is raised."""
    cluster.coordinator = ConsumerMetadataResponse(15, -1, "", -1)
    with pytest.raises(ConsumerCoordinatorNotAvailable, match="group g"):
        client.coordinator("g")
    assert len(cluster.network.requests(ConsumerMetadataRequest)) == COORDINATOR_TRIES


def test_a_search_for_a_coordinator_ends_though_brokers_are_slow(
    cluster: FakeCluster, client: ClusterClient
) -> None:
    """COORDINATOR_TRIES are those of brokers that respond. Three that did not took 30 s of each,
    50 minutes in all."""
    began = cluster.clock.monotonic()

    def respond_late(_: object) -> ConsumerMetadataResponse:
        cluster.clock.advance(9.0)
        return ConsumerMetadataResponse(15, -1, "", -1)

    for broker_id in cluster.brokers:
        cluster.network.broker(f"b{broker_id}", PORT, respond_late)
    with pytest.raises(ConsumerCoordinatorNotAvailable):
        client.coordinator("g")
    assert 10.0 <= cluster.clock.monotonic() - began < 20.0


def test_a_coordinator_that_does_not_respond_is_asked_for_a_limited_time(
    cluster: FakeCluster, client: ClusterClient
) -> None:
    """The tries of a policy are for errors that come at once. 50 of them, of 30 s each and behind a
    search of 10 s, made SimpleConsumer.commit_offsets wait for half an hour."""

    def ask(_: Connection) -> str:
        cluster.clock.advance(9.0)
        raise RequestTimeout

    for limit, expected in ((None, 10.0), (50.0, 50.0)):
        began = cluster.clock.monotonic()
        give_up_at = None if limit is None else began + limit
        with pytest.raises(RequestTimeout):
            client.ask_coordinator("g", ask, policy=RetryPolicy(50, 100), give_up_at=give_up_at)
        assert expected - 9.0 <= cluster.clock.monotonic() - began < expected + 9.0


def test_a_coordinator_that_moved_is_looked_up_again(
    cluster: FakeCluster, client: ClusterClient
) -> None:
    """16 makes ask_coordinator forget it and try at the new one."""
    asked: list[str] = []

    def ask(connection: Connection) -> str:
        asked.append(str(connection))
        if len(asked) == 1:
            cluster.coordinator = ConsumerMetadataResponse(0, 2, "b2", PORT)
            raise NotCoordinatorForConsumer
        return "done"

    assert client.ask_coordinator("g", ask) == "done"
    assert asked == [f"b1:{PORT}", f"b2:{PORT}"]


@pytest.mark.parametrize("number", range(8))
def test_a_broker_that_did_not_respond_is_asked_last(
    cluster: FakeCluster, client: ClusterClient, number: int
) -> None:
    """The next coordinator is not looked for at the one that just failed, as long as another broker
    responds: a machine that vanished costs a timeout each time, and a member its session."""
    client.brokers()
    failing = [RequestTimeout("no response"), ConnectionFailed("lost")][number % 2]

    def ask(_: Connection) -> None:
        raise failing

    with pytest.raises(type(failing)):
        client.ask_coordinator("g", ask, policy=RetryPolicy(tries=1))
    for _ in range(4):
        client.coordinator("g")
        client.forget_coordinator("g")
        client.refresh()
    assert {address for address, _ in cluster.network.asked[2:]} == {("b2", PORT)}
    cluster.down(2)
    assert client.coordinator("g") == Broker(1, "b1", PORT)


def test_a_closed_client_says_so(client: ClusterClient) -> None:
    """Not NoBrokersAvailable, which one would try again."""
    client.close()
    with pytest.raises(Closed):
        client.brokers()


def test_threads_do_not_share_a_connection(cluster: FakeCluster, client: ClusterClient) -> None:
    """A connection that is lent is not lent again."""
    broker = client.leader(T0)
    with client.connection(broker) as one, client.connection(broker) as other:
        assert one is not other


def test_silent_brokers_take_the_time_of_a_call_and_not_of_all_its_tries() -> None:
    """Each try waits for the leader, and then for every broker when it asks for the new one. (Four
    tries at ten brokers took 22 minutes.)"""
    numbers = range(1, 11)
    silent = FakeCluster({"t": {0: 1}}, tuple(numbers))
    client = ClusterClient(silent.bootstrap, runtime=silent.runtime)
    client.refresh()
    began = silent.clock.monotonic()

    def wait(_: object) -> None:
        silent.clock.advance(min(30.0, max(0.001, give_up_at() - silent.clock.monotonic())))

    for number in numbers:
        silent.network.broker(f"b{number}", PORT, wait)
    client.close_idle()
    with pytest.raises(NoBrokersAvailable, match=r"no time was left to ask 8 more brokers"):
        client.ask_leaders({T0: LATEST_OFFSET}, log_ends)
    assert silent.clock.monotonic() - began == pytest.approx(10.0 + 2 * (30.0 + 10.0), abs=0.1)


def test_tries_of_one_mean_no_second_attempt(cluster: FakeCluster) -> None:
    """The policy is the caller's."""
    client = ClusterClient(
        cluster.bootstrap,
        runtime=cluster.runtime,
        retry_policy=RetryPolicy(tries=1),
    )
    cluster.refuse(T0, NotLeaderForPartition.code)
    with pytest.raises(NotLeaderForPartition):
        client.ask_leaders({T0: LATEST_OFFSET}, log_ends)


@pytest.mark.parametrize(("last", "version", "epoch"), [(12, 7, 4), (8, 0, -1)])
def test_leader_epochs_of_brokers_that_know_them_exactly(
    last: int, version: int, epoch: int
) -> None:
    """From 2.4 on. Earlier ones name outdated epochs, and are asked for none."""
    cluster = EpochCluster()
    tp = TopicPartition("t", 0)
    cluster.epochs[tp] = 4
    cluster.ranges[3] = (0, last)
    with closing(
        ClusterClient(
            cluster.bootstrap, runtime=cluster.runtime, negotiates=True, knows_epochs=True
        )
    ) as client:
        metadata = client.refresh()
        assert metadata.leader_epoch(tp) == epoch
        assert metadata.leader(tp).id == 1
    assert [r.version for r in cluster.network.requests(MetadataRequest)] == [version]
