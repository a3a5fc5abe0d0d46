"""The exporter's probe on a real cluster: a message through each partition and back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from kafka08.embedded import EmbeddedCluster
from kafka08.errors import UnknownTopicOrPartition
from kafka08.exporter import Probe
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.runtime.threads import THREADS
from tests.waiting import until

PREFIX = "kminion_end_to_end_"


@pytest.fixture(scope="module", params=["0.8.2", "0.10.2"])
def cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2, level=request.param) as cluster:
        cluster.create_topic("probe", 2, 1)
        yield cluster


def counts(probe: Probe, name: str) -> dict[str, float]:
    """partition → value."""
    [family] = [f for f in probe.families() if f.name == PREFIX + name]
    return {
        s.labels["partition_id"]: s.value
        for s in family.samples
        if s.suffix in {"", "_total", "_count"}
    }


def test_every_message_comes_back(cluster: EmbeddedCluster) -> None:
    """The probe reads its messages from both partitions, among those of other producers, without
    loss."""
    with Probe(cluster.bootstrap, "probe", timeout_s=30, runtime=THREADS) as probe:
        config = KafkaProducerConfig({"bootstrap.servers": cluster.bootstrap})
        with KafkaProducer(config) as producer:
            for value in (b"another's", b"kafka08-probe 00 1", b""):
                producer.send(ProducerRecord("probe", value, partition=0)).result(10)
        for _ in range(5):
            probe.round()
        probe.settle()
        expected = {"0": 5.0, "1": 5.0}
        assert expected == counts(probe, "messages_produced")
        assert expected == counts(probe, "messages_received")
        assert expected == counts(probe, "roundtrip_latency_seconds")
        for name in ("messages_lost", "messages_late", "messages_produced_failed"):
            assert {"0": 0.0, "1": 0.0} == counts(probe, name), name


def test_a_dead_leader_is_seen_and_the_other_partition_measured_on(
    cluster: EmbeddedCluster,
) -> None:
    """Probes of its partition fail until it is back; those of the other partition succeed."""
    with Probe(cluster.bootstrap, "probe", timeout_s=2, runtime=THREADS) as probe:
        dead = cluster.leader_of("probe", 0)
        dead.kill()
        THREADS.spawn(probe.run, 0.1, name="probe")
        until(lambda: counts(probe, "messages_produced_failed")["0"] > 0, "it fails")
        until(lambda: counts(probe, "messages_received")["1"] > 3, "the other is read")
        cluster.restart(dead)
        before = counts(probe, "messages_received")["0"]
        until(lambda: counts(probe, "messages_received")["0"] > before, "it is read again")
        assert 0 == counts(probe, "messages_produced_failed")["1"]


def test_a_probe_starts_while_a_partition_has_no_leader(cluster: EmbeddedCluster) -> None:
    """This is what it is to show: messages of that partition fail until it has a leader, and those
    of the others are measured."""
    dead = cluster.leader_of("probe", 0)
    cluster.kill(dead)
    with Probe(cluster.bootstrap, "probe", timeout_s=30, runtime=THREADS) as probe:
        probe.round()
        probe.settle()
        assert {"0": 1.0, "1": 0.0} == counts(probe, "messages_produced_failed")
        assert {"0": 0.0, "1": 1.0} == counts(probe, "messages_received")
        cluster.restart(dead)
        THREADS.spawn(probe.run, 0.1, name="probe")
        until(lambda: counts(probe, "messages_received")["0"] > 0, "it is read")


def test_a_topic_that_is_not_there_is_an_error(cluster: EmbeddedCluster) -> None:
    """The probe does not create the topic, although it asks for it several times."""
    with pytest.raises(UnknownTopicOrPartition, match="topic missing does not exist"):
        Probe(cluster.bootstrap, "missing", timeout_s=2, runtime=THREADS)


def test_the_command_probes_once_without_listen(cluster: EmbeddedCluster) -> None:
    """It sends one message to each partition, and prints its outcome with the cluster's metrics."""
    command = [sys.executable, "-m", "kafka08.cli", "metrics", "--probe", "probe"]
    command += ["--zookeeper", cluster.zookeeper.connect_string]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert f'{PREFIX}messages_received_total{{partition_id="1"}} 1.0' in shown
    assert f'{PREFIX}roundtrip_latency_seconds_bucket{{le="+Inf",partition_id="0"}} 1.0' in shown
    assert "kafka_brokers 2.0" in shown
