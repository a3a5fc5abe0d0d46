"""The cleaner on batches of records: one that shrinks keeps its place, its producer, its codec."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import pytest

from kafka08.format import Batch, batches
from kafka08.format import Message as Record
from kafka08.format.v2 import V2
from kafka08.levels import Level
from kafka08.log.check import check_log
from kafka08.log.coordinator_batches import marker_batch
from kafka08.log.log import Log
from kafka08.log.producers import TransactionEnd
from kafka08.protocol import message_set
from kafka08.protocol.compression import CODECS
from kafka08.protocol.record_batches import compress
from tests.log.compaction import KeyedValue, cleaning, messages_of
from tests.log.conftest import OpenLog

each_codec = pytest.mark.parametrize("codec", CODECS, ids=CODECS.get)


def append(
    log: Log, *pairs: KeyedValue, codec: int = 0, producer_id: int = -1, transactional: bool = False
) -> Batch:
    """Append one batch, as a follower; returns it."""
    first = log.log_end_offset
    records = [
        Record(
            offset,
            None if key is None else memoryview(key),
            None if value is None else memoryview(value),
            1000 + offset,
            0,
            (("h", key),),
        )
        for offset, (key, value) in enumerate(pairs, first)
    ]
    like = Batch(2, 0, 0, first, first + len(pairs) - 1, codec, 0, -1, 0)
    sequence = first if producer_id >= 0 else -1
    like = like._replace(
        producer_id=producer_id, base_sequence=sequence, is_transactional=transactional
    )
    data = bytearray(V2().build(records, codec, compress, like=like))
    log.append_as_follower(data)
    return next(batches(data))


def cleaned(log: Log) -> Sequence[Batch]:
    """The batches that a pass leaves."""
    roll(log)
    cleaning(log).run()
    assert [] == check_log(log.directory)
    return list(batches(log.read(log.log_start_offset, 1 << 20).bytes()))


def roll(log: Log) -> None:
    if log.log_end_offset > log.active_base_offset:
        log.roll()


def end(log: Log, producer_id: int, *, commits: bool) -> int:
    """Append a marker; returns its offset."""
    marker = TransactionEnd(producer_id, -1, commits, 1)
    made = marker_batch(marker, log.log_end_offset, 0, 1000)
    return log.append_prepared(*made).first_offset


@pytest.fixture
def records_log(open_log: OpenLog) -> Log:
    return open_log(**RECORDS)


RECORDS: dict[str, Any] = {
    "level": Level.V0_11_0,
    "message_format_version": "0.11.0",
    "cleanup_policy": "compact",
    "delete_retention_ms": 0,
}


def aborted(log: Log) -> list[tuple[int, int]]:
    """Producer id and marker of each entry of the indexes."""
    return [(one.producer_id, one.last_offset) for one in log.all_aborted()]


def test_an_aborted_transaction_goes_and_supersedes_nothing(records_log: Log) -> None:
    """Its keys do not count, also where it spans segments; those of a committed one do. The last
    batch stays without records, as that of any producer."""
    log = records_log
    append(log, (b"a", b"0"), (b"b", b"1"))
    append(log, (b"a", b"gone"), producer_id=7, transactional=True)
    append(log, (b"b", b"3"), producer_id=8, transactional=True)
    log.roll()
    append(log, (b"c", b"gone"), producer_id=7, transactional=True)
    end(log, 7, commits=False)
    end(log, 8, commits=True)
    found = cleaned(log)
    assert [(0, b"a", b"0"), (3, b"b", b"3")] == messages_of(log)
    assert [4] == [one.base_offset for one in found if not one.record_count]


def test_a_marker_goes_in_the_pass_after_its_batches(open_log: OpenLog) -> None:
    """As does the entry of the index, also in another segment than the batches; the log says the
    same of its producers when it is read from the start then: nobody waits for the transaction."""
    log = open_log(**RECORDS)
    append(log, (b"a", b"gone"), producer_id=7, transactional=True)
    append(log, (b"a", b"1"))
    log.roll()
    first = end(log, 7, commits=False)
    append(log, (b"z", b"next"), producer_id=7, transactional=True)
    later = end(log, 7, commits=True)
    append(log, (b"z", b"last"))
    batch = cleaned(log)
    assert [first, later] == [one.base_offset for one in batch if one.is_control]
    assert [(7, first)] == aborted(log)
    batch = cleaned_again(log)
    assert [later] == [one.base_offset for one in batch if one.is_control]
    assert [] == aborted(log)
    log.close()
    for snapshot in log.directory.glob("*.snapshot"):
        snapshot.unlink()
    log = open_log(**RECORDS)
    assert {} == log.records.producers.open_transactions


def test_a_transaction_over_segments_is_over_when_it_is_read_again(open_log: OpenLog) -> None:
    """Its marker is in a segment of its own. 0.11.0.3 removes it before its batches are gone, and
    readers of committed messages get no further after a recovery without snapshots."""
    log = open_log(**RECORDS)
    append(log, (b"a", b"1"), producer_id=7, transactional=True)
    log.roll()
    end(log, 7, commits=True)
    log.roll()
    append(log, (b"b", b"2"))
    for _ in range(3):
        cleaned(log)
    log.close()
    for snapshot in log.directory.glob("*.snapshot"):
        snapshot.unlink()
    log = open_log(**RECORDS)
    assert {} == log.records.producers.open_transactions
    assert [(0, b"a", b"1"), (2, b"b", b"2")] == messages_of(log)


def test_a_marker_stays_as_long_as_a_tombstone(open_log: OpenLog) -> None:
    """For delete.retention.ms a reader of its batches may still need it."""
    log = open_log(**RECORDS | {"delete_retention_ms": 1 << 40})
    append(log, (b"a", b"gone"), producer_id=7, transactional=True)
    first = end(log, 7, commits=False)
    append(log, (b"z", b"next"), producer_id=7, transactional=True)
    end(log, 7, commits=True)
    append(log, (b"z", b"last"))
    for _ in range(3):
        found = cleaned(log)
    assert first in [one.base_offset for one in found if one.is_control]
    assert [] == aborted(log)


def test_the_last_entry_of_a_producer_stays(records_log: Log) -> None:
    """Its epoch is in no other place; once the producer is forgotten everything goes."""
    log = records_log
    append(log, (b"a", b"gone"), producer_id=7, transactional=True)
    last = end(log, 7, commits=False)
    append(log, (b"z", b"last"))
    for _ in range(3):
        found = cleaned(log)
    assert [(0, False), (last, True)] == [(b.base_offset, b.is_control) for b in found][:2]
    log.records.producers.expire(1 << 60, 1)
    for _ in range(2):
        found = cleaned_again(log)
    assert [2] == [one.base_offset for one in found]


def run_cleaner(log: Log) -> None:
    """A pass up to the last stable offset, as a broker's."""
    stable = log.records.producers.last_stable_offset(log.log_end_offset, log.log_start_offset)
    cleaning(log, end_offset=stable).run()


def last_committed(log: Log) -> dict[bytes, bytes]:
    """Key → last value for a reader of committed messages: one that knows the aborted ones of what
    it has read."""
    found: dict[bytes, bytes] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, 1 << 20)
        content, dropped = memoryview(read.bytes()), set[int]()
        begun = [(one.producer_id, one.first_offset) for one in log.aborted_transactions(read)]
        if not content:
            break
        for batch in batches(content):
            offset = batch.last_offset + 1
            dropped |= {producer for producer, first in begun if first <= batch.last_offset}
            begun = [one for one in begun if one[1] > batch.last_offset]
            if batch.is_control:
                dropped.discard(batch.producer_id)
                continue
            if batch.is_transactional and batch.producer_id in dropped:
                continue
            for record in V2().records(content, batch, message_set.unpack):
                found[bytes(record.key or b"")] = bytes(record.value or b"")
    return found


@pytest.mark.parametrize("seed", range(20))
def test_readers_of_committed_messages_see_the_same(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """After drawn passes over drawn transactions of three producers, in drawn segments: the last
    committed value of each key, no aborted one, and no open transaction after a recovery."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # of hundreds of files
    draw = random.Random(seed)
    log = open_log(**RECORDS)
    pending: dict[int, list[KeyedValue]] = {7: [], 8: [], 9: []}
    for number in range(40):
        producer_id, key = draw.choice((7, 8, 9)), b"k%d" % draw.randrange(4)
        pair = key, b"%d" % number
        match draw.choice(("send", "send", "commit", "abort", "plain", "roll", "clean")):
            case "send":
                append(log, pair, producer_id=producer_id, transactional=True)
                pending[producer_id].append(pair)
            case "plain":
                append(log, pair)
            case "roll":
                roll(log)
            case "clean":
                run_cleaner(log)
            case end_by if pending[producer_id]:
                end(log, producer_id, commits=end_by == "commit")
                pending[producer_id] = []
    for producer_id, pairs in pending.items():
        if pairs:
            end(log, producer_id, commits=False)
    wanted = last_committed(log)
    for _ in range(3):
        append(log, (b"end", b""))
        roll(log)
        run_cleaner(log)
        assert wanted == {key: value for key, value in last_committed(log).items() if key != b"end"}
    log.close()
    for snapshot in log.directory.glob("*.snapshot"):
        snapshot.unlink()
    again = open_log(**RECORDS)
    assert {} == again.records.producers.open_transactions
    assert wanted == {key: value for key, value in last_committed(again).items() if key != b"end"}


@each_codec
def test_the_last_record_of_each_key_stays(open_log: OpenLog, codec: int) -> None:
    """A batch that shrinks keeps offsets, sequence, codec; one that does not keeps its bytes."""
    log = open_log()
    append(log, (b"a", b"1"), (b"b", b"2"), (b"a", b"3"), codec=codec, producer_id=7)
    second = append(log, (b"c", b"4"), (b"b", b"5"), codec=codec, producer_id=7)
    first, kept = cleaned(log)
    assert [(2, b"a", b"3"), (3, b"c", b"4"), (4, b"b", b"5")] == messages_of(log)
    assert (0, 2, 7, 0, codec, 1) == (
        *(first.base_offset, first.last_offset, first.producer_id, first.base_sequence),
        *(first.codec, first.record_count),
    )
    assert first.first_timestamp_ms == first.max_timestamp_ms == 1002
    assert second.crc == kept.crc


def test_the_last_batch_of_a_producer_stays_empty(open_log: OpenLog) -> None:
    """Its sequence number is in no other place; an earlier batch, and one without a producer, go.
    Readers pass it."""
    log = open_log(**RECORDS)
    append(log, (b"a", b"1"), producer_id=7)
    append(log, (b"a", b"2"), producer_id=7)
    append(log, (b"a", b"3"))
    append(log, (b"a", b"4"))
    empty, last = cleaned(log)
    assert (1, 1, 0, 7, 1) == (
        *(empty.base_offset, empty.last_offset, empty.record_count),
        *(empty.producer_id, empty.base_sequence),
    )
    assert 3 == last.base_offset
    assert [(3, b"a", b"4")] == messages_of(log)
    assert [empty, last] == cleaned_again(log)


def cleaned_again(log: Log) -> Sequence[Batch]:
    """As `cleaned`, of a log without news: the time of tombstones is over."""
    cleaning(log, log.active_base_offset).run()
    return list(batches(log.read(log.log_start_offset, 1 << 20).bytes()))


def test_a_record_without_a_key_is_dropped(open_log: OpenLog) -> None:
    """A compacted log has none."""
    log = open_log()
    append(log, (None, b"1"), (b"a", b"2"))
    append(log, (b"b", b"3"))
    cleaned(log)
    assert [1, 2] == [offset for offset, *_ in messages_of(log)]
