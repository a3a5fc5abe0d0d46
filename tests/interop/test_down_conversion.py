"""Logs of magic 1 that a JVM 0.10.2.2 wrote, read from ours by those who know magic 0 alone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from kafka08.client.requests import fetch_request, fetch_results, produce_request
from kafka08.kernel import entries
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.compression import CODECS, NONE
from kafka08.structs import TopicPartition
from tests.interop.jvm import POM_0_10_2, run_tool
from tests.interop.seats import HOST, MixedCluster, Release, Seat, mixed_cluster
from tests.waiting import until

UNPINNED = Release(POM_0_10_2, "0.10.2", {"log.message.format.version": "0.10.2"})
SETS, MESSAGES = 40, 250
FETCH_BYTES = 1 << 20


def test_consumers_of_0_8_read_logs_of_magic_1(tmp_path: Path) -> None:
    """For Fetch 0 our broker sends the JVM broker's bytes for plain messages and its messages for
    compressed ones. A 0.8.2.2 consumer reads all of them."""
    topics = {f"t-{name}": codec for codec, name in CODECS.items()}
    with mixed_cluster(tmp_path, 1, UNPINNED) as cluster:
        (seat,) = cluster.seats
        seat.start_jvm()
        for topic, codec in topics.items():
            cluster.admin.create_topic(topic)
            cluster.await_isr(topic, 1)
            until(lambda t=topic: is_led(seat, t), "the leader")  # type: ignore[misc]
            for number in range(SETS):
                append(seat, topic, codec, number * MESSAGES)
        theirs = {topic: fetch_all(seat, topic) for topic in topics}
        seat.stop()
        seat.start_ours()
        for topic, codec in topics.items():
            until(lambda t=topic: is_led(seat, t), "our leader")  # type: ignore[misc]
            ours = fetch_all(seat, topic)
            assert rows(theirs[topic]) == rows(ours)
            assert SETS * MESSAGES == len(rows(ours))
            assert {0} == {entry.magic for entry in entries(ours[0])}
            if codec == NONE:
                assert theirs[topic] == ours
            assert SETS * MESSAGES == count_read_by_the_jvm(cluster, topic)


def append(seat: Seat, topic: str, codec: int, base: int) -> None:
    """Produce a set of magic 1."""
    messages = [(b"k", b"%d-%s" % (base + n, b"v" * 80)) for n in range(MESSAGES)]
    now_ms = time.time_ns() // 1_000_000  # older ones would be deleted at once
    data = message_set.encode(messages, codec, 0, magic=1, timestamps=[now_ms] * MESSAGES)
    request = produce_request({TopicPartition(topic, 0): data}, required_acks=1, timeout_ms=10_000)
    with Connection(HOST, seat.port) as connection:
        response: Any = connection.send(request)
    assert 0 == response.topics[0].partitions[0].error_code


def fetch(seat: Seat, topic: str, offset: int) -> Any:
    tp = TopicPartition(topic, 0)
    request = fetch_request({tp: (offset, FETCH_BYTES)}, max_wait_ms=0, min_bytes=0)
    with Connection(HOST, seat.port) as connection:
        response: Any = connection.send(request)
    return fetch_results(response)[tp]


def is_led(seat: Seat, topic: str) -> bool:
    return bool(fetch(seat, topic, 0).error_code == 0)


def fetch_all(seat: Seat, topic: str) -> list[bytes]:
    """The sets that a consumer gets one after the other."""
    sets, offset = [], 0
    while offset < fetch(seat, topic, offset).high_watermark:
        data = bytes(fetch(seat, topic, offset).message_set)
        sets.append(data)
        found = rows([data])
        assert found, f"no whole message at {offset}"
        offset = found[-1][0] + 1
    return sets


def rows(sets: list[bytes]) -> list[Any]:
    return [(m.offset, m.key, m.value) for data in sets for m in message_set.decode(data)]


def count_read_by_the_jvm(cluster: MixedCluster, topic: str) -> int:
    """Messages that the 0.8.2.2 tool reads, which checks every CRC."""
    result = run_tool(
        "kafka.tools.SimpleConsumerShell",
        *("--broker-list", cluster.bootstrap, "--topic", topic, "--partition", "0"),
        "--no-wait-at-logend",
    )
    assert result.rc == 0, result
    return sum("-vvv" in line for line in result.stdout.splitlines())
