"""Producers of a partition: sequences, epochs, transactions, snapshots."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08 import kernel
from kafka08.errors import (
    ApiError,
    CorruptLog,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from kafka08.format import Batch, Message, batches, batches_of_producers
from kafka08.format.types import Buffer, CorruptMessage
from kafka08.format.v2 import V2
from kafka08.log import aborted_transactions, producer_snapshot
from kafka08.log.aborted_transactions import AbortedTransaction
from kafka08.log.producer_entries import encode_marker, producer_entries
from kafka08.log.producers import (
    SEQUENCE_MAX,
    UNREPLICATED_MAX,
    Marker,
    ProducerEntry,
    Producers,
    Repeated,
    SequencedBatch,
)
from kafka08.protocol import message_set
from kafka08.protocol.record_batches import compress

DATA = Path(__file__).parents[1] / "data"
LOGS = json.loads((DATA / "0.11-logs.json").read_text(encoding="utf-8"))
IDEMPOTENCE = json.loads((DATA / "0.11-idempotence.json").read_text(encoding="utf-8"))
PRODUCED = json.loads((DATA / "0.11-api-data.json").read_text(encoding="utf-8"))
COORDINATED = json.loads((DATA / "0.11-txn-coordinator.json").read_text(encoding="utf-8"))
NOW_MS = 1_800_000_000_000


def rebuilt(log: bytes) -> tuple[Producers, list[AbortedTransaction]]:
    """The producers of a log, as recovery reads it, and its aborted transactions."""
    producers, aborted = Producers(), []
    for one in producer_entries(log):
        if isinstance(one, Marker):
            entry = producers.append_marker(one, NOW_MS)
            aborted += [] if entry is None else [entry]
        else:
            producers.append(one, NOW_MS)
    return producers, aborted


def batch(sequence: int, offset: int, count: int = 1, **fields: Any) -> SequencedBatch:
    values = {"producer_id": 7, "epoch": 0, "max_timestamp_ms": 1000 + offset} | fields
    return SequencedBatch(
        base_sequence=sequence, base_offset=offset, last_offset=offset + count - 1, **values
    )


def marker(offset: int, *, commits: bool = True, **fields: Any) -> Marker:
    values = {"producer_id": 7, "epoch": 0, "coordinator_epoch": 0, "timestamp_ms": 5} | fields
    return Marker(commits=commits, offset=offset, **values)


class TestCaptured:
    @pytest.mark.parametrize("topic", ["v-idem", "v-idem2"])
    def test_every_answer_of_0_11_0_3(self, topic: str) -> None:
        """The captured batches in their order get the captured code, offset and timestamp. The one
        difference: the last but one of six batches is recognized here, and is 45 there."""
        producers, differences = Producers(), []
        for entry in PRODUCED:
            if not entry["name"].startswith("produce-idem") or topic != topic_of(entry):
                continue
            for sent in producer_entries(set_of(entry)):
                assert isinstance(sent, SequencedBatch)
                answer = entry["response"]["body"]["topics"][0]["parts"][0]
                theirs = (answer["err"], answer["offset"], answer["ts"])
                ours = answer_to(producers, sent, answer["offset"])
                if theirs != ours:
                    differences.append(entry["name"])
        recognized = {"v-idem": "duplicate-older", "v-idem2": "six-repeat-4"}
        assert [f"produce-idem-{recognized[topic]}"] == differences

    @pytest.mark.parametrize(
        "name", [name for name in LOGS if name.startswith("v-") and name != "v-misc2-0"]
    )
    def test_the_last_snapshot_of_each_log(self, name: str) -> None:
        """A log that is read from its start has the producers of the JVM's snapshot, and its
        aborted transactions are the JVM's index."""
        files = LOGS[name]
        logs = sorted(file for file in files if file.endswith(".log"))
        data = b"".join(bytes.fromhex(files[file]["hex"]) for file in logs)
        if data[16] != 2:
            return  # an older format has no producers
        producers, aborted = rebuilt(data)
        last = max(file for file in files if file.endswith(".snapshot"))
        theirs, _ = producer_snapshot.decode(bytes.fromhex(files[last]["hex"]))
        assert sorted(theirs) == sorted(producers.entries())
        indexes = sorted(file for file in files if file.endswith(".txnindex"))
        index = b"".join(bytes.fromhex(files[file]["hex"]) for file in indexes)
        assert index == b"".join(entry.encode() for entry in aborted)

    def test_markers_are_written_as_the_jvm_does(self) -> None:
        """The record of each captured marker is made of its result and its coordinator's epoch."""
        found = set()
        for files in LOGS.values():
            for file in files.values() if isinstance(files, dict) else ():
                for batch in file.get("decoded", ()) if isinstance(file, dict) else ():
                    for record in batch.get("records", ()) if isinstance(batch, dict) else ():
                        if "control" in record:
                            key, value = (bytes.fromhex(record[n]["hex"]) for n in ("key", "value"))
                            control = record["control"]
                            made = encode_marker(control["type"] == 1, control["coordinator_epoch"])
                            assert (key, value) == made
                            found.add(control["type"])
        assert {0, 1} == found

    def test_snapshots_are_written_as_the_jvm_does(self) -> None:
        """Each captured file is decoded and encoded back to its bytes."""
        found = [*snapshots(LOGS), *snapshots(IDEMPOTENCE["files"]), *snapshots(COORDINATED)]
        assert len(found) > 20
        for data in found:
            entries, batches = producer_snapshot.decode(data)
            assert batches is None
            assert data == producer_snapshot.encode(entries)

    def test_an_open_transaction_is_in_the_snapshot(self) -> None:
        """The captured snapshot of a clean stop holds the LSO at the transaction's first offset."""
        (data,) = snapshots(
            [one for one in COORDINATED if one["name"] == "snapshot-open-transaction"]
        )
        producers = producer_snapshot.decode_producers(data, NOW_MS)
        assert {9999: 3} == producers.open_transactions
        assert 3 == producers.last_stable_offset(5, 0)

    def test_a_restart_recognizes_the_last_batch(self) -> None:
        """As captured: the duplicate after a restart has the stored offset and timestamp."""
        files = IDEMPOTENCE["files"]["after clean stop"]
        data = bytes.fromhex(files["broker 1/f-one-0/00000000000000000006.snapshot"]["hex"])
        producers = producer_snapshot.decode_producers(data, NOW_MS)
        calls = {call["name"]: call for call in IDEMPOTENCE["calls"]}
        for name in ("one-dup-after-restart", "one-next-after-restart"):
            answer = calls[name]["response"]["body"]["topics"][0]["parts"][0]
            (sent,) = producer_entries(set_of(calls[name]))
            assert isinstance(sent, SequencedBatch)
            theirs = (answer["err"], answer["offset"], answer["ts"])
            assert theirs == answer_to(producers, sent, answer["offset"])


def topic_of(entry: Any) -> str:
    return str(entry["request"]["body"]["topics"][0]["topic"])


def set_of(entry: Any) -> bytes:
    """The set of a captured Produce request with one partition: its last bytes."""
    frame = bytes.fromhex(entry["request_hex"])
    stated = entry["request"]["body"]["topics"][0]["parts"][0]["set"]
    size = stated["len"] if "len" in stated else len(stated["hex"]) // 2
    return frame[len(frame) - size :]


def answer_to(producers: Producers, sent: SequencedBatch, offset: int) -> tuple[int, int, int]:
    """Code, offset and timestamp as in the response; `offset` is that of an append."""
    try:
        repeated = producers.check(sent)
    except ApiError as error:
        return error.code, -1, -1
    if repeated is not None:
        return 0, repeated.base_offset, repeated.max_timestamp_ms
    count = sent.last_offset - sent.base_offset
    producers.append(sent._replace(base_offset=offset, last_offset=offset + count), NOW_MS)
    return 0, offset, -1


def snapshots(node: Any) -> Iterator[bytes]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name.endswith(".snapshot") and isinstance(value, dict) and "hex" in value:
                yield bytes.fromhex(value["hex"])
            else:
                yield from snapshots(value)
    elif isinstance(node, list):
        for value in node:
            yield from snapshots(value)


class TestSequences:
    def test_five_batches_are_recognized(self) -> None:
        """As many as today's clients have in flight; an older one is out of order."""
        producers = Producers()
        for n in range(7):
            producers.append(batch(n, 10 + n), NOW_MS)
        for n in range(2, 7):
            assert Repeated(10 + n, 10 + n, 1010 + n) == producers.check(batch(n, 99))
        with pytest.raises(OutOfOrderSequence):
            producers.check(batch(1, 99))

    def test_a_part_of_a_batch_is_not_that_batch(self) -> None:
        """Nor is one that overlaps it, or leaves a gap behind it."""
        producers = Producers()
        producers.append(batch(0, 0, 5), NOW_MS)
        for sequence, count in ((0, 4), (1, 4), (3, 5), (6, 1)):
            with pytest.raises(OutOfOrderSequence):
                producers.check(batch(sequence, 9, count))
        assert producers.check(batch(5, 9, 2)) is None

    def test_sequences_begin_again_behind_the_largest(self) -> None:
        """2^31 - 1 is followed by 0, also within a batch."""
        producers = Producers()
        producers.append(batch(SEQUENCE_MAX - 1, 0, 4), NOW_MS)
        assert producers.check(batch(SEQUENCE_MAX - 1, 9, 4)) == Repeated(0, 3, 1000)
        assert producers.check(batch(2, 9)) is None
        with pytest.raises(OutOfOrderSequence):
            producers.check(batch(0, 9))

    @given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 3)), max_size=40))
    def test_the_log_has_each_record_once_and_in_order(self, sent: list[tuple[int, int]]) -> None:
        """Whatever batches arrive, and how often: what is appended has the sequences 0, 1, 2, …"""
        producers, log = Producers(), list[int]()
        for sequence, count in sent:
            wanted = batch(sequence, len(log), count)
            try:
                repeated = producers.check(wanted)
            except OutOfOrderSequence:
                continue
            if repeated is not None:
                at = repeated.base_offset
                assert log[at : at + count] == list(range(sequence, sequence + count))
                continue
            producers.append(wanted, NOW_MS)
            log += range(sequence, sequence + count)
        assert log == list(range(len(log)))

    def test_a_fenced_producer_is_refused(self) -> None:
        """A lower epoch is 47 whatever its sequence; a higher one begins with 0."""
        producers = Producers()
        producers.append(batch(0, 0, epoch=3), NOW_MS)
        with pytest.raises(InvalidProducerEpoch):
            producers.check(batch(0, 0, epoch=2))
        with pytest.raises(OutOfOrderSequence):
            producers.check(batch(1, 1, epoch=4))
        assert producers.check(batch(0, 1, epoch=4)) is None

    def test_time_of_arrival_decides_when_a_producer_is_forgotten(self) -> None:
        """One that writes old timestamps stays known; one with an open transaction, too."""
        producers = Producers()
        producers.append(batch(0, 0, max_timestamp_ms=0), NOW_MS)
        producers.append(batch(0, 1, producer_id=8, is_transactional=True), NOW_MS)
        assert [] == producers.expire(NOW_MS + 99, after_ms=100)
        assert [7] == producers.expire(NOW_MS + 100, after_ms=100)
        assert 8 in producers


class TestTransactions:
    def test_the_last_stable_offset_waits_for_the_marker_and_its_replication(self) -> None:
        """Open: its first offset. Ended: still that, until the HW has passed the marker."""
        producers = Producers()
        producers.append(batch(0, 4, 2, is_transactional=True), NOW_MS)
        assert 4 == producers.last_stable_offset(6, 0)
        assert producers.append_marker(marker(6), NOW_MS) is None
        producers.high_watermark_rose(6)
        assert 4 == producers.last_stable_offset(6, 0)
        producers.high_watermark_rose(7)
        assert 7 == producers.last_stable_offset(7, 0)

    def test_markers_that_nobody_asks_about_need_no_memory(self) -> None:
        """Readers of committed messages may never come. The first of them sees nothing of a
        transaction whose marker is not replicated, and all once the HW is at the end."""
        producers = Producers()
        ends = [2 * number + 1 for number in range(2 * UNREPLICATED_MAX + 10)]
        for end in ends:
            producers.append(batch(0, end - 1, is_transactional=True), NOW_MS)
            producers.append_marker(marker(end), NOW_MS)
        assert len(producers._unreplicated) <= UNREPLICATED_MAX
        for replicated in (0, UNREPLICATED_MAX, 2 * UNREPLICATED_MAX + 5):
            assert producers.last_stable_offset(ends[replicated], 0) <= ends[replicated] - 1
        end = ends[-1] + 1
        assert end == producers.last_stable_offset(end, 0)

    def test_a_plain_batch_in_an_open_transaction_is_refused(self) -> None:
        """It would be outside of the transaction of its own producer."""
        producers = Producers()
        producers.append(batch(0, 0, is_transactional=True), NOW_MS)
        with pytest.raises(InvalidTxnState):
            producers.check(batch(1, 1))

    def test_a_batch_before_the_marker_is_no_longer_a_repeated_one(self) -> None:
        """0.11.0.3 answers it as a duplicate of the marker, and the new record is lost."""
        producers = Producers()
        producers.append(batch(0, 0, is_transactional=True), NOW_MS)
        producers.append_marker(marker(1, commits=False), NOW_MS)
        producers.begin_transaction(7, 0)
        with pytest.raises(OutOfOrderSequence):
            producers.check(batch(0, 2, is_transactional=True))
        assert producers.check(batch(1, 2, is_transactional=True)) is None

    def test_a_transaction_begins_where_the_coordinator_says(self) -> None:
        """0.11.0.3 takes its first batch anywhere: one that comes after the marker opens a
        transaction that nobody ends."""
        producers = Producers()
        with pytest.raises(InvalidTxnState):
            producers.check(batch(0, 0, is_transactional=True))
        producers.begin_transaction(7, 0)
        assert producers.check(batch(0, 0, is_transactional=True)) is None
        producers.append(batch(0, 0, is_transactional=True), NOW_MS)
        producers.append_marker(marker(1), NOW_MS)
        with pytest.raises(InvalidTxnState):
            producers.check(batch(1, 2, is_transactional=True))

    def test_a_marker_that_comes_again_is_appended_once(self) -> None:
        """Its response may have been lost. Another result, or later data, is a new transaction."""
        producers = Producers()
        producers.append(batch(0, 0, is_transactional=True), NOW_MS)
        assert producers.check_marker(marker(1).end) is None
        producers.append_marker(marker(1), NOW_MS)
        assert producers.check_marker(marker(2).end) is not None
        assert producers.check_marker(marker(2, commits=False).end) is None
        producers.append(batch(1, 2, is_transactional=True), NOW_MS)
        assert producers.check_marker(marker(3).end) is None

    def test_former_coordinators_are_refused(self) -> None:
        """By the epoch of the producer, and by that of the coordinator."""
        producers = Producers()
        producers.append_marker(marker(0, epoch=2, coordinator_epoch=5), NOW_MS)
        with pytest.raises(InvalidProducerEpoch):
            producers.check_marker(marker(1, epoch=1, coordinator_epoch=6).end)
        with pytest.raises(TransactionCoordinatorFenced):
            producers.check_marker(marker(1, epoch=2, coordinator_epoch=4).end)

    def test_deleted_messages_end_a_transaction_but_not_a_producer(self) -> None:
        """A part that is left begins at the new start; the sequence goes on."""
        producers = Producers()
        producers.append(batch(0, 0, 4, is_transactional=True), NOW_MS)
        producers.log_start_rose(2)
        assert 2 == producers.last_stable_offset(4, 2)
        producers.log_start_rose(4)
        assert 4 == producers.last_stable_offset(4, 4)
        assert producers.check(batch(4, 4)) is None

    @given(
        st.lists(
            st.tuples(st.integers(1, 3), st.sampled_from(["data", "commit", "abort"])), max_size=30
        )
    )
    def test_readers_of_committed_messages_see_exactly_those(
        self, events: list[tuple[int, str]]
    ) -> None:
        """Below the LSO, the aborted list takes away the aborted messages and no others."""
        producers, log, index = Producers(), list[tuple[str, int]](), list[AbortedTransaction]()
        sequences, outcome = dict[int, int](), dict[int, str]()
        pending = dict[int, list[int]]()
        for producer_id, kind in events:
            offset = len(log)
            log.append((kind, producer_id))
            if kind == "data":
                sequence = sequences.get(producer_id, 0)
                sequences[producer_id] = sequence + 1
                producers.append(
                    batch(sequence, offset, producer_id=producer_id, is_transactional=True), NOW_MS
                )
                pending.setdefault(producer_id, []).append(offset)
            else:
                ended = marker(offset, commits=kind == "commit", producer_id=producer_id)
                entry = producers.append_marker(ended, NOW_MS)
                index += [] if entry is None else [entry]
                outcome |= dict.fromkeys(pending.pop(producer_id, []), kind)
        end = len(log)
        producers.high_watermark_rose(end)
        stable = producers.last_stable_offset(end, 0)
        assert stable == min((o for offsets in pending.values() for o in offsets), default=end)
        for start in range(stable):
            aborted = aborted_transactions.overlapping([index], start, stable)
            seen = committed(log, start, stable, aborted)
            assert seen == [o for o in range(start, stable) if outcome.get(o) == "commit"]


def committed(
    log: list[tuple[str, int]], start: int, end: int, aborted: list[AbortedTransaction]
) -> list[int]:
    """The offsets that a client shows: its algorithm."""
    waiting = sorted(aborted, key=lambda entry: entry.first_offset)
    skipped, seen = set[int](), []
    for offset in range(start, end):
        while waiting and waiting[0].first_offset <= offset:
            skipped.add(waiting.pop(0).producer_id)
        kind, producer_id = log[offset]
        if kind == "abort":
            skipped.discard(producer_id)
        elif kind == "data" and producer_id not in skipped:
            seen.append(offset)
    return seen


class TestFiles:
    entries = (
        ProducerEntry(7, 0, 4, 9, 1, 1000, -1, -1),
        ProducerEntry(8, 2, -1, 12, 0, 2000, 3, 10),
    )

    def test_a_damaged_snapshot_is_refused(self) -> None:
        """Cut anywhere, or with one bit changed."""
        data = producer_snapshot.encode(self.entries)
        for end in range(len(data)):
            with pytest.raises(CorruptLog):
                producer_snapshot.decode(data[:end])
        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 1
            with pytest.raises(CorruptLog):
                producer_snapshot.decode(damaged)

    def test_a_count_costs_nothing_before_it_is_checked(self) -> None:
        """A file of one producer that states two billion."""
        data = bytearray(producer_snapshot.encode(self.entries))
        data[6:10] = b"\x7f\xff\xff\xff"
        data[2:6] = kernel.crc32c(data[6:]).to_bytes(4, "big")
        with pytest.raises(CorruptLog, match="2147483647 producers"):
            producer_snapshot.decode(data)

    def test_an_index_ends_where_it_is_damaged(self) -> None:
        """A cut entry, another version, or a marker that is not behind the last one."""
        entries = [AbortedTransaction(7, 1, 3, 4), AbortedTransaction(8, 2, 6, 7)]
        data = b"".join(entry.encode() for entry in entries)
        assert entries == aborted_transactions.decode(data)
        assert entries[:1] == aborted_transactions.decode(data[:-1])
        assert entries[:1] == aborted_transactions.decode(data[:34] + b"\1" + data[35:])
        assert entries[:1] == aborted_transactions.decode(data[:34] + data)

    def test_a_damaged_log_is_an_error_of_the_log(self) -> None:
        """With any byte of a log with markers changed: other entries, or CorruptMessage."""
        data = bytes.fromhex(LOGS["v-txn-0"]["00000000000000000003.log"]["hex"])
        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 0xFF
            with suppress(CorruptMessage):
                list(producer_entries(damaged))


def test_batches_without_a_producer_are_passed_over() -> None:
    """What `batches` finds of producers, in a set of all formats that is cut or damaged anywhere;
    the same error."""
    form = V2()
    data = bytearray(message_set.encode([(b"k", b"v")], magic=1))
    for offset, producer_id in enumerate((-1, 7, -1, -1, 8, -1), 1):
        like = Batch(2, 0, 0, offset, offset, 0, 0, -1, 0)._replace(producer_id=producer_id)
        record = Message(offset, None, memoryview(b"value"), 1000, 0)
        data += form.build([record], 0, compress, like=like)
    rng = random.Random(5)
    for end in range(len(data) + 1):
        assert found_in(batches_of_producers, data[:end]) == found_in(batches, data[:end])
    for _ in range(3000):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] = rng.randrange(256)
        assert found_in(batches_of_producers, damaged) == found_in(batches, damaged)


def found_in(walk: Callable[[Buffer], Iterator[Batch]], data: bytearray) -> list[object]:
    found: list[object] = []
    try:
        for batch in walk(data):
            if batch.producer_id != -1:
                found.append(batch)
    except CorruptMessage as error:
        found.append(str(error))
    return found
