"""Record batches at the ends of segments: which the kernels append, and which they leave."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from kafka08.format import batch_at
from kafka08.format.v2 import V2, packed, place, stamp
from kafka08.kernel import _python, _python_producer
from kafka08.kernel.types import Rules
from tests.kernel.conftest import native_or_skip
from tests.kernel.sets import plain
from tests.kernel.tails import NOW_MS, File, a_tail, state

EPOCH = 3
RULES = Rules(magic=2)


class Records:
    """Lets `sequences` pass, and notes what was asked and appended."""

    def __init__(self, *sequences: int) -> None:
        self.sequences = sequences
        self.noted: list[tuple[Any, ...]] = []

    def batch(self, *fields: Any) -> tuple[Any, ...]:
        return fields

    def is_next(self, batch: tuple[Any, ...]) -> bool:
        return batch[2] in self.sequences

    def note_batch(self, batch: tuple[Any, ...], now_ms: int) -> None:
        self.noted.append((*batch, now_ms))


def a_batch(
    producer_id: int = -1, sequence: int = -1, *, times: tuple[int, ...] = (1000, 999)
) -> bytearray:
    values: list[bytes | None] = [b"v"] * len(times)
    data = _python_producer.build_from_lists(None, values, 0, len(times), 2, times)
    if producer_id != -1:
        stamp(data, producer_id, 5, sequence, is_transactional=True)
    return data


def batches_tail(kernel: ModuleType, file: File, **fields: Any) -> Any:
    return a_tail(kernel, file, **{"rules": RULES, "noted_epoch": EPOCH} | fields)


def append(kernel: ModuleType, tail: Any, data: bytearray, epoch: int = EPOCH) -> int:
    [base_offset] = kernel.append_plain(data, [tail], [0], [len(data)], NOW_MS, [epoch])
    return int(base_offset)


def test_a_batch_gets_its_offset_and_the_epoch(kernel: ModuleType) -> None:
    """Nothing else in it changes; the tail ends behind its last record, and has its largest
    timestamp, which the time index gives to the last record."""
    file, data = File(), a_batch()
    tail = batches_tail(kernel, file)
    expected = bytearray(data)
    place(expected, 40, EPOCH)
    assert 40 == append(kernel, tail, data)
    assert [(1000, bytes(expected))] == file.written
    assert (42, 1000 + len(data), 40) == (tail.end_offset, tail.size, tail.tail_offset)
    assert (1000, 41) == (tail.max_timestamp_ms, tail.max_timestamp_offset)


def test_the_next_batch_of_a_producer_is_noted(kernel: ModuleType) -> None:
    """With its fields as they are in the log."""
    records = Records(7)
    tail = batches_tail(kernel, File(), records=records)
    assert 40 == append(kernel, tail, a_batch(9, 7))
    assert [(9, 5, 7, 40, 41, 1000, True, NOW_MS)] == records.noted
    assert -1 == append(kernel, tail, a_batch(9, 8))
    assert 1 == len(records.noted)


LEFT: dict[str, tuple[bytearray, dict[str, Any]]] = {
    "the first batch of an epoch": (a_batch(), {"noted_epoch": EPOCH - 1}),
    "no epoch": (a_batch(), {"noted_epoch": -1}),
    "LogAppendTime": (a_batch(), {"rules": Rules(magic=2, log_append_time=True)}),
    "a timestamp out of bounds": (a_batch(), {"rules": Rules(magic=2, max_difference_ms=10)}),
    "a compressed batch": (packed(a_batch(), 1, b"zip"), {}),
    "two batches": (a_batch() + a_batch(), {}),
    "messages of magic 1": (bytearray(plain([(None, b"a")], magic=1)), {}),
    "a bad CRC": (a_batch()[:-1] + b"x", {}),
    "a batch that is too large": (a_batch(), {"max_entry_bytes": 60}),
    "an offset too far from the base": (a_batch(), {"base_offset": 41 - (1 << 31)}),
    "a segment that is too old": (a_batch(), {"first_ms": 1, "age_max_ms": 998}),
    "a segment that would be too large": (a_batch(), {"segment_bytes": 1000 + len(a_batch()) - 1}),
    "another sequence": (a_batch(9, 6), {"records": Records(7)}),
}


@pytest.mark.parametrize("reason", LEFT)
def test_batches_that_need_python_are_left(kernel: ModuleType, reason: str) -> None:
    """File and tail do not change, and the batch is one that a producer may send: at offset 0."""
    sent, fields = LEFT[reason]
    file, data = File(), bytearray(sent)
    tail = batches_tail(kernel, file, **fields)
    before = state(tail)
    assert -1 == append(kernel, tail, data)
    assert (before, []) == (state(tail), file.written)
    place(data, 0, -1)
    assert data[:8] + data[16:] == bytes(8) + sent[16:]


def test_a_failed_write_notes_nothing(kernel: ModuleType) -> None:
    """The batch is left as it was, for the owner to meet the error."""
    file, records, data = File(), Records(7), a_batch(9, 7)
    file.fails = True
    tail = batches_tail(kernel, file, records=records)
    before = state(tail)
    assert -1 == append(kernel, tail, data)
    assert (before, []) == (state(tail), records.noted)
    left = batch_at(data)
    assert left is not None
    assert 0 == left.base_offset


def test_a_caller_without_epochs_appends_no_batch(kernel: ModuleType) -> None:
    """And as many epochs as tails are needed."""
    data = a_batch()
    for epochs in (None, [-1]):
        tail = batches_tail(kernel, File(), noted_epoch=-1)
        assert [-1] == kernel.append_plain(data, [tail], [0], [len(data)], NOW_MS, epochs)
    with pytest.raises(ValueError):
        kernel.append_plain(data, [batches_tail(kernel, File())], [0], [len(data)], NOW_MS, [])


@pytest.mark.parametrize("seed", range(10))
def test_both_kernels_append_the_same_batches(seed: int) -> None:
    """Whole, damaged and cut ones, of producers and of none."""
    native, drawn = native_or_skip(), random.Random(seed)
    kernels = (native, _python)
    files = {kernel: File() for kernel in kernels}
    records = {kernel: Records(1, 2) for kernel in kernels}
    tails = {
        kernel: batches_tail(
            kernel, files[kernel], records=records[kernel], first_ms=500, age_max_ms=1500
        )
        for kernel in kernels
    }
    for _ in range(60):
        times = tuple(drawn.randrange(2100) for _ in range(drawn.randrange(1, 4)))
        sent = a_batch(drawn.choice([-1, -2, 9]), drawn.randrange(-1, 4), times=times)
        if drawn.random() < 0.3:
            sent[drawn.randrange(len(sent))] ^= 1 << drawn.randrange(8)
            if drawn.random() < 0.7:
                sent[17:21] = V2().checksum(sent[21:]).to_bytes(4, "big")
        if drawn.random() < 0.1:
            del sent[drawn.randrange(len(sent) + 1) :]
        found = []
        for kernel, tail in tails.items():
            data = bytearray(sent)
            found.append((append(kernel, tail, data), data))
        assert found[0] == found[1], sent.hex()
        fields = [{**state(tail), "records": None} for tail in tails.values()]
        assert fields[0] == fields[1]
    assert files[native].written == files[_python].written
    assert records[native].noted == records[_python].noted


def copied(offset: int, producer_id: int = -1, *, epoch: int = EPOCH, bits: int = 0) -> bytearray:
    """A batch as a leader has stored it."""
    data = a_batch(producer_id, 7)
    place(data, offset, epoch)
    if bits:
        data[V2.codec_position] |= bits
        data[V2.crc_position : V2.crc_start] = (
            V2().checksum(data[V2.crc_start :]).to_bytes(4, "big")
        )
    return data


def test_batches_of_a_leader_are_appended_and_noted(kernel: ModuleType) -> None:
    """As they are, several at once, a partial one at the end left out; producers in any sequence,
    since the leader has checked them."""
    file, records = File(), Records()
    tail = batches_tail(kernel, file, records=records)
    whole = copied(40) + copied(42, 9) + copied(45, 8)
    assert [True] == kernel.append_copies([tail], [whole + copied(47)[:-1]], NOW_MS)
    assert [(1000, bytes(whole))] == file.written
    assert (47, 1000 + len(whole), 40) == (tail.end_offset, tail.size, tail.tail_offset)
    noted = [(9, 5, 7, 42, 43, 1000, True, NOW_MS), (8, 5, 7, 45, 46, 1000, True, NOW_MS)]
    assert noted == records.noted


@pytest.mark.parametrize(
    "sets",
    {
        "a new epoch": copied(40) + copied(42, epoch=EPOCH + 1),
        "an older epoch": copied(40, epoch=EPOCH - 1),
        "a marker": copied(40) + copied(42, 9, bits=0x20),
        "an offset that is there": copied(39),
        "a bad CRC": copied(40) + copied(42)[:-1] + b"x",
    }.items(),
    ids=lambda one: one[0],
)
def test_batches_of_a_leader_that_need_python_are_left(
    kernel: ModuleType, sets: tuple[str, bytearray]
) -> None:
    """An epoch is on disk before its first batch; a marker has more to note. Nothing changes."""
    file, records = File(), Records()
    tail = batches_tail(kernel, file, records=records)
    before = state(tail)
    assert [False] == kernel.append_copies([tail], [sets[1]], NOW_MS)
    assert (before, [], []) == (state(tail), file.written, records.noted)
