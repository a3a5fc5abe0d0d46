"""Produce requests and fetches at a leader: what it accepts, counts, and reads."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from kafka08.broker.replica.replica_state import NOT_AT_THE_END
from kafka08.kernel.types import Buffer, Rules
from tests.broker.replica.leaders import a_leader
from tests.kernel.sets import plain, records
from tests.kernel.tails import NOW_MS, File, a_tail

PLAIN = plain([(None, b"a"), (None, b"b")])


def append(
    kernel: ModuleType, leaders: Sequence[Any], sets: Sequence[Buffer], acks: int = 1
) -> list[int]:
    """The offsets that were given to sets which follow each other in a payload."""
    payload = bytearray(b"").join(map(bytes, sets))
    starts = [sum(map(len, sets[:number])) for number in range(len(sets))]
    base_offsets: list[int] = kernel.append_sets(
        payload, list(leaders), starts, list(map(len, sets)), acks, NOW_MS
    )
    return base_offsets


def test_a_broker_appends_to_internal_partitions(kernel: ModuleType) -> None:
    """`append_records` appends records of the broker like a Produce request, without checking the
    sender, and returns -1 for those that it does not append."""
    records = [(None, b"a"), (b"k", None)]
    file = File()
    leader = a_leader(kernel, a_tail(kernel, file), is_internal=True)
    assert 40 == kernel.append_records(leader, records, -1, NOW_MS)
    data = plain(records, 40)
    assert [(1000, data)] == file.written
    assert (2, len(data), 42) == (leader.messages_in, leader.bytes_in, leader.high_watermark)
    leader.reached_in_sync = 2
    assert -1 == kernel.append_records(leader, records, -1, NOW_MS)
    leader.is_leader = False
    assert -1 == kernel.append_records(leader, records, 1, NOW_MS)
    assert -1 == kernel.append_records(a_leader(kernel, None), records, 1, NOW_MS)


def test_batches_get_the_epoch_of_their_partition(kernel: ModuleType) -> None:
    """One whose log has not noted that epoch yet is left."""
    leaders = [
        a_leader(
            kernel,
            a_tail(kernel, File(), rules=Rules(magic=2), noted_epoch=noted),
            leader_epoch=epoch,
        )
        for noted, epoch in ((4, 4), (4, 5), (-1, -1))
    ]
    batch = records(0, [(None, b"a"), (None, b"b")])
    assert [40, -1, -1] == append(kernel, leaders, [batch] * 3)
    assert [2, 0, 0] == [one.messages_in for one in leaders]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_records_of_a_broker_have_its_time(kernel: ModuleType, magic: int) -> None:
    """Where the topic's messages have timestamps."""
    file, rules = File(), Rules(magic=magic, keys_required=True)
    leader = a_leader(kernel, a_tail(kernel, file, rules=rules, noted_epoch=3), leader_epoch=3)
    assert 40 == kernel.append_records(leader, [(b"k", b"v")], 1, NOW_MS)
    [(_, data)] = file.written
    [message] = kernel.messages(data, "t", 0, 0, None)
    assert (40, b"k", b"v") == (message.offset, message.key, message.value)
    assert (magic, NOW_MS if magic else -1) == (data[16], message.timestamp)


def test_an_append_is_counted(kernel: ModuleType) -> None:
    """Messages and bytes are counted. The HW advances at once if no follower must have them, or all
    have them; unless it was below the log end before: then it waits for their fetches."""
    data = plain([(None, b"a"), (None, b"b")])
    alone = a_leader(kernel, a_tail(kernel, File()), messages_in=5, bytes_in=100)
    ahead = kernel.FollowerReplica(2, 0.0)
    ahead.log_end_offset = 41
    led: dict[str, Any] = {"maximal_isr": (1, 2), "followers": {2: ahead}}
    other = a_leader(kernel, a_tail(kernel, File()), high_watermark=40, **led)
    waiting = a_leader(kernel, a_tail(kernel, File()), high_watermark=39, **led)
    append(kernel, [alone, other, waiting], [data, data, data])
    assert (7, 100 + len(data)) == (alone.messages_in, alone.bytes_in)
    assert (2, len(data)) == (other.messages_in, other.bytes_in)
    assert [42, 41, 39] == [one.high_watermark for one in (alone, other, waiting)]


@pytest.mark.parametrize(
    "fields",
    [{"is_leader": False}, {"is_internal": True}, {"is_queued": True}, {"log": None}],
)
def test_a_partition_that_refuses_appends_is_left(
    kernel: ModuleType, fields: dict[str, Any]
) -> None:
    """Nothing is written, changed or counted; its neighbour gets its set."""
    file = File()
    leader = a_leader(kernel, a_tail(kernel, file), **fields)
    pair = [leader, a_leader(kernel, a_tail(kernel, File()))]
    payload, size = bytearray(PLAIN * 2), len(PLAIN)
    assert [-1, 40] == kernel.append_sets(payload, pair, [0, size], [size, size], 1, NOW_MS)
    assert ([], PLAIN, 0) == (file.written, bytes(payload[: len(PLAIN)]), leader.produce_requests)


def test_acks_of_all_need_enough_in_sync(kernel: ModuleType) -> None:
    """As many as the topic says, or else the partition; with acks -1 alone."""
    cases = ((-1, 2, True), (-1, 3, False), (2, 3, True), (3, 1, False))
    for of_topic, reached, is_enough in cases:
        for acks in (-1, 0, 1):
            tail = a_tail(kernel, File(), min_in_sync=of_topic)
            leader = a_leader(kernel, tail, isr=(1, 2), reached_in_sync=reached)
            assert is_enough == leader.has_enough_in_sync()
            expected = 40 if is_enough or acks >= 0 else -1
            assert [expected] == append(kernel, [leader], [PLAIN], acks)


def test_what_replicas_still_need_is_named(kernel: ModuleType) -> None:
    """Where the HW is below the new end."""
    leaders = [
        a_leader(kernel, a_tail(kernel, File()), topic_partition=name, maximal_isr=isr)
        for name, isr in (("a", (1, 2)), ("b", (1,)))
    ]
    append(kernel, leaders, [PLAIN] * 2, -1)
    assert {"a": 42} == kernel.unacknowledged(leaders)


def test_due_index_entries_are_added(kernel: ModuleType) -> None:
    """By exactly the segments whose index entry is due."""
    tails = [a_tail(kernel, File(), bytes_since_index=since) for since in (500, 0, 500)]
    append(kernel, [a_leader(kernel, tail) for tail in tails], [PLAIN] * 3)
    assert [1, 0, 1] == [tail.indexed for tail in tails]


@pytest.mark.parametrize(("is_follower", "expected"), [(True, [1, 2, 3, 5]), (False, [0, 2, 3, 4])])
def test_partitions_with_news_are_found(
    kernel: ModuleType, is_follower: bool, expected: list[int]
) -> None:
    """Followers read to the LEO (40), consumers to the HW. What may be an error is read too:
    invalid offsets, a HW below the log's start, partitions that are unknown or led elsewhere."""
    asked = [(40, 39, 9), (39, 39, 9), (40, 40, -1), (7, 40, 9), (40, 3, 9), (3, 3, 9)]
    leaders = [a_leader(kernel, a_tail(kernel, File()), high_watermark=hw) for _, hw, _ in asked]
    for leader in leaders:
        leader.log.log_start_offset = 3
    offsets, limits = [offset for offset, _, _ in asked], [limit for _, _, limit in asked]
    found = kernel.partitions_to_read(leaders, offsets, limits, is_follower)
    assert found is not None
    assert ([39, 39, 40, 40, 3, 3], expected) == found[:2]
    assert [1000, -1, NOT_AT_THE_END, -1, 1000, NOT_AT_THE_END] == found[2]
    leaders[-1].log.log_start_offset = 4
    found = kernel.partitions_to_read(leaders, offsets, limits, is_follower)
    assert ([39, 39, 40, 40, 3, 3], sorted({*expected, 5})) == found[:2]
    leaders[0].is_leader = False
    leaders[1] = None
    found = kernel.partitions_to_read(leaders, offsets, limits, is_follower)
    assert ([-1, -1, 40, 40, 3, 3], sorted({*expected, 0, 1, 5})) == found[:2]
    assert [NOT_AT_THE_END] * 2 == found[2][:2]


@pytest.mark.parametrize(("offsets", "limits"), [(1, 2), (2, 1), (3, 2), (0, 0)])
def test_partitions_need_as_many_offsets_and_limits(
    kernel: ModuleType, offsets: int, limits: int
) -> None:
    """Lists of other lengths are refused, not read beyond their ends."""
    leaders = [a_leader(kernel, a_tail(kernel, File())) for _ in range(2)]
    with pytest.raises(ValueError):
        kernel.partitions_to_read(leaders, [40] * offsets, [9] * limits, True)


@pytest.mark.parametrize("sizes", [None, [7, 0, 9]])
def test_partitions_count_requests_and_bytes(kernel: ModuleType, sizes: list[int] | None) -> None:
    """Each partition counts the request, and the bytes that consumers get."""
    leaders = [a_leader(kernel, None, bytes_out=5, fetch_requests=1) for _ in range(3)]
    kernel.count_fetches(leaders, sizes)
    assert [2, 2, 2] == [leader.fetch_requests for leader in leaders]
    assert [5 + size for size in sizes or [0, 0, 0]] == [leader.bytes_out for leader in leaders]
