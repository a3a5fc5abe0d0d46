"""A command that names no producer uses that of its brokers' console producer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.client import parse_bootstrap
from kafka08.levels import Level
from kafka08.producer.choice import name_old_producer, need_old_producer
from tests.producer.tcp_cluster import TcpCluster

DEAD = ("127.0.0.1", 1)


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster({"t": {0: 1}}) as cluster:
        yield cluster


@pytest.mark.parametrize("first", list(Level))
@pytest.mark.parametrize("second", list(Level))
def test_one_broker_of_0_8_needs_the_old_producer(
    cluster: TcpCluster, first: Level, second: Level
) -> None:
    """Brokers from 0.9 on get the new producer, unless one of 0.8 is among them."""
    cluster.levels = {1: first, 2: second}
    is_old = Level.V0_8_2 in (first, second)
    assert is_old == need_old_producer(parse_bootstrap(cluster.servers))


def test_brokers_that_do_not_respond_do_not_count(cluster: TcpCluster) -> None:
    """Those that respond decide. Without any it is the old producer, which fails sooner."""
    assert need_old_producer([DEAD])
    cluster.levels = dict.fromkeys(cluster.levels, Level.V0_10_2)
    assert not need_old_producer([DEAD, *parse_bootstrap(cluster.servers)])


@pytest.mark.parametrize(
    ("key", "value", "is_old"),
    [
        ("metadata.broker.list", "h:1", True),
        ("queue.time", "10", True),
        ("request.required.acks", "1", True),
        ("partitioner.class", "kafka.producer.DefaultPartitioner", True),
        ("partitioner.class", "mine:choose", True),
        (
            "partitioner.class",
            "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
            False,
        ),
        ("batch.size", "10", False),
        ("client.id", "me", False),
        ("acks", "all", False),
        ("no.such.key", "1", False),
    ],
)
def test_a_key_of_the_old_producer_alone_names_it(key: str, value: str, is_old: bool) -> None:
    """A key that both producers have, though as another's name, names neither. Their partitioners
    take different arguments."""
    assert is_old == name_old_producer({key: value})
