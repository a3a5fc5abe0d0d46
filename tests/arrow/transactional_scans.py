"""What a scan of committed messages has, on brokers of any release that has transactions."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kafka08.arrow import OffsetRange, scan
from kafka08.arrow.settings import ReadSettings
from kafka08.errors import RequestTimeout
from kafka08.producer import KafkaProducer, ProducerRecord
from tests.integration.transactional import producer_on
from tests.waiting import until

COMMITTED = ReadSettings(isolation_level="read_committed", fetch_wait_ms=100)
UNCOMMITTED = ReadSettings()
HASTY = replace(COMMITTED, poll_timeout_ms=1500)


def offsets_and_values(
    bootstrap: str,
    topic: str,
    settings: ReadSettings = COMMITTED,
    ranges: list[OffsetRange] | None = None,
) -> list[tuple[int, bytes]]:
    topics = topic if ranges is None else ()
    columns = ["offset", "value"]
    with scan(bootstrap, topics, ranges=ranges, columns=columns, settings=settings) as found:
        return [(row["offset"], row["value"]) for batch in found for row in batch.to_pylist()]


def send(producer: KafkaProducer, topic: str, *values: bytes) -> None:
    """One batch each, all acknowledged."""
    for value in values:
        producer.send(ProducerRecord(topic, value, partition=0)).result(30)


def await_end(bootstrap: str, topic: str, offset: int, settings: ReadSettings = COMMITTED) -> None:
    """Until scans end at `offset`: the coordinator says that a transaction has ended before its
    markers are written."""

    def ends() -> bool:
        with scan(bootstrap, topic, settings=settings) as found:
            return [r.until_offset for r in found.ranges] == [offset]

    until(ends, f"the end {offset}")


def begun(bootstrap: str, topic: str, name: str) -> KafkaProducer:
    """A producer in its first transaction."""
    producer = producer_on(bootstrap, f"{topic}-{name}")
    producer.init_transactions()
    producer.begin_transaction()
    return producer


def aborted_messages_are_left_out(bootstrap: str, topic: str) -> None:
    """Messages of aborted transactions are in no batch, also where they lie among those of others
    and a range begins or ends inside of one; a scan of uncommitted messages has them."""
    with begun(bootstrap, topic, "aborts") as aborts, begun(bootstrap, topic, "commits") as commits:
        send(aborts, topic, b"a0", b"a1")
        send(commits, topic, b"c2")
        send(aborts, topic, b"a3")
        aborts.abort_transaction(30)
        await_end(bootstrap, topic, 5, UNCOMMITTED)  # the marker is 4
        send(commits, topic, b"c5", b"c6")
        commits.commit_transaction(30)
        await_end(bootstrap, topic, 8)
        aborts.begin_transaction()
        send(aborts, topic, b"a8", b"a9")
        aborts.abort_transaction(30)  # 10
        aborts.begin_transaction()
        send(aborts, topic, b"c11")
        aborts.commit_transaction(30)  # 12
    await_end(bootstrap, topic, 13)
    kept = [(2, b"c2"), (5, b"c5"), (6, b"c6"), (11, b"c11")]
    everything = [(at, b"a%d" % at) for at in (0, 1, 3, 8, 9)] + kept
    assert offsets_and_values(bootstrap, topic) == kept
    assert offsets_and_values(bootstrap, topic, UNCOMMITTED) == sorted(everything)
    for start, end in [(1, 3), (3, 6), (4, 13), (8, 10), (9, 12), (12, 13)]:
        ranges = [OffsetRange(topic, 0, start, end)]
        wanted = [(offset, value) for offset, value in kept if start <= offset < end]
        assert offsets_and_values(bootstrap, topic, ranges=ranges) == wanted
    many = [OffsetRange(topic, 0, at, at + 1) for at in range(13)]
    assert offsets_and_values(bootstrap, topic, ranges=many) == kept


def the_end_is_the_first_open_transaction(bootstrap: str, topic: str) -> None:
    """A scan ends at the first open transaction, also by a time behind it; the next one, after its
    commit, has the rest."""
    with begun(bootstrap, topic, "early") as early, begun(bootstrap, topic, "open") as still_open:
        send(early, topic, b"0")
        send(still_open, topic, b"1")
        send(early, topic, b"2")
        early.commit_transaction(30)
        await_end(bootstrap, topic, 1)
        assert offsets_and_values(bootstrap, topic) == [(0, b"0")]
        later = datetime(2100, 1, 1, tzinfo=UTC)
        with scan(bootstrap, topic, end=later, settings=COMMITTED) as found:
            assert [r.until_offset for r in found.ranges] == [1]
        still_open.commit_transaction(30)
    await_end(bootstrap, topic, 5)
    assert offsets_and_values(bootstrap, topic) == [(0, b"0"), (1, b"1"), (2, b"2")]


def an_end_behind_an_open_transaction_waits(bootstrap: str, topic: str) -> None:
    """A range that ends behind an open transaction waits for its end. If that does not come in time
    the error says what is open; nothing is passed over, whatever failOnDataLoss says."""
    ranges = [OffsetRange(topic, 0, 0, 3)]
    with begun(bootstrap, topic, "open") as producer:
        send(producer, topic, b"0", b"1", b"2")
        for settings in (HASTY, replace(HASTY, fail_on_data_loss=False)):
            with pytest.raises(RequestTimeout, match=r"transaction is open at offset 0.*ends at 3"):
                offsets_and_values(bootstrap, topic, settings, ranges)
        commit = threading.Timer(0.5, producer.commit_transaction, [30])
        commit.start()
        assert offsets_and_values(bootstrap, topic, ranges=ranges) == [
            (0, b"0"),
            (1, b"1"),
            (2, b"2"),
        ]
        commit.join()


SCENARIOS = [
    aborted_messages_are_left_out,
    the_end_is_the_first_open_transaction,
    an_end_behind_an_open_transaction_waits,
]
