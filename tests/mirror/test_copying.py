"""StreamCopier: what it takes off the stream, and when, by the responses of the target."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Sequence
from typing import Any, cast

import pytest

from kafka08 import kernel
from kafka08.client.metadata import PartitionInfo
from kafka08.consumer.fetching.batch import MessageBatch
from kafka08.errors import (
    ConsumerRebalanceFailed,
    ConsumerTimeout,
    KafkaError,
    NotLeaderForPartition,
    ProducerClosed,
    RecordTooLarge,
    TopicMissing,
    UnknownTopicOrPartition,
)
from kafka08.mirror import MirrorCounts, MirrorFailed, MirrorSettings, OnFailure, copying
from kafka08.mirror.copying import Interrupted, StreamCopier
from kafka08.mirror.outcome import Failures
from kafka08.mirror.stats import MirrorStats
from kafka08.protocol import compression, message_set
from kafka08.structs import TopicPartition

Pair = tuple[bytes | None, bytes | None]
PASSES = NotLeaderForPartition("[t,1]")
REFUSED = RecordTooLarge("too large")


def batch_of(*pairs: Pair, first_offset: int = 10, topic: str = "t") -> MessageBatch:
    data = kernel.build_set(list(pairs), first_offset)
    [columns] = kernel.column_batches(data, first_offset, None, message_set.unpack)
    return MessageBatch(TopicPartition(topic, 1), columns)


class FakeStream:
    """Hands out what it is given, raises errors, then ends; `log` notes when it is asked."""

    def __init__(self, log: list[object], *found: MessageBatch | Exception) -> None:
        self._log = log
        self._found = iter(found)

    def batches(self, *_: int) -> FakeStream:
        return self

    def __next__(self) -> MessageBatch:
        self._log.append("asked")
        found = next(self._found)
        if isinstance(found, Exception):
            raise found
        return found


class FakeTarget:
    """Answers each call with the next of `responses`; notes (topic, partition, keys, values)."""

    def __init__(self, log: list[object], *responses: Failures) -> None:
        self._log = log
        self._responses = iter(responses)
        self.times: list[Sequence[int | None] | None] = []

    def send_many(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        *,
        partition: int | None = None,
        timestamps: Sequence[int | None] | None = None,
    ) -> Outcome:
        self._log.append((topic, partition, keys, list(values)))
        self.times.append(timestamps)
        return Outcome(next(self._responses, ()))

    def partitions_for(self, topic: str) -> Sequence[PartitionInfo]:
        """The target has one partition of each topic, and no topic `deleted`."""
        if topic == "deleted":
            raise TopicMissing(f"no metadata of topic {topic}")
        return [PartitionInfo(0, 0, (0,), (0,))]


class Outcome:
    def __init__(self, failures: Failures) -> None:
        self._failures = failures

    def failures(self) -> Failures:
        return self._failures


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "RESEND_AFTER_S", 0)


def owned(_: TopicPartition) -> bool:
    return True


def run(
    found: Sequence[MessageBatch | Exception],
    *responses: Failures,
    settings: MirrorSettings = MirrorSettings(),
) -> tuple[list[object], MirrorCounts]:
    """The calls of stream and target, and the counts."""
    log: list[object] = []
    stats = MirrorStats()
    stream, target = FakeStream(log, *found), FakeTarget(log, *responses)
    StreamCopier(stream, target, settings, stats, threading.Event(), owned).run()  # type: ignore[arg-type]
    return log, stats.counts


def test_key_value_and_topic_are_kept() -> None:
    """Null keys and values are kept too; the target chooses the partition, unless the mirror keeps
    it."""
    batch = batch_of((b"k", b"v"), (None, None), (b"", b""))
    log, counts = run([batch])
    sent = [b"k", None, b""], [b"v", None, b""]
    assert ["asked", ("t", None, *sent), "asked"] == log
    assert (3, 2) == counts[:2]
    log, _ = run([batch], settings=MirrorSettings(keep_partitions=True))
    assert ("t", 1, *sent) == log[1]


@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP])
def test_timestamps_are_kept(codec: int) -> None:
    """A message is sent with its own, also when it is sent again; one without gets none. Batches of
    brokers before 0.10 have no timestamps at all."""
    messages = [(None, b"%d" % number) for number in range(3)]
    timed = message_set.encode(messages, codec, 10, magic=1, timestamps=[5, -1, 7])
    [columns] = kernel.column_batches(timed, 10, None, message_set.unpack, timestamps=True)
    batches = [MessageBatch(TopicPartition("t", 1), columns), batch_of((None, b"old"))]
    target = FakeTarget([], [([1, 2], PASSES)])
    stopping = threading.Event()
    stream: Any = FakeStream([], *batches)
    StreamCopier(stream, target, MirrorSettings(), MirrorStats(), stopping, owned).run()
    assert target.times == [[5, None, 7], [None, 7], None]


def test_the_next_batch_is_asked_for_behind_the_acknowledgement() -> None:
    """For that is what declares this one finished, and commits it."""
    one, two = batch_of((None, b"1"), (None, b"2")), batch_of((None, b"3"))
    log, counts = run([one, two], [([1], PASSES)])
    assert [
        "asked",
        ("t", None, None, [b"1", b"2"]),
        ("t", None, None, [b"2"]),
        "asked",
        ("t", None, None, [b"3"]),
        "asked",
    ] == log
    assert (3, 1) == (counts.messages, counts.resent)


def test_places_are_those_of_the_batch_however_often_it_is_sent() -> None:
    """A second failure counts from what the second call sent."""
    batch = batch_of(*[(b"k", b"%d" % n) for n in range(5)])
    log, _ = run([batch], [([2], PASSES)], [([1], PASSES)])
    assert [b"2", b"3", b"4"] == log[2][3]  # type: ignore[index]
    assert [b"3", b"4"] == log[3][3]  # type: ignore[index]


def test_a_refused_message_ends_the_mirror() -> None:
    """The error has partition and offset; the mirror requests no further batch, so this one stays
    uncommitted."""
    log: list[object] = []
    stream = FakeStream(log, batch_of((None, b"1"), (None, b"2")), batch_of((None, b"3")))
    target = FakeTarget(log, [([1], REFUSED)])
    copier = StreamCopier(
        stream,  # type: ignore[arg-type]
        target,
        MirrorSettings(),
        MirrorStats(),
        threading.Event(),
        owned,
    )
    with pytest.raises(MirrorFailed, match=r"\[t,1\]: the target refused 1 messages, offsets 11:"):
        copier.run()
    assert 1 == log.count("asked")


def test_a_refused_message_is_skipped_if_that_is_wanted() -> None:
    """It is counted, and those around it are copied."""
    settings = MirrorSettings(on_failure=OnFailure.SKIP)
    batches = [batch_of((None, b"1"), (None, b"2")), batch_of((None, b"3"))]
    _, counts = run(batches, [([1], REFUSED)], settings=settings)
    assert (2, 1) == (counts.messages, counts.skipped)


def test_the_bytes_of_skipped_messages_are_not_counted() -> None:
    """The bytes are those of copied messages."""
    settings = MirrorSettings(on_failure=OnFailure.SKIP)
    batch = batch_of((b"k", b"one"), (b"large key", b"large value"), (None, None), (None, b"two"))
    _, counts = run([batch], [([1], REFUSED)], settings=settings)
    assert (3, 7) == (counts.messages, counts.bytes)


def test_messages_refused_together_are_tried_one_by_one() -> None:
    """A leader refuses the whole set, so only the invalid message is skipped."""
    settings = MirrorSettings(on_failure=OnFailure.SKIP)
    batch = batch_of(*[(None, b"%d" % n) for n in range(4)])
    log, counts = run([batch], [([1, 2], REFUSED)], [], [([0], REFUSED)], settings=settings)
    assert [[b"1"], [b"2"]] == [sent[3] for sent in log[2:4]]  # type: ignore[index]
    assert (3, 1) == (counts.messages, counts.skipped)


def test_a_leaderless_partition_does_not_multiply_the_messages_of_healthy_ones() -> None:
    """Of three keys one fails again and again: the others are sent once."""
    batch = batch_of((b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"b", b"4"))
    log, counts = run([batch], [([1], PASSES)], [([0, 1], PASSES)], [([0, 1], PASSES)])
    assert [sent[3] for sent in log[2:-1]] == [[b"2", b"4"]] * 3  # type: ignore[index]
    assert (4, 6) == (counts.messages, counts.resent)


def test_the_order_of_a_kept_partition_is_that_of_all_its_messages() -> None:
    """What was stored behind a failure is sent again, whatever its key."""
    batch = batch_of((b"a", b"1"), (b"b", b"2"), (b"c", b"3"))
    log, _ = run([batch], [([1], PASSES)], settings=MirrorSettings(keep_partitions=True))
    assert [b"2", b"3"] == log[2][3]  # type: ignore[index]


@pytest.mark.parametrize("keep_partitions", [False, True])
def test_a_topic_that_is_deleted_at_the_target_stops_no_other(keep_partitions: bool) -> None:
    """The leaders call its partitions unknown, and then the metadata has it no more. (The mirror
    sent that batch again for ever, or ended with the error of the look-up.)"""
    gone, good = batch_of((b"a", b"1"), topic="deleted"), batch_of((b"c", b"3"), topic="good")
    unknown = UnknownTopicOrPartition("[deleted,1]")
    settings = MirrorSettings(on_failure=OnFailure.SKIP, keep_partitions=keep_partitions)
    _, counts = run([gone, good], [([0], unknown)], settings=settings)
    assert (counts.messages, counts.skipped) == (1, 1)


def test_an_error_that_is_kept_keeps_no_batch() -> None:
    """That of a missing topic is remembered for a minute: by its traceback it kept the messages of
    each such topic, for good."""

    class Messages(list[bytes]):
        pass

    def failed(messages: Messages) -> TopicMissing:
        try:
            raise TopicMissing(f"{len(messages)} messages")
        except TopicMissing as error:
            return error

    messages = Messages([b"1"])
    lost, error = weakref.ref(messages), failed(messages)
    settings = MirrorSettings(on_failure=OnFailure.SKIP)
    target, none = FakeTarget([], [([0], error)]), cast("Any", None)
    copier = StreamCopier(none, target, settings, MirrorStats(), none, owned)
    copier.copy(batch_of((b"a", b"1")))
    del messages, error, target._responses
    gc.collect()
    assert lost() is None
    assert copier._missing


@pytest.mark.parametrize("keep_partitions", [False, True])
def test_a_topic_that_the_target_has_not_stops_no_other(keep_partitions: bool) -> None:
    """Its messages are skipped and counted if that is wanted, and sent no more for a while: each
    try takes max.block.ms. (The mirror tried them for ever, and copied nothing else.)"""
    lost, good = batch_of((b"a", b"1"), (b"b", b"2")), batch_of((b"c", b"3"), topic="good")
    error: KafkaError = TopicMissing("no metadata of topic t")
    if keep_partitions:
        error = UnknownTopicOrPartition("[t,1]: the topic has 1 partition")
    settings = MirrorSettings(on_failure=OnFailure.SKIP, keep_partitions=keep_partitions)
    log, counts = run([lost, good, lost], [([0, 1], error)], settings=settings)
    assert [sent[0] for sent in log if sent != "asked"] == ["t", "good"]  # type: ignore[index]
    assert (counts.messages, counts.skipped) == (1, 4)
    with pytest.raises(MirrorFailed, match="create t at the target"):
        run([lost], [([0, 1], error)], settings=MirrorSettings(keep_partitions=keep_partitions))


@pytest.mark.parametrize(
    "error", [ConsumerTimeout("silence"), ConsumerRebalanceFailed("still trying")]
)
def test_a_quiet_or_stalled_source_is_waited_for(error: Exception) -> None:
    """The member keeps trying by itself; what comes then is copied."""
    _, counts = run([error, batch_of((None, b"1"))])
    assert 1 == counts.messages


def test_messages_of_a_lost_partition_are_not_sent_late() -> None:
    """The target fails once, and the partition is lost meanwhile. Sent again, the messages would
    come behind newer ones that the other member has copied."""
    log: list[object] = []
    stats = MirrorStats()
    responses = [True, False]
    stream = FakeStream(log, batch_of((None, b"1"), (None, b"2")))
    target = FakeTarget(log, [([0, 1], PASSES)])
    StreamCopier(
        stream,  # type: ignore[arg-type]
        target,
        MirrorSettings(),
        stats,
        threading.Event(),
        lambda _: responses.pop(0),
    ).run()
    assert ["asked", ("t", None, None, [b"1", b"2"]), "asked"] == log
    assert 0 == stats.counts.messages


def test_a_stop_while_the_target_is_asked_for_its_partitions_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That takes up to max.block.ms, and the stop closes the producer meanwhile: the mirror ended
    with an error."""

    def closed(*_: object) -> Sequence[PartitionInfo]:
        raise ProducerClosed("the producer is closed")

    monkeypatch.setattr(FakeTarget, "partitions_for", closed)
    target = FakeTarget([], [([0], UnknownTopicOrPartition("[t,1]"))])
    copier = StreamCopier(
        FakeStream([]),  # type: ignore[arg-type]
        target,
        MirrorSettings(),
        MirrorStats(),
        threading.Event(),
        owned,
    )
    with pytest.raises(Interrupted):
        copier.copy(batch_of((None, b"1")))


@pytest.mark.parametrize("settings", [MirrorSettings(), MirrorSettings(on_failure=OnFailure.SKIP)])
@pytest.mark.parametrize("failure", [PASSES, ProducerClosed("closed")])
def test_a_stop_leaves_an_unacknowledged_batch(
    settings: MirrorSettings, failure: KafkaError
) -> None:
    """It is neither committed nor skipped: the producer was closed under it, or it was to wait."""
    stopping, stats = threading.Event(), MirrorStats()
    stopping.set()
    target = FakeTarget([], [([0], failure)])
    stream = FakeStream([])
    copier = StreamCopier(stream, target, settings, stats, stopping, owned)  # type: ignore[arg-type]
    with pytest.raises(Interrupted):
        copier.copy(batch_of((None, b"1")))
    assert MirrorCounts() == stats.counts
