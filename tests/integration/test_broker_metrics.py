"""The metrics of real broker processes, read by HTTP as Prometheus does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from kafka08.admin import AdminClient
from kafka08.client import ClusterClient
from kafka08.client.requests import fetch_request, fetch_results
from kafka08.embedded import EmbeddedCluster
from kafka08.embedded.broker import EmbeddedBroker
from kafka08.errors import KafkaError
from kafka08.network.connection import Connection
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.protocol.fetch import FetchResponse
from kafka08.structs import TopicPartition
from tests.scrape import Scrape
from tests.waiting import until

MESSAGES = 100
CONFIG = {
    "metrics.port": 0,
    "zookeeper.session.timeout.ms": 5000,
    "replica.lag.time.max.ms": 1000,
    "auto.leader.rebalance.enable": "false",
    "log.flush.interval.messages": 50,
}


def leads(broker: EmbeddedBroker, topic: str) -> bool:
    """Whether the broker says that it leads all partitions."""
    with (
        suppress(KafkaError),
        closing(ClusterClient([(broker.host, broker.port)])) as client,
    ):
        return {broker.id} == {p.leader for p in client.refresh([topic]).partitions(topic)}
    return False


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2, config=CONFIG) as cluster:
        with AdminClient(cluster.zookeeper.connect_string) as admin:
            admin.create_topic("t", assignment={0: [0, 1], 1: [0, 1]})
        # A request that a leader refuses, because it has not heard of its election, would count.
        until(lambda: leads(cluster.brokers[0], "t"), "it knows that it leads")
        config = KafkaProducerConfig({"bootstrap.servers": cluster.bootstrap, "acks": "-1"})
        with KafkaProducer(config) as producer:
            for number in range(MESSAGES):
                record = ProducerRecord("t", b"x" * 100, partition=number % 2)
                producer.send(record).result(10)
        yield cluster


def scrapes(cluster: EmbeddedCluster) -> list[Scrape]:
    return [Scrape(broker) for broker in cluster.brokers]


def test_one_broker_is_the_controller(cluster: EmbeddedCluster) -> None:
    """ActiveControllerCount is 1 over the cluster, and only the controller counts topics."""
    found = scrapes(cluster)
    name = "kafka_controller_kafkacontroller_"
    assert 1 == sum(s.value(f"{name}activecontrollercount") for s in found)
    assert 0 == sum(s.value(f"{name}offlinepartitionscount") for s in found)
    assert 2 == sum(s.value(f"{name}globalpartitioncount") for s in found)


def test_incoming_messages_are_counted_at_the_leader_alone(cluster: EmbeddedCluster) -> None:
    """Messages and bytes count by topic and in total, under both names of the meter."""
    leader, follower = scrapes(cluster)
    name = "kafka_server_brokertopicmetrics"
    assert MESSAGES == leader.value(f"{name}_messagesin_total", topic="t")
    assert MESSAGES == leader.value(f"{name}_messagesinpersec")
    assert leader.value(f"{name}_bytesin_total") > MESSAGES * 100
    assert 0 == follower.value(f"{name}_messagesin_total")


def test_sets_and_fetches_are_counted_by_topic(cluster: EmbeddedCluster) -> None:
    """Each set of a Produce request and each partition of a follower's Fetch counts; no failure
    does."""
    leader, _ = scrapes(cluster)
    name = "kafka_server_brokertopicmetrics"
    assert MESSAGES == leader.value(f"{name}_totalproducerequests_total", topic="t")
    assert MESSAGES <= leader.value(f"{name}_totalfetchrequestspersec", topic="t")
    for kind in ("produce", "fetch"):
        assert 0 == leader.value(f"{name}_failed{kind}requestspersec")


@pytest.mark.parametrize("partitions", [(0,), (0, 1)], ids=["one", "two"])
def test_bytesout_counts_consumers_and_not_followers(
    cluster: EmbeddedCluster, partitions: tuple[int, ...]
) -> None:
    """bytesout is exact to the byte, for fetches of one partition and of several."""
    name = "kafka_server_brokertopicmetrics_bytesout_total"
    before = Scrape(cluster.brokers[0]).value(name, topic="t")
    address = cluster.brokers[0].address
    wanted = {TopicPartition("t", number): (0, 1 << 20) for number in partitions}
    with Connection(address.host, address.port) as connection:
        response = connection.send(fetch_request(wanted, max_wait_ms=0, min_bytes=1))
    assert isinstance(response, FetchResponse)
    size = sum(len(result.message_set) for result in fetch_results(response).values())
    assert size > 0
    assert before + size == Scrape(cluster.brokers[0]).value(name, topic="t")


def test_requests_are_counted_and_their_time_is_in_parts(cluster: EmbeddedCluster) -> None:
    """With acks=-1 the wait for the follower is remote time. The five times add up to the total."""
    leader = Scrape(cluster.brokers[0])
    name = "kafka_network_requestmetrics"
    assert leader.value(f"{name}_requests_total", request="Produce") >= MESSAGES
    total, queue, local, remote, send = (
        leader.value(f"{name}_{part}_sum", request="Produce")
        for part in (
            "totaltimems",
            "requestqueuetimems",
            "localtimems",
            "remotetimems",
            "responsesendtimems",
        )
    )
    assert total == pytest.approx(queue + local + remote + send, rel=0.05)
    assert remote > 0.1 * total
    assert leader.value(f"{name}_totaltimems", request="Produce", quantile="0.99") > 0
    assert leader.value(f"{name}_totaltimems_count", request="FetchFollower") > 0


def test_logs_say_their_size_and_fsyncs_their_time(cluster: EmbeddedCluster) -> None:
    """Log size and flush time are exported by leader and follower."""
    for scrape in scrapes(cluster):
        assert 50 == scrape.value("kafka_log_log_logendoffset", topic="t", partition="0")
        assert scrape.value("kafka_log_log_size", topic="t", partition="0") > 5000
        assert scrape.value("kafka_log_logflushstats_logflushrateandtimems_count") > 0


def test_the_other_metrics_of_dashboards_exist(cluster: EmbeddedCluster) -> None:
    """Every other metric that dashboards use exists; values are not checked."""
    names = Scrape(cluster.brokers[0]).names()
    assert {
        "kafka_server_kafkaserver_brokerstate",
        "kafka_server_sessionexpirelistener_zookeeperexpirespersec",
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "kafka_server_delayedoperationpurgatory_numdelayedoperations",
        "kafka_server_delayedproducemetrics_expirespersec",
        "kafka_server_delayedfetchmetrics_expires_total",
        "kafka_server_brokertopicmetrics_bytesrejectedpersec",
        "kafka_network_requestchannel_requestqueuesize",
        "kafka_network_requestchannel_responsequeuesize",
        "kafka_log_logcleaner_cleaner_recopy_percent",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent",
        "kafka_server_replicafetchermanager_maxlag",
        "kafka08_event_loop_lag_ms_count",
        "process_cpu_seconds_total",
        "process_open_fds",
    } <= names


def test_a_follower_that_dies_is_seen(cluster: EmbeddedCluster) -> None:
    """Under-replicated partitions rise to 2 and the ISRs shrink; both recover after its restart.
    Last test, because it stops a broker."""
    leader, follower = cluster.brokers
    name = "kafka_server_replicamanager"

    def changes(missing: int) -> tuple[float, float]:
        """Shrinks and expansions, once so many partitions are under-replicated."""
        scrape = until(lambda: next((s for s in [Scrape(leader)] if counts(s) == missing), None))
        return scrape.value(f"{name}_isrshrinks_total"), scrape.value(f"{name}_isrexpandspersec")

    def counts(scrape: Scrape) -> float:
        return scrape.value(f"{name}_underreplicatedpartitions")

    # A busy machine may have put the follower out and back before.
    shrinks, expansions = changes(0)
    follower.kill()
    assert (shrinks + 2, expansions) == changes(2)
    cluster.restart(follower)
    assert (shrinks + 2, expansions + 2) == changes(0)
