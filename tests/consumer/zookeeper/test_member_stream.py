"""MemberStream: which messages are finished, what a revocation removes, what a reader gets."""

from __future__ import annotations

import threading
from functools import partial
from math import inf
from typing import Any

import pytest

from kafka08.consumer.fetching.owned_partition import Chunk
from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.errors import (
    ConsumerRebalanceFailed,
    ConsumerTimeout,
    InvalidMessage,
    MessageTooLarge,
)
from kafka08.kernel import MessageAndMetadata
from kafka08.protocol import message_set
from kafka08.runtime.threads import THREADS, ThreadRuntime
from kafka08.structs import TopicPartition
from tests.consumer.streams import (
    AllIsWell,
    chunk_of,
    elsewhere,
    partition_of,
    position_seen_by_others,
)
from tests.forking import in_child
from tests.mock_clock import MockClock


@pytest.fixture
def supervisor() -> AllIsWell:
    return AllIsWell()


@pytest.fixture
def stream(supervisor: AllIsWell) -> MemberStream:
    """A stream that returns at once when it has no messages."""
    return MemberStream(supervisor=supervisor, runtime=THREADS, timeout_ms=0)


def test_hands_out_whole_sets_in_order(stream: MemberStream) -> None:
    """Messages have the order of their sets. Compressed ones are unpacked, and nulls stay null."""
    partition = partition_of(stream)
    assert stream.offer(chunk_of(partition, b"a", b"b"))
    assert stream.offer(chunk_of(partition, b"c", codec=1))
    assert [(0, b"a"), (1, b"b"), (2, b"c")] == [(m.offset, m.value) for m in take(stream, 3)]


def test_sets_without_a_message_do_not_put_the_timeout_off(supervisor: AllIsWell) -> None:
    """consumer.timeout.ms ends a wait although sets without a message to return arrive."""
    clock, sets = MockClock(), 0

    def offer_another() -> None:
        nonlocal sets
        sets += 1
        clock.advance(0.01)
        assert sets < 1000, "the timeout never came"
        below = message_set.encode([(None, b"x")])
        start = partition.fetch_offset
        stream.offer(Chunk(partition, below, start, start + 1))

    stream = MemberStream(
        supervisor=supervisor,
        runtime=ThreadRuntime(clock=clock),
        timeout_ms=100,
        on_room=offer_another,
    )
    partition = partition_of(stream, offset=7)
    offer_another()
    with pytest.raises(ConsumerTimeout):
        next(stream)
    assert 10 <= sets < 20


def test_a_bomb_in_a_set_is_an_error(
    supervisor: AllIsWell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrapper that unpacks to more than the limit is an error, for messages and for batches."""
    monkeypatch.setattr(message_set, "MAX_UNPACKED_BYTES", 10_000)
    for fetch_bytes in (1000, 30_000):
        stream = MemberStream(
            supervisor=supervisor, runtime=THREADS, timeout_ms=0, fetch_bytes=fetch_bytes
        )
        partition = partition_of(stream)
        stream.offer(chunk_of(partition, b"x" * 20_000, codec=1))
        if fetch_bytes == 1000:
            with pytest.raises(InvalidMessage, match="10000 bytes allowed; a larger fetch size"):
                next(stream)
            partition.start_at(0)
            stream.offer(chunk_of(partition, b"x" * 20_000, codec=1))
            with pytest.raises(InvalidMessage, match="10000 bytes allowed"):
                next(stream.batches())
        else:
            assert len(next(stream).value or b"") == 20_000


def take(stream: MemberStream, count: int) -> list[MessageAndMetadata[Any, Any]]:
    return [next(stream) for _ in range(count)]


def test_a_message_is_finished_when_the_next_is_asked_for(stream: MemberStream) -> None:
    """Another thread commits up to the current message; the reading thread includes it."""
    partition = partition_of(stream)
    stream.offer(chunk_of(partition, b"a", b"b"))
    assert stream.position() is None
    next(stream)
    assert position_seen_by_others(stream) == 0
    assert stream.position() == (partition, 1)
    next(stream)
    assert position_seen_by_others(stream) == 1
    with pytest.raises(ConsumerTimeout):
        next(stream)
    assert stream.position() is None
    assert partition.consumed_offset == 2


def test_a_commit_by_the_reader_is_not_taken_back(stream: MemberStream) -> None:
    """Once the reading thread has committed the current message, it stays finished for every
    thread. (The commit of a later shutdown, in another thread, used to rewind the group by one.)"""
    partition = partition_of(stream)
    stream.offer(chunk_of(partition, b"a", b"b", b"c"))
    take(stream, 2)
    assert stream.position() == (partition, 2)
    assert position_seen_by_others(stream) == 2
    elsewhere(stream.close)
    assert partition.consumed_offset == 2


def test_nothing_handed_out_commits_nothing(stream: MemberStream) -> None:
    """A set that was not read yet does not move the position."""
    partition = partition_of(stream, offset=7)
    stream.offer(chunk_of(partition, b"a"))
    assert partition.consumed_offset == 7
    assert partition.fetch_offset == 8


def test_a_revocation_takes_all_but_the_current_message(stream: MemberStream) -> None:
    """After a revocation no message of the partition is returned, its position excludes the current
    message, and later sets are refused. Other partitions continue."""
    going, staying = partition_of(stream, 0), partition_of(stream, 1)
    stream.offer(chunk_of(going, b"a", b"b", b"c"))
    stream.offer(chunk_of(staying, b"x"))
    late = chunk_of(going, b"d")
    take(stream, 2)
    elsewhere(lambda: stream.revoke([going]))
    assert going.consumed_offset == 1
    assert next(stream).value == b"x"
    assert not stream.offer(late)
    with pytest.raises(ConsumerTimeout):
        next(stream)


def test_an_outdated_set_is_refused(stream: MemberStream) -> None:
    """A set that was fetched from another position than the present one is dropped."""
    partition = partition_of(stream)
    chunk = chunk_of(partition, b"a")
    assert stream.offer(chunk)
    assert not stream.offer(chunk)


def test_a_full_stream_signals_room(supervisor: AllIsWell) -> None:
    """A stream is full above its capacity, and signals when it has room again; before that it does
    not, for a fetcher looks at all of its partitions then."""
    told: list[int] = []
    stream = MemberStream(
        supervisor=supervisor,
        runtime=THREADS,
        capacity=1,
        on_room=lambda: told.append(1),
    )
    partition = partition_of(stream)
    rooms: list[object] = []
    for _ in range(3):
        stream.offer(chunk_of(partition, b"a"))
        rooms.append(stream.has_room)
    for _ in range(2):
        next(stream)
        rooms.append((stream.has_room, len(told)))
    assert rooms == [True, False, False, (False, 0), (True, 1)]


def test_delivery_stops_with_the_session(stream: MemberStream, supervisor: AllIsWell) -> None:
    """After the session's deadline no message is returned, also within a set. Later the stream
    continues where it stopped."""
    stream.offer(chunk_of(partition_of(stream), b"a", b"b"))
    next(stream)
    supervisor.until = -inf
    stream.pause()
    with pytest.raises(ConsumerTimeout):
        next(stream)
    supervisor.until = inf
    assert next(stream).value == b"b"


def test_the_age_of_the_session_is_checked_before_each_message(supervisor: AllIsWell) -> None:
    """The deadline is checked before each message, so it also stops a reader without a call of
    pause()."""
    clock = MockClock()
    stream = MemberStream(supervisor=supervisor, runtime=ThreadRuntime(clock=clock), timeout_ms=0)
    supervisor.until = clock.monotonic() + 0.05
    stream.offer(chunk_of(partition_of(stream), b"a", b"b"))
    next(stream)
    clock.advance(0.06)
    with pytest.raises(ConsumerTimeout):
        next(stream)


def test_a_stall_is_raised_once(stream: MemberStream, supervisor: AllIsWell) -> None:
    """Each stall raises its cause once, and iteration continues."""
    supervisor.stalls, supervisor.cause = 1, ConsumerRebalanceFailed("somebody holds [t,0]")
    with pytest.raises(ConsumerRebalanceFailed):
        next(stream)
    stream.offer(chunk_of(partition_of(stream), b"a"))
    assert next(stream).value == b"a"
    supervisor.stalls = 2
    with pytest.raises(ConsumerRebalanceFailed):
        next(stream)


def test_a_broken_message_is_raised_and_fetched_again(stream: MemberStream) -> None:
    """Sound messages are returned first. Then InvalidMessage has partition and offset, and the
    partition is fetched again from there. Nothing is skipped."""
    partition = partition_of(stream)
    data = bytearray(message_set.encode([(None, b"a"), (None, b"b")]))
    data[-1] ^= 1
    stream.offer(Chunk(partition, data, 0, 0, hold=True))
    assert next(stream).value == b"a"
    assert partition.held
    with pytest.raises(InvalidMessage, match=r"\[t,0\].*offset 1.*offsets set GROUP t:0=2"):
        next(stream)
    assert (partition.fetch_offset, partition.consumed_offset, partition.held) == (1, 1, False)
    stream.offer(Chunk(partition, message_set.encode([(None, b"b")], 0, 1), 1, 2))
    assert next(stream).value == b"b"


def damaged_set(count: int, damaged: int) -> bytearray:
    """Plain messages of one byte from offset 0 on. One of them has a wrong CRC."""
    data = bytearray(message_set.encode([(None, b"%d" % n) for n in range(count)]))
    data[(damaged + 1) * len(data) // count - 1] ^= 1
    return data


@pytest.mark.parametrize("in_batches", [False, True], ids=["messages", "batches"])
def test_a_damaged_message_may_be_skipped(stream: MemberStream, in_batches: bool) -> None:
    """After a skip the partition is fetched and committed from behind the damaged message. A set
    that was fetched from the message itself meanwhile is dropped."""
    partition = partition_of(stream)
    data = damaged_set(3, 1)
    stream.offer(Chunk(partition, data, 0, 0, hold=True))
    ask = partial(next, stream.batches() if in_batches else stream)
    ask()
    assert stream.skip_damaged() is None, "nothing was met yet"
    with pytest.raises(InvalidMessage):
        ask()
    assert stream.offer(Chunk(partition, data, 1, 1, hold=True))
    assert (TopicPartition("t", 0), 2) == stream.skip_damaged()
    assert stream.skip_damaged() is None, "each once"
    assert (2, 2, False) == (partition.fetch_offset, partition.consumed_offset, partition.held)
    stream.offer(Chunk(partition, data, 2, 3))
    ask()
    assert 3 == (partition.fetch_offset)


def test_nothing_is_skipped_that_was_read_or_taken_away(stream: MemberStream) -> None:
    """skip() does nothing if the message was sound when it was fetched again, or if the partition
    went to another member."""
    partition = partition_of(stream)
    stream.offer(Chunk(partition, damaged_set(2, 0), 0, 0, hold=True))
    with pytest.raises(InvalidMessage):
        next(stream)
    stream.offer(Chunk(partition, message_set.encode([(None, b"0"), (None, b"1")]), 0, 2))
    assert b"0" == next(stream).value
    assert stream.skip_damaged() is None
    assert b"1" == next(stream).value

    stream.offer(Chunk(partition, damaged_set(3, 2), 2, 2, hold=True))
    with pytest.raises(InvalidMessage):
        next(stream)
    stream.revoke([partition])
    assert stream.skip_damaged() is None
    assert 2 == partition.consumed_offset


def test_an_error_in_place_of_a_set(stream: MemberStream) -> None:
    """MessageTooLarge is raised in its turn. Afterwards the partition may be fetched again."""
    partition = partition_of(stream)
    stream.offer(chunk_of(partition, b"a"))
    stream.offer(Chunk(partition, b"", 1, 1, error=MessageTooLarge("[t,0] at 1"), hold=True))
    assert next(stream).value == b"a"
    with pytest.raises(MessageTooLarge):
        next(stream)
    assert (partition.fetch_offset, partition.held) == (1, False)


def test_a_decoder_error_is_raised_and_passed(supervisor: AllIsWell) -> None:
    """The reader gets a decoder's error. The message is not committed by it, and the next one
    follows."""
    stream = MemberStream(
        supervisor=supervisor,
        runtime=THREADS,
        timeout_ms=0,
        value_decoder=bytes.decode,
    )
    stream.offer(chunk_of(partition_of(stream), b"a", b"\xff", b"c"))
    assert next(stream).value == "a"
    with pytest.raises(UnicodeDecodeError):
        next(stream)
    assert position_seen_by_others(stream) in {0, 1}
    assert next(stream).value == "c"


@pytest.mark.parametrize("slow", [b"a", b"b"])
def test_a_slow_decoder_blocks_no_fetcher(
    supervisor: AllIsWell, monkeypatch: pytest.MonkeyPatch, slow: bytes
) -> None:
    """A slow decoder does not block fetchers, and blocks close() for at most FENCE_TIMEOUT_S, at
    the first message of a set too."""
    monkeypatch.setattr("kafka08.consumer.zookeeper.member_stream.FENCE_TIMEOUT_S", 0.01)
    entered, go = threading.Event(), threading.Event()

    def decode(value: bytes) -> bytes:
        if value == slow:
            entered.set()
            assert go.wait(60)
        return value

    stream = MemberStream(supervisor=supervisor, runtime=THREADS, value_decoder=decode)
    partition = partition_of(stream)
    stream.offer(chunk_of(partition, b"a", b"b"))
    reader = threading.Thread(target=list, args=(stream,), daemon=True)
    reader.start()
    assert entered.wait(60)
    try:
        assert elsewhere(lambda: stream.offer(chunk_of(partition, b"c")))
        elsewhere(stream.close)
    finally:
        go.set()
    reader.join(60)
    assert not reader.is_alive()


def test_a_decoder_cannot_end_the_iteration(supervisor: AllIsWell) -> None:
    """A StopIteration of a decoder is an error like any other, and later messages are read."""
    stream = MemberStream(
        supervisor=supervisor,
        runtime=THREADS,
        timeout_ms=0,
        value_decoder=lambda value: next(iter(value[1:])),
    )
    stream.offer(chunk_of(partition_of(stream), b"aa", b"b", b"cc"))
    assert next(stream).value == ord("a")
    with pytest.raises(RuntimeError, match="StopIteration"):
        next(stream)
    assert next(stream).value == ord("c")


def test_messages_that_are_gone_are_logged(
    stream: MemberStream, caplog: pytest.LogCaptureFixture
) -> None:
    """If a reset skips messages, a warning names the range when the reader gets there."""
    partition = partition_of(stream, offset=5)
    stream.offer(chunk_of(partition, b"a"))
    assert stream.reset(partition, 6, 100)
    assert partition.consumed_offset == 5
    stream.offer(chunk_of(partition, b"b"))
    assert [5, 100] == [m.offset for m in (next(stream), next(stream))]
    assert "[t,0]: messages from 6 to 99 are gone" in caplog.text


def test_a_reset_without_unread_sets_moves_the_committed_position(stream: MemberStream) -> None:
    """A reset without unread sets in between moves the committed position to the chosen one."""
    partition = partition_of(stream, offset=-1)
    assert stream.reset(partition, -1, 40)
    assert (partition.fetch_offset, partition.consumed_offset) == (40, 40)


@pytest.mark.parametrize("committed", [False, True])
def test_closing_ends_the_iteration(stream: MemberStream, committed: bool) -> None:
    """After close() a for loop ends, whatever is buffered. The current message is finished only if
    its reader committed it."""
    partition = partition_of(stream)
    stream.offer(chunk_of(partition, b"a", b"b"))
    for _ in stream:
        if committed:
            stream.position()
        stream.close()
    assert partition.consumed_offset == committed
    assert not stream.offer(chunk_of(partition, b"c"))


def test_a_readers_commit_is_not_undone(stream: MemberStream) -> None:
    """If the reader commits its current message, a later commit of another thread or a revocation
    does not undo it."""
    partition = partition_of(stream)
    stream.offer(chunk_of(partition, b"a", b"b"))
    next(stream)
    assert stream.position() == (partition, 1)
    assert position_seen_by_others(stream) == 1
    elsewhere(lambda: stream.revoke([partition]))
    assert partition.consumed_offset == 1


def test_closing_wakes_a_waiting_reader(supervisor: AllIsWell) -> None:
    """close() ends a read that waits without a timeout."""
    stream = MemberStream(supervisor=supervisor, runtime=THREADS)
    ended = threading.Event()

    def read() -> None:
        for _ in stream:
            pass
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    stream.close()
    assert ended.wait(60)


def test_positions_are_exact_however_a_revocation_falls(supervisor: AllIsWell) -> None:
    """After a revocation at any of fifty random moments, a running reader gets no further message,
    and the position is that of its current message."""
    for _ in range(50):
        stream = MemberStream(supervisor=supervisor, runtime=THREADS, timeout_ms=60_000)
        partition = partition_of(stream)
        stream.offer(chunk_of(partition, *([b"x"] * 5000)))
        seen: list[int] = []
        started, done = threading.Event(), threading.Event()

        def read(
            stream: MemberStream = stream,
            seen: list[int] = seen,
            started: threading.Event = started,
            done: threading.Event = done,
        ) -> None:
            for message in stream:
                seen.append(message.offset)
                started.set()
            done.set()

        threading.Thread(target=read, daemon=True).start()
        assert started.wait(60)
        stream.revoke([partition])
        position = partition.consumed_offset
        stream.close()
        assert done.wait(60)
        assert list(range(len(seen))) == seen
        assert position in {seen[-1], seen[-1] + 1}


def test_an_interrupt_loses_no_set(stream: MemberStream, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler that raises before a set is begun leaves it to the next request."""
    partition = partition_of(stream)
    for value in (b"a", b"b"):
        stream.offer(chunk_of(partition, value))
    assert next(stream).value == b"a"
    monkeypatch.setattr(stream, "_messages_of", raise_interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    monkeypatch.undo()
    assert next(stream).value == b"b"


def raise_interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_forked_process_gets_no_message_of_its_parent(stream: MemberStream) -> None:
    """Neither of the fetched ones, nor by an iterator that was made before: the parent returns
    them too."""
    stream.offer(chunk_of(partition_of(stream), b"a", b"b", b"c"))
    messages, batches = iter(stream), stream.batches()
    assert next(messages).value == b"a"
    for call in (lambda: next(messages), lambda: next(batches), lambda: next(stream)):
        assert in_child(call).startswith("RuntimeError: the threads and connections of this")
    assert next(messages).value == b"b"
