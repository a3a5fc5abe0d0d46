"""Where readers of committed messages wait, in every view of a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner

from kafka08.cli.root import root
from kafka08.embedded import EmbeddedCluster
from kafka08.exporter.families import families_of
from kafka08.exporter.histories import Histories
from kafka08.observe.reader import ClusterReader
from kafka08.observe.snapshot import ClusterView
from kafka08.pages.view_json import partitions_as_json, view_as_json, view_of_json
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.structs import TopicPartition
from tests.integration.transactional import producer_on
from tests.waiting import until

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FAMILY = "kafka_topic_partition_last_stable_offset"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2, config={"api.level": "0.11.0"}) as cluster:
        cluster.create_topic("t", 2, 2)
        with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            for _ in range(3):
                producer.send(ProducerRecord("t", b"plain", partition=0)).result(30)
        yield cluster


@contextmanager
def an_open_transaction(cluster: EmbeddedCluster) -> Iterator[KafkaProducer]:
    """Of two messages in [t,0], with one of no transaction behind it."""
    with producer_on(cluster.bootstrap, "open") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for _ in range(2):
            producer.send(ProducerRecord("t", b"open", partition=0)).result(30)
        with KafkaProducer(bootstrap_servers=cluster.bootstrap) as other:
            other.send(ProducerRecord("t", b"behind", partition=0)).result(30)
        yield producer


def views(cluster: EmbeddedCluster) -> Iterator[ClusterView]:
    """By ZooKeeper and by brokers alone."""
    for given in ((cluster.zookeeper.connect_string, None), (None, cluster.bootstrap)):
        with ClusterReader(*given) as reader:
            yield reader.read_view()


def offsets(cluster: EmbeddedCluster, *address: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(root, ["topic", "offsets", "t", "--json", *address])
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def metrics(view: ClusterView) -> dict[str, list[tuple[str, float]]]:
    return {
        family.name: [(one.labels["partition"], one.value) for one in family.samples
                      if one.labels.get("topic") == "t"]
        for family in families_of(view, Histories())
        if family.name == FAMILY
    }  # fmt: skip


def test_without_transactions_no_view_has_it(cluster: EmbeddedCluster) -> None:
    """A cluster whose producers never had one is shown as before 0.11, and asked nothing more."""
    for view in views(cluster):
        assert view.partitions[T0].stable is None
        assert metrics(view) == {}
        assert partitions_as_json(view)["t"][0][4:] == [0, 3]
    [first, _] = offsets(cluster, "--bootstrap", cluster.bootstrap)
    assert list(first) == ["topic", "partition", "log_start", "log_end", "messages"]


def test_an_open_transaction_is_in_every_view(cluster: EmbeddedCluster) -> None:
    """The snapshot, the metrics, the pages and `topic offsets` say where it begins, and how much is
    behind that; when it has ended, that nothing is."""
    with an_open_transaction(cluster) as producer:
        for view in views(cluster):
            assert (view.partitions[T0].stable, view.partitions[T0].end) == (3, 6)
            assert (view.partitions[T1].stable, view.partitions[T1].end) == (0, 0)
            assert sorted(metrics(view)[FAMILY]) == [("0", 3), ("1", 0)]
            assert [row[5:] for row in partitions_as_json(view)["t"]] == [[6, 3], [0, 0]]
            kept = view_of_json(json.loads(json.dumps(view_as_json(view))))
            assert kept.partitions[T0].stable == 3
        for address in (
            ("--bootstrap", cluster.bootstrap),
            ("--zookeeper", cluster.zookeeper.connect_string),
        ):
            rows = offsets(cluster, *address)
            assert [(row["log_end"], row["last_stable"], row["open"]) for row in rows] == [
                (6, 3, 3),
                (0, 0, 0),
            ]
        producer.commit_transaction(30)

    def is_stable() -> bool:
        return all(view.partitions[T0].stable == view.partitions[T0].end == 7
                   for view in views(cluster))  # fmt: skip

    until(is_stable, "the marker")


def test_a_report_of_before_is_read(cluster: EmbeddedCluster) -> None:
    """Reports that were kept have rows without it."""
    with ClusterReader(cluster.zookeeper.connect_string) as reader:
        found = view_as_json(reader.read_view())
    found["partitions"] = {
        topic: [row[:6] for row in rows] for topic, rows in found["partitions"].items()
    }
    assert view_of_json(found).partitions[T0].stable is None
