"""The rows of `scripts/bench growth` about brokers and groups."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from benchmarks.growth_place import PARTITIONS, SMALL, Dimension, Place, topic_of
from benchmarks.subjects import cpu_seconds
from kafka08.client import parse_bootstrap
from kafka08.client.requests import fetch_request, offsets_request
from kafka08.consumer import ConsumerConfig, ConsumerConnector
from kafka08.network.connection import Connection
from kafka08.observe.reader import ClusterReader
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.protocol.offsets import OffsetsResponse
from kafka08.protocol.types import Request
from kafka08.structs import LATEST_OFFSET, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Create

LONG_MS: Final = 600_000
SETTLE_S: Final = 0.2
COMMITTED_EACH: Final = 10
"""Partitions of which a group has committed an offset."""
GROUP_S: Final = 600.0
MESSAGE_BYTES: Final = 1 << 20
FETCH_BYTES: Final = 1 << 16


def connection_to(place: Place) -> Connection:
    [(host, port)] = parse_bootstrap(place.bootstrap)
    return Connection(host, port, timeout_ms=LONG_MS)


def of_broker(place: Place, times: int, act: Callable[[], object]) -> float:
    """Seconds of the broker's CPU for one act."""
    began = cpu_seconds(place.pid)
    for _ in range(times):
        act()
    return (cpu_seconds(place.pid) - began) / times


def parked_fetches(place: Place, fetches: int) -> float:
    """Microseconds of the broker for a produce to a partition of which so many fetches wait, each
    for more than there is."""
    tp = TopicPartition(topic_of(SMALL), 0)
    with ExitStack() as opened, KafkaProducer(bootstrap_servers=place.bootstrap) as producer:
        record = ProducerRecord(tp.topic, b"x", partition=tp.partition)
        end = producer.send(record).result().offset + 1
        wanted = {tp: (end, FETCH_BYTES)}
        for _ in range(fetches):
            connection = opened.enter_context(connection_to(place))
            connection.write(fetch_request(wanted, max_wait_ms=LONG_MS, min_bytes=FETCH_BYTES))
        time.sleep(SETTLE_S + fetches / 2000)
        return of_broker(place, 50, lambda: producer.send(record).result()) * 1e6


def requested(place: Place, request: Request, times: int) -> float:
    """Microseconds of the broker for a request and its response."""
    with connection_to(place) as connection:
        connection.send(request)
        return of_broker(place, times, lambda: connection.send(request)) * 1e6


def fetched_partitions(place: Place, partitions: int) -> float:
    """Microseconds of the broker for a Fetch 3 of so many partitions that have nothing new."""
    positions = {
        TopicPartition(topic_of(partitions), n): (0, FETCH_BYTES) for n in range(partitions)
    }
    with connection_to(place) as connection:
        ends = connection.send(offsets_request(dict.fromkeys(positions, LATEST_OFFSET)))
    assert isinstance(ends, OffsetsResponse)
    for topic in ends.topics:
        for one in topic.partitions:
            positions[TopicPartition(topic.topic, one.partition)] = (one.offsets[0], FETCH_BYTES)
    request = fetch_request(positions, max_wait_ms=0, min_bytes=0, version=3)
    return requested(place, request, max(10, 5000 // partitions))


def converted_message(place: Place, megabytes: int) -> float:
    """Milliseconds of the broker for a Fetch 1 of one message of so many MB, which has a timestamp
    that clients of 0.8 must not get."""
    tp = TopicPartition(topic_of(SMALL), megabytes)
    size = megabytes * MESSAGE_BYTES
    with KafkaProducer(
        bootstrap_servers=place.bootstrap, max_request_size=2 * size, buffer_memory=4 * size
    ) as producer:
        record = ProducerRecord(tp.topic, bytes(size), partition=tp.partition)
        offset = producer.send(record).result().offset
    request = fetch_request({tp: (offset, 2 * size)}, max_wait_ms=0, min_bytes=0, version=1)
    return requested(place, request, 3) / 1e3


def groups_seen(place: Place, groups: int) -> float:
    """Milliseconds of a reader for a snapshot with so many groups, each with ten offsets in
    ZooKeeper, after a first one."""
    tps = [TopicPartition(topic_of(SMALL), number) for number in range(COMMITTED_EACH)]
    names = [f"growth-{groups}-{number}" for number in range(groups)]
    with ZkClient(place.zookeeper) as zk, ClusterReader(place.zookeeper) as reader:
        for name in names:
            zk.ensure(paths.offsets(name, tps[0].topic))
        zk.pipeline([Create(paths.offset(name, *tp), "0") for name in names for tp in tps])
        try:
            reader.read_view()
            began = time.process_time()
            for _ in range(3):
                reader.read_view()
            return (time.process_time() - began) / 3 * 1e3
        finally:
            for name in names:
                zk.delete_recursive(paths.group(name))


def group_members(place: Place, members: int) -> float:
    """Milliseconds of CPU for each member of a group in ZooKeeper that gathers: all begin at
    once, in one process, and own the partitions of one topic in the end."""
    group, topic = f"growth-{members}-{time.monotonic_ns()}", topic_of(500)
    config = ConsumerConfig(
        {
            "zookeeper.connect": place.zookeeper,
            "group.id": group,
            "rebalance.max.retries": "1000",
            "zookeeper.session.timeout.ms": "60000",
        }
    )
    with ExitStack() as opened:
        connectors = [opened.enter_context(ConsumerConnector(config)) for _ in range(members)]
        began = time.process_time()
        for connector in connectors:
            connector.create_message_streams({topic: 1})
        deadline = time.monotonic() + GROUP_S
        while sum(len(one.assignment) for one in connectors) < 500 or not all(
            one.assignment for one in connectors
        ):
            assert time.monotonic() < deadline, "the group does not settle"
            time.sleep(0.05)
        return (time.process_time() - began) / members * 1e3


DIMENSIONS: Final = (
    Dimension("fetches that wait, a produce", "us", (10, 100, 1000), parked_fetches),
    Dimension("partitions of a Fetch", "us", PARTITIONS, fetched_partitions),
    Dimension("MB of a converted message", "ms", (1, 4, 16), converted_message),
    Dimension("groups of a snapshot", "ms", (50, 200, 1000), groups_seen),
    Dimension("members of a ZooKeeper group", "ms", (5, 20, 80, 200), group_members, rounds=1),
)
