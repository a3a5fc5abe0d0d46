"""Readers of an old version make a broker convert compressed sets; nobody else waits for that."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from kafka08 import kernel
from kafka08.client.requests import (
    fetch_request,
    fetch_results,
    produce_request,
    produce_results,
)
from kafka08.embedded import EmbeddedCluster
from kafka08.network.connection import Connection
from kafka08.protocol.compression import GZIP, compress
from kafka08.structs import TopicPartition
from tests.cpu_speed import slowdown

TP = TopicPartition("t", 0)
READERS = 64
PRODUCES = 5
LIMIT_S = 1.0
"""A produce takes a hundredth of a second, or five seconds if it waits for their conversions."""


def compressed(count: int, random_bytes: int) -> bytes:
    """So many messages of 100 bytes, of which some are random, of magic 1 in one wrapper."""
    drawn = random.Random(1)
    values = (drawn.randbytes(random_bytes).ljust(100) for _ in range(count))
    inner = kernel.build_set([(None, value) for value in values], magic=1)
    return bytes(kernel.wrap(compress(GZIP, inner, 1), count - 1, GZIP, 1, timestamp_ms=1))


def connected(cluster: EmbeddedCluster) -> Connection:
    return Connection(cluster.brokers[0].host, cluster.brokers[0].port, timeout_ms=60_000)


@contextmanager
def readers(cluster: EmbeddedCluster, size: int) -> Iterator[None]:
    """Connections that fetch the wrapper in version 0, again and again."""
    end = Event()
    request = fetch_request({TP: (0, 2 * size)}, max_wait_ms=0, min_bytes=0)

    def read() -> None:
        with connected(cluster) as connection:
            while not end.is_set():
                part = fetch_results(connection.send(request))[TP]  # type: ignore[arg-type]
                assert part.message_set

    threads = [Thread(target=read) for _ in range(READERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        end.set()
        for thread in threads:
            thread.join()


def test_a_produce_does_not_wait_for_conversions() -> None:
    """While 64 connections have a wrapper of 440 KB converted, compressed sets that need a thread
    of their own are appended in about the time of their own work."""
    wrapper, own = compressed(160_000, 0), compressed(5_000, 14)
    assert 400_000 < len(wrapper) < 500_000
    with EmbeddedCluster(1, level="0.10.2") as cluster:
        cluster.create_topic(TP.topic, partitions=1, replication_factor=1)
        with connected(cluster) as connection:

            def produce(data: bytes) -> float:
                began = time.monotonic()
                request = produce_request({TP: data}, required_acks=1, timeout_ms=9000, version=2)
                response = connection.send(request)
                assert produce_results(response)[TP].error_code == 0  # type: ignore[arg-type]
                return time.monotonic() - began

            produce(wrapper)
            with readers(cluster, len(wrapper)):
                time.sleep(1)  # until all of them wait
                took = [produce(own) for _ in range(PRODUCES)]
    assert sorted(took)[PRODUCES // 2] < LIMIT_S * slowdown(), took
