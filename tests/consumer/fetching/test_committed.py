"""What a reader of committed messages gets of a fetched set."""

from __future__ import annotations

from struct import pack

from kafka08 import kernel
from kafka08.consumer.fetching.committed import committed
from kafka08.format import Message
from kafka08.format.batch import Batch
from kafka08.format.v2 import V2
from kafka08.kernel.types import CREATE_TIME
from kafka08.protocol.compression import GZIP
from kafka08.protocol.fetch import AbortedTransaction
from kafka08.protocol.record_batches import compress

ABORT, COMMIT = 0, 1


def batch(
    offset: int,
    *values: bytes,
    producer: int = -1,
    transactional: bool = True,
    codec: int = 0,
    control: int | None = None,
) -> bytes:
    """A batch of `producer` from `offset` on; `control`: the marker of this type."""
    if control is not None:
        values = (b"",)
    key = None if control is None else memoryview(pack(">hh", 0, control))
    messages = [
        Message(offset + n, key, memoryview(value), 1, CREATE_TIME)
        for n, value in enumerate(values)
    ]
    like = Batch(
        *(2, 0, 0, offset, offset + len(values) - 1, codec, CREATE_TIME, 1, 0),
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=transactional and producer >= 0,
        is_control=control is not None,
    )
    return V2().build(messages, codec, compress, like=like)


def shown(data: bytes, *aborted: tuple[int, int]) -> list[tuple[int, bytes | None]]:
    kept = committed(data, [AbortedTransaction(*one) for one in aborted])
    found = kernel.messages(kept, "t", 0, 0, lambda _, value: value)
    return [(message.offset, message.value) for message in found]


def test_an_aborted_transaction_is_left_out() -> None:
    """From its first offset to its marker, and no further; batches of others between them stay."""
    data = b"".join(
        (
            batch(0, b"a", producer=7),
            batch(1, control=COMMIT, producer=7),
            batch(2, b"b", b"c", producer=7),
            batch(4, b"d", producer=8),
            batch(5, b"e"),
            batch(6, b"f", producer=7, transactional=False),
            batch(7, b"g", producer=7),
            batch(8, control=ABORT, producer=7),
            batch(9, b"h", producer=7),
        )
    )
    assert shown(data, (7, 2)) == [(0, b"a"), (4, b"d"), (5, b"e"), (6, b"f"), (9, b"h")]


def test_the_list_comes_in_any_order() -> None:
    """Brokers return it unordered; each entry begins to count at its own first offset."""
    data = b"".join(
        (
            batch(0, b"a", producer=7),
            batch(1, control=ABORT, producer=7),
            batch(2, b"b", producer=7),
            batch(3, control=COMMIT, producer=7),
            batch(4, b"c", producer=7),
            batch(5, b"d", producer=8),
            batch(6, control=ABORT, producer=8),
            batch(7, control=ABORT, producer=7),
        )
    )
    assert shown(data, (7, 4), (8, 5), (7, 0)) == [(2, b"b")]


def test_a_commit_marker_does_not_end_an_aborted_transaction() -> None:
    """An aborted producer's batches are left out until its own abort marker."""
    data = (
        batch(0, b"a", producer=7)
        + batch(1, control=COMMIT, producer=8)
        + batch(2, b"b", producer=7)
    )
    assert shown(data, (7, 0)) == []


def test_without_an_aborted_batch_nothing_is_copied() -> None:
    """The data of most responses is handed on as it is."""
    data = batch(0, b"a", producer=7) + batch(1, b"b")
    assert committed(data, [AbortedTransaction(9, 0)]) is data


def test_a_compressed_control_batch_is_no_abort() -> None:
    """Its marker is not read: a broker writes none like it."""
    data = batch(0, control=ABORT, producer=7, codec=GZIP) + batch(1, b"a", producer=7)
    assert shown(data, (7, 0)) == []
