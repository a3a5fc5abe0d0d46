"""Which errors a Fetch brings to consumers and to followers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.requests import fetch_call
from kafka08.broker.requests.fetch_call import FetchCall
from kafka08.errors import (
    NO_ERROR,
    NotLeaderForPartition,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
)
from kafka08.protocol import message_set
from kafka08.protocol.codec import encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.stop_replica import StopReplicaPartition, StopReplicaRequest
from kafka08.structs import TopicPartition
from tests.broker.world import CONTROLLER_EPOCH, Client, World

CONSUMER, FOLLOWER = -1, 2


@pytest.mark.parametrize("wait_ms", [0, 1000])
@pytest.mark.parametrize(
    ("replica_id", "may_have_session", "error"),
    [
        (CONSUMER, True, OffsetOutOfRange),
        (CONSUMER, False, NotLeaderForPartition),
        (FOLLOWER, True, OffsetOutOfRange),
        (FOLLOWER, False, OffsetOutOfRange),
    ],
)
def test_a_broker_without_a_session_resets_no_consumer(
    tmp_path: Path,
    replica_id: int,
    may_have_session: bool,
    error: type[OffsetOutOfRange | NotLeaderForPartition],
    wait_ms: int,
) -> None:
    """A broker whose ZooKeeper session may have expired may have successors with longer logs. It
    does not tell a consumer that an offset is out of range, since the consumer would then begin at
    the log start; a follower must know, to truncate its log."""
    world = World(tmp_path)
    world.lead("t", isr=[1, 2], replicas=[1, 2])
    world.store.may_have_session = may_have_session
    wanted = [FetchTopic("t", [FetchPartition(0, 7, 1000)])]
    response = world.client.call(FetchRequest(replica_id, wait_ms, 1, wanted))
    assert error.code == response.topics[0].partitions[0].error_code


def test_a_broker_with_a_new_session_resets_no_consumer(tmp_path: Path) -> None:
    """It does not know yet who leads."""
    world = World(tmp_path)
    world.lead("t", isr=[1, 2], replicas=[1, 2])
    world.store.session_id += 1
    wanted = [FetchTopic("t", [FetchPartition(0, 7, 1000)])]
    response = world.client.call(FetchRequest(CONSUMER, 0, 1, wanted))
    assert NotLeaderForPartition.code == response.topics[0].partitions[0].error_code


@pytest.mark.parametrize("others", [(), ("unknown",)], ids=["kernel", "codec"])
def test_a_partition_that_is_deleted_during_the_read_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...]
) -> None:
    """A fetch of many partitions yields while it reads, and the controller may delete one of them.
    The follower goes on with the others. (An unknown topic makes the codec decode it.)"""
    world = World(tmp_path)
    world.lead("t", isr=[1, 2], replicas=[1, 2])
    world.lead("u", isr=[1, 2], replicas=[1, 2])
    produce(world, "t")
    produce(world, "u")
    read_some = FetchCall._read_some

    def deleted_meanwhile(*args: Any) -> None:
        read_some(*args)
        stopped = [StopReplicaPartition("t", 0)]
        world.replica_manager.stop_replicas(StopReplicaRequest(9, CONTROLLER_EPOCH, 1, stopped))

    monkeypatch.setattr(FetchCall, "_read_some", deleted_meanwhile)
    monkeypatch.setattr(fetch_call, "PARTITIONS_AT_ONCE", 0)
    wanted = [FetchTopic(topic, [FetchPartition(0, 0, 1000)]) for topic in ("t", "u", *others)]
    response = world.client.call(FetchRequest(FOLLOWER, 0, 1, wanted))
    codes = {topic.topic: topic.partitions[0].error_code for topic in response.topics}
    gone = UnknownTopicOrPartition.code
    assert {"t": gone, "u": NO_ERROR} | dict.fromkeys(others, gone) == codes


def test_what_comes_during_the_read_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch of many partitions yields while it reads. A partition that was at its end may get a
    message meanwhile, and no later append would wake the fetch. (At 0.10.2 the unknown topic's
    error does not end the wait.)"""
    world = World(tmp_path, api_level="0.10.2")
    world.lead("t")
    read_some = FetchCall._read_some

    def produced_meanwhile(*args: Any) -> None:
        read_some(*args)
        if not world.partition("t").high_watermark:
            produce(world, "t")

    monkeypatch.setattr(FetchCall, "_read_some", produced_meanwhile)
    monkeypatch.setattr(fetch_call, "PARTITIONS_AT_ONCE", 0)
    wanted = [FetchTopic(topic, [FetchPartition(0, 0, 1000)]) for topic in ("t", "unknown")]
    response = world.client.call(FetchRequest(CONSUMER, 1000, 1, wanted, version=2))
    assert response.topics[0].partitions[0].message_set


@pytest.mark.parametrize("level", ["0.8.2", "0.10.2"])
def test_an_error_is_answered_without_another_read(tmp_path: Path, level: str) -> None:
    """One partition in error among others: they are read once, and the error stands beside their
    sets."""
    world = World(tmp_path, api_level=level)
    world.lead("t")
    world.lead("u", leader=2, isr=[2, 1], replicas=[2, 1])
    produce(world, "t")
    reads = []
    log = world.partition("t").leader_log()
    read = log.read

    def counted(*args: Any) -> Any:
        reads.append(args)
        return read(*args)

    log.read = counted
    wanted = [FetchTopic(topic, [FetchPartition(0, 0, 1000)]) for topic in ("t", "u")]
    response = world.client.call(FetchRequest(CONSUMER, 1000, 1, wanted))
    parts = {topic.topic: topic.partitions[0] for topic in response.topics}
    assert (NotLeaderForPartition.code, -1) == (parts["u"].error_code, parts["u"].high_watermark)
    assert (NO_ERROR, 1) == (parts["t"].error_code, parts["t"].high_watermark)
    assert parts["t"].message_set
    assert 1 == len(reads)


def produce(world: World, topic: str) -> None:
    data = message_set.encode([(None, b"v")])
    parts = [ProducePartition(0, data)]
    response = Client(world).call(ProduceRequest(1, 1, [ProduceTopic(topic, parts)]))
    assert NO_ERROR == response.topics[0].partitions[0].error_code


@pytest.mark.parametrize("min_bytes", [1, 2])
def test_what_a_fetch_has_the_broker_append_is_in_its_response(
    tmp_path: Path, min_bytes: int
) -> None:
    """A coordinator whose record the in-sync replicas have appends markers: while the fetch is
    handled that says so. Its follower gets them at once, not after replica.fetch.wait.max.ms."""
    world = World(tmp_path)
    world.lead("t", isr=[1, 2], replicas=[1, 2])
    tp = TopicPartition("t", 0)

    def append(value: bytes, acks: int, done: Callable[[object], object]) -> None:
        data = bytearray(message_set.encode([(None, value)]))
        world.appender.append({tp: data}, required_acks=acks, timeout_ms=1000, done=done)

    append(b"a record", -1, lambda _: append(b"a marker", 1, lambda _: None))
    wanted = [FetchTopic("t", [FetchPartition(0, 1, 1000)])]
    follower = Client(world)
    follower.send(encode_request(FetchRequest(FOLLOWER, 500, min_bytes, wanted), 1, "test"))
    world.runtime.advance(0)
    [frame] = follower.frames()
    assert b"a marker" in frame
