"""Long polls and acknowledged produces, from request to response."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.process.broker_families import of_purgatories
from kafka08.broker.purgatory.delayed_fetch import DelayedFetch
from kafka08.exposition import text_of
from kafka08.log.slices import LogOffset
from kafka08.protocol import message_set
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.stop_replica import StopReplicaPartition, StopReplicaRequest
from kafka08.protocol.types import Request
from kafka08.structs import TopicPartition
from tests.broker.world import CONTROLLER_EPOCH, Client, World

BIG = 1 << 20
DELAYED_PRODUCES = "kafka_server_producerrequestpurgatory_numdelayedrequests"


def fetch(
    *offsets: int, wait_ms: int = 1000, min_bytes: int = 1, replica_id: int = -1, topic: str = "t"
) -> FetchRequest:
    parts = [FetchPartition(number, offset, BIG) for number, offset in enumerate(offsets)]
    return FetchRequest(replica_id, wait_ms, min_bytes, [FetchTopic(topic, parts)])


def produce(acks: int, *partitions: int, timeout_ms: int = 1000, count: int = 1) -> ProduceRequest:
    data = message_set.encode([(None, b"m")] * count)
    parts = [ProducePartition(number, data) for number in partitions]
    return ProduceRequest(acks, timeout_ms, [ProduceTopic("t", parts)])


def ask(world: World, request: Request) -> Client:
    """Sends on a connection of its own, where the request is parked if its response must wait."""
    client = Client(world)
    client.send(encode_request(request, 1, "test"))
    return client


def answered(client: Client, request: type[Request]) -> Any:
    (frame,) = client.frames()
    return decode_response(request, frame)[1]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.lead("t", 2)
    return world


@pytest.fixture
def replicated(tmp_path: Path) -> World:
    """A partition with two in-sync replicas, led by this broker."""
    world = World(tmp_path)
    world.lead("t", 2, isr=(1, 2), replicas=(1, 2))
    return world


def test_a_long_poll_is_answered_by_the_append(world: World) -> None:
    """A long poll is answered by the append and not before, with the appended messages."""
    poll = ask(world, fetch(0))
    world.runtime.advance(0.5)
    assert poll.parked
    ask(world, produce(1, 0))
    part = answered(poll, FetchRequest).topics[0].partitions[0]
    assert (0, 1) == (part.error_code, part.high_watermark)
    assert 1 == len(list(message_set.decode(part.message_set)))
    assert 0 == len(world.replica_manager.purgatories.fetches)


def test_a_partition_that_refuses_a_follower_does_not_hold_up_others(
    replicated: World,
) -> None:
    """Broker 2 is no longer a replica of [t,1] and does not know it yet. [t,0] is still read, and
    its fetch position counts."""
    ask(replicated, produce(1, 0, 1))
    replicated.partition("t", 1).replicas = (1,)
    replicated.partition("t", 1).isr = (1,)
    response = answered(ask(replicated, fetch(1, 1, replica_id=2)), FetchRequest)
    [zero, one] = response.topics[0].partitions
    assert (0, 1) == (zero.error_code, replicated.partition("t", 0).high_watermark)
    assert (-1, -1, b"") == (one.error_code, one.high_watermark, one.message_set)


def test_a_long_poll_ends_empty_with_its_time(world: World) -> None:
    """After max_wait_ms the response has error 0 and no messages."""
    poll = ask(world, fetch(0, wait_ms=300))
    world.runtime.advance(0.299)
    assert poll.parked
    world.runtime.advance(0.003)
    part = answered(poll, FetchRequest).topics[0].partitions[0]
    assert (0, 0, b"") == (part.error_code, part.high_watermark, bytes(part.message_set))


def test_min_bytes_are_counted_over_all_partitions(world: World) -> None:
    """min_bytes counts all partitions: one message in each of two gives 54 bytes; 55 need a third
    one."""
    poll = ask(world, fetch(0, 0, min_bytes=55))
    ask(world, produce(1, 0))
    ask(world, produce(1, 1))
    assert poll.parked
    ask(world, produce(1, 1))
    sizes = [len(part.message_set) for part in answered(poll, FetchRequest).topics[0].partitions]
    assert [27, 54] == sizes


def test_an_append_looks_at_its_own_partition_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append checks its own partition alone. (A Fetch or acks=-1 Produce of 200 partitions used
    to check all of them for each message.)"""
    looks: list[TopicPartition] = []
    look = DelayedFetch._check_partition

    def counted(wait: DelayedFetch, topic_partition: TopicPartition) -> bool:
        looks.append(topic_partition)
        return look(wait, topic_partition)

    monkeypatch.setattr(DelayedFetch, "_check_partition", counted)
    partitions = [TopicPartition("wide", number) for number in range(50)]
    world.lead("wide", 50)
    starts = {tp: LogOffset(0, 0, 0) for tp in partitions}
    ended: list[bool] = []
    wait = DelayedFetch(
        world.replica_manager.partition,
        starts,
        1 << 20,
        lambda: ended.append(True),
        from_follower=False,
    )
    assert not world.replica_manager.purgatories.fetches.add(wait, partitions, 1000)
    looks.clear()
    world.replica_manager.purgatories.wake(partitions[7])
    assert [partitions[7]] == looks
    assert [] == ended


def test_a_long_poll_ends_when_leadership_is_lost(world: World) -> None:
    """A long poll gets 6 at once when the leadership is lost."""
    poll = ask(world, fetch(0))
    world.lead("t", 2, leader=2, isr=(2,), replicas=(1, 2))
    assert 6 == answered(poll, FetchRequest).topics[0].partitions[0].error_code


def test_a_client_that_goes_leaves_no_wait(world: World) -> None:
    """When its connection closes, a long poll is removed, however long it would wait."""
    poll = ask(world, fetch(0, wait_ms=2**31 - 1))
    assert 1 == len(world.replica_manager.purgatories.fetches)
    poll.close()
    assert 0 == len(world.replica_manager.purgatories.fetches)
    assert 0 == len(world.replica_manager.purgatories.produces)


def test_consumers_wait_for_the_high_watermark_followers_for_the_log_end(
    replicated: World,
) -> None:
    """An append wakes the follower. Its next fetch moves the HW, which wakes the consumer. The
    follower's response has the HW of before its fetch (captured: follower-fetch-0, -3)."""
    consumer = ask(replicated, fetch(0))
    follower = ask(replicated, fetch(0, replica_id=2))
    ask(replicated, produce(1, 0, count=3))
    assert consumer.parked
    replicated.runtime.advance(0)
    part = answered(follower, FetchRequest).topics[0].partitions[0]
    assert (0, 3) == (part.high_watermark, len(list(message_set.decode(part.message_set))))
    ask(replicated, fetch(3, replica_id=2))
    part = answered(consumer, FetchRequest).topics[0].partitions[0]
    assert (3, 3) == (part.high_watermark, len(list(message_set.decode(part.message_set))))


def test_a_follower_gets_what_one_turn_appended_in_one_response(replicated: World) -> None:
    """One response has the appends of all connections that the event loop served in this turn, to
    all partitions. With one response per append every produced set would cost each follower a
    Fetch."""
    follower = ask(replicated, fetch(0, 0, replica_id=2))
    for partition in (0, 1, 0):
        ask(replicated, produce(1, partition))
    assert follower.parked
    replicated.runtime.advance(0)
    parts = answered(follower, FetchRequest).topics[0].partitions
    assert [54, 27] == [len(part.message_set) for part in parts]


@pytest.mark.parametrize(("level", "version"), [("0.8.2", 0), ("0.10.2", 3)])
def test_a_fetch_that_acknowledges_a_produce_has_the_next_one_too(
    tmp_path: Path, level: str, version: int
) -> None:
    """The next request of that producer mostly lies behind. So the response waits until the turn
    ends, even if there are messages already, and has the HW of before."""
    world = World(tmp_path, api_level=level)
    world.lead("t", 2, isr=(1, 2), replicas=(1, 2))
    producer = ask(world, produce(-1, 0))
    ask(world, produce(1, 1))
    request = replace(fetch(1, 0, replica_id=2), version=version, max_bytes=10 * BIG)
    follower = ask(world, request)
    assert (False, True) == (producer.parked, follower.parked)
    ask(world, produce(-1, 0))
    world.runtime.advance(0)
    (frame,) = follower.frames()
    parts = decode_response(FetchRequest, frame, version)[1].topics[0].partitions
    assert [0, 0] == [part.high_watermark for part in parts]
    assert [1, 1] == [len(list(message_set.decode(part.message_set))) for part in parts]


def test_a_follower_is_answered_after_later_turns_too(replicated: World) -> None:
    """Each turn of the event loop answers its parked Fetches."""
    for offset in range(2):
        follower = ask(replicated, fetch(offset, 0, replica_id=2))
        assert follower.parked
        ask(replicated, produce(1, 0))
        replicated.runtime.advance(0)
        assert 1 == len(follower.frames())


def test_a_follower_hears_at_once_that_leadership_is_lost(replicated: World) -> None:
    """Its parked Fetch gets 6 for these partitions. An append to a topic that it does not follow is
    none of its business."""
    follower = ask(replicated, fetch(0, 0, replica_id=2))
    replicated.lead("alone")
    data = message_set.encode([(None, b"m")])
    alone = ProduceRequest(1, 1000, [ProduceTopic("alone", [ProducePartition(0, data)])])
    ask(replicated, alone)
    replicated.runtime.advance(0)
    assert follower.parked
    replicated.lead("t", 2, leader=2, isr=(2,), replicas=(1, 2))
    replicated.runtime.advance(0)
    parts = answered(follower, FetchRequest).topics[0].partitions
    assert [6, 6] == [part.error_code for part in parts]


def test_a_follower_hears_at_once_that_a_partition_was_deleted(replicated: World) -> None:
    """Its parked Fetch gets 3 for it."""
    follower = ask(replicated, fetch(0, 0, replica_id=2))
    stopped = [StopReplicaPartition("t", 1)]
    Client(replicated).call(StopReplicaRequest(9, CONTROLLER_EPOCH, 1, stopped))
    replicated.runtime.advance(0)
    parts = answered(follower, FetchRequest).topics[0].partitions
    assert [0, 3] == [part.error_code for part in parts]


def test_consumers_never_see_above_the_high_watermark(replicated: World) -> None:
    """Between HW and LEO a consumer gets -1, at the LEO an empty response (captured,
    consumer-fetch-*)."""
    ask(replicated, produce(1, 0, count=3))
    at = [ask(replicated, fetch(offset, wait_ms=0)) for offset in (0, 1, 3, 4)]
    codes = [answered(one, FetchRequest).topics[0].partitions[0].error_code for one in at]
    assert [0, -1, 0, 1] == codes


def test_acks_minus_one_wait_for_the_isr(replicated: World) -> None:
    """The Produce completes with the fetch by which the follower has all messages."""
    waiting = ask(replicated, produce(-1, 0, count=2))
    ask(replicated, fetch(1, replica_id=2, wait_ms=0))
    assert waiting.parked
    ask(replicated, fetch(2, replica_id=2, wait_ms=0))
    part = answered(waiting, ProduceRequest).topics[0].partitions[0]
    assert (0, 0) == (part.error_code, part.base_offset)


def test_acks_that_are_counted_do_not_wait_for_the_high_watermark(tmp_path: Path) -> None:
    """acks 2 of three replicas completes with one follower's fetch, and the HW stays."""
    world = World(tmp_path)
    world.lead("t", isr=(1, 2, 3), replicas=(1, 2, 3))
    counted, all_of_them = ask(world, produce(2, 0)), ask(world, produce(-1, 0))
    ask(world, fetch(2, replica_id=3, wait_ms=0))
    assert 0 == answered(counted, ProduceRequest).topics[0].partitions[0].error_code
    assert (0, True) == (world.partition("t").high_watermark, all_of_them.parked)
    ask(world, fetch(2, replica_id=2, wait_ms=0))
    assert 0 == answered(all_of_them, ProduceRequest).topics[0].partitions[0].error_code


@pytest.mark.parametrize(("acks", "expected"), [(-1, (1, 0)), (2, (0, 1))])
def test_a_produce_waits_in_the_purgatory_of_its_acks(
    tmp_path: Path, acks: int, expected: tuple[int, int]
) -> None:
    """With acks -1 in `produces`, where a move of the HW looks for it; with acks above 1 in
    `counted_produces`. The metrics count both as delayed produces until they complete."""
    world = World(tmp_path)
    world.lead("t", isr=(1, 2, 3), replicas=(1, 2, 3))
    purgatories = world.replica_manager.purgatories
    waiting = ask(world, produce(acks, 0))
    assert expected == (len(purgatories.produces), len(purgatories.counted_produces))
    assert f"{DELAYED_PRODUCES} 1.0" in text_of(of_purgatories(purgatories)).splitlines()
    for follower in (2, 3):
        ask(world, fetch(1, replica_id=follower, wait_ms=0))
    assert not waiting.parked
    assert (0, 0) == (len(purgatories.produces), len(purgatories.counted_produces))
    assert f"{DELAYED_PRODUCES} 0.0" in text_of(of_purgatories(purgatories)).splitlines()


def test_a_timed_out_partition_is_seven_though_appended(replicated: World) -> None:
    """After its timeout a partition gets 7, although the messages were appended. A partition with
    another error keeps that one."""
    waiting = ask(replicated, produce(-1, 0, 9, timeout_ms=300))
    replicated.runtime.advance(0.302)
    parts = answered(waiting, ProduceRequest).topics[0].partitions
    assert {0: (7, 0), 9: (3, -1)} == {
        part.partition: (part.error_code, part.base_offset) for part in parts
    }
    assert 1 == replicated.partition("t").log.log_end_offset


def test_a_produce_that_failed_everywhere_does_not_wait(replicated: World) -> None:
    """If every partition failed, the response is sent at once, whatever acks is."""
    client = ask(replicated, produce(-1, 8, 9))
    codes = [p.error_code for p in answered(client, ProduceRequest).topics[0].partitions]
    assert [3, 3] == codes


def test_a_waiting_produce_gets_six_when_leadership_is_lost(replicated: World) -> None:
    """A Produce that waits is checked again when the leadership is lost, and gets 6."""
    waiting = ask(replicated, produce(-1, 0))
    replicated.lead("t", 2, leader=2, isr=(2,), replicas=(1, 2))
    assert 6 == answered(waiting, ProduceRequest).topics[0].partitions[0].error_code


def test_acks_zero_with_an_error_closes_the_connection(world: World) -> None:
    """With acks 0 an error closes the connection, which is how such a producer learns of it.
    Without error there is no response."""
    fine, wrong = ask(world, produce(0, 0)), ask(world, produce(0, 0, 9))
    assert not fine.closed
    assert [] == fine.frames()
    assert wrong.closed
    assert 2 == world.partition("t").log.log_end_offset


def test_a_fetch_from_an_older_segment_does_not_wait(tmp_path: Path) -> None:
    """Case C: a fetch from an older segment gets the rest of it at once, whatever min_bytes is."""
    world = World(tmp_path)
    world.lead("t", config={"segment.bytes": "60"})
    for _ in range(5):
        ask(world, produce(1, 0))
    poll = ask(world, fetch(0, min_bytes=BIG))
    assert not poll.parked
    assert 54 == len(answered(poll, FetchRequest).topics[0].partitions[0].message_set)


def test_a_long_poll_ends_when_retention_passes_the_high_watermark(tmp_path: Path) -> None:
    """Case E: with a stuck follower, retention may pass the HW. A waiting consumer gets 1, and the
    producer whose append completed the Fetch notices nothing."""
    world = World(tmp_path)
    config = {"segment.bytes": "60", "retention.bytes": "0"}
    world.lead("t", config=config, isr=(1, 2), replicas=(1, 2))
    poll = ask(world, fetch(0))
    for _ in range(5):
        ask(world, produce(1, 0))
    assert poll.parked
    world.log_manager.retain()
    producer = ask(world, produce(1, 0))
    assert 0 == answered(producer, ProduceRequest).topics[0].partitions[0].error_code
    assert 1 == answered(poll, FetchRequest).topics[0].partitions[0].error_code


def test_a_new_leader_epoch_has_followers_fetch_again(replicated: World) -> None:
    """With a new leader epoch a follower's delayed fetch completes, because the leader no longer
    knows its position. The next fetch has it, and acks=-1 waits for that."""
    follower = ask(replicated, fetch(0, replica_id=2))
    assert follower.parked
    replicated.lead("t", isr=(1, 2), replicas=(1, 2))
    assert 1 == len(follower.frames())
