"""The cleaner on batches of records: one that shrinks keeps its place, its producer, its codec."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafka08.format import Batch, batches
from kafka08.format import Message as Record
from kafka08.format.v2 import V2
from kafka08.levels import Level
from kafka08.log import Log
from kafka08.log.check import check_log
from kafka08.log.coordinator_batches import marker_batch
from kafka08.log.producers import TransactionEnd
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
    log.roll()
    cleaning(log).run()
    assert [] == check_log(log.directory)
    return list(batches(log.read(log.log_start_offset, 1 << 20).bytes()))


def test_aborted_transactions_stay_in_the_index(open_log: OpenLog) -> None:
    """Of every segment that a pass replaces: their batches stay, and must not be read as
    committed."""
    log = open_log(level=Level.V0_11_0, message_format_version="0.11.0", cleanup_policy="compact")
    for producer_id in (7, 8):
        append(log, (b"a", b"%d" % producer_id), producer_id=producer_id, transactional=True)
        end = TransactionEnd(producer_id, -1, False, 1)
        log.append_prepared(marker_batch(end, log.log_end_offset, 0, 1000), from_client=False)
        log.roll()
    append(log, (b"a", b"last"))
    cleaned(log)
    assert 2 == log.segment_count
    found = log.aborted_transactions(log.read(0, 1 << 20))
    assert [(7, 0), (8, 2)] == [(one.producer_id, one.first_offset) for one in found]
    log.close()
    log = open_log(level=Level.V0_11_0, message_format_version="0.11.0", clean_shutdown=True)
    assert found == log.aborted_transactions(log.read(0, 1 << 20))


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
    log = open_log()
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
    cleaning(log).run()
    return list(batches(log.read(log.log_start_offset, 1 << 20).bytes()))


def test_transactions_stay_and_supersede_nothing(open_log: OpenLog) -> None:
    """Whether they were aborted is not known here."""
    log = open_log()
    append(log, (b"a", b"1"))
    append(log, (b"a", b"2"), producer_id=7, transactional=True)
    append(log, (b"b", b"3"))
    cleaned(log)
    assert [0, 1, 2] == [offset for offset, *_ in messages_of(log)]


def test_a_record_without_a_key_is_dropped(open_log: OpenLog) -> None:
    """A compacted log has none."""
    log = open_log()
    append(log, (None, b"1"), (b"a", b"2"))
    append(log, (b"b", b"3"))
    cleaned(log)
    assert [1, 2] == [offset for offset, *_ in messages_of(log)]
