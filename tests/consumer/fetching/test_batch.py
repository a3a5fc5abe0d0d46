"""`stream.batches()` returns the same messages under the same commit rule, without an object per
message."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.consumer.fetching.batch import MessageBatch
from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.errors import ConsumerTimeout, InvalidMessage
from kafka08.protocol import message_set
from kafka08.runtime.threads import THREADS
from tests.consumer.streams import (
    AllIsWell,
    InterruptedExit,
    chunk_of,
    elsewhere,
    partition_of,
    position_seen_by_others,
)


def new_stream(supervisor: AllIsWell | None = None) -> MemberStream:
    """A stream that returns at once when it has no messages."""
    return MemberStream(
        supervisor=supervisor or AllIsWell(),
        runtime=THREADS,
        timeout_ms=0,
    )


@pytest.fixture
def stream() -> MemberStream:
    return new_stream()


def rows(batch: MessageBatch) -> list[tuple[int, bytes | None]]:
    return list(zip(batch.offsets, batch.values(), strict=True))


def rows_of_batches(stream: MemberStream, limit: int) -> Iterator[tuple[int, bytes | None]]:
    for batch in stream.batches(max_messages=limit):
        assert 1 <= len(batch) <= limit
        yield from rows(batch)


def rows_of_messages(stream: MemberStream) -> Iterator[tuple[int, bytes | None]]:
    for message in stream:
        yield message.offset, message.value


@given(
    sets=st.lists(
        st.tuples(st.sampled_from([0, 1, 2]), st.lists(st.binary(max_size=5), min_size=1)),
        max_size=4,
    ),
    limit=st.integers(1, 4),
)
def test_batches_have_the_messages_of_the_iterator(
    sets: list[tuple[int, list[bytes]]], limit: int
) -> None:
    """Batches have the offsets and values of the iterator, for any sets, codecs and limit."""
    handed_out = []
    for by_batch in (False, True):
        stream = new_stream()
        partition = partition_of(stream)
        found: list[tuple[int, bytes | None]] = []
        for codec, values in sets:
            assert stream.offer(chunk_of(partition, *values, codec=codec))
        read = rows_of_batches(stream, limit) if by_batch else rows_of_messages(stream)
        with suppress(ConsumerTimeout):
            found.extend(read)
        handed_out.append(found)
        assert partition.consumed_offset == sum(len(values) for _, values in sets)
    assert handed_out[0] == handed_out[1]


def test_guarantee_4_a_batch_is_finished_when_the_next_is_asked_for(stream: MemberStream) -> None:
    """Other threads commit up to the current batch; the reading thread includes it. What the
    reading thread has committed stays finished for every later commit."""
    partition = partition_of(stream)
    stream.offer(chunk_of(partition, b"a", b"b", b"c", b"d"))
    batches = stream.batches(max_messages=2)
    next(batches)
    assert position_seen_by_others(stream) == 0
    next(batches)
    assert position_seen_by_others(stream) == 2
    assert stream.position() == (partition, 4)
    assert position_seen_by_others(stream) == 4
    with pytest.raises(ConsumerTimeout):
        next(batches)
    assert stream.position() is None
    assert partition.consumed_offset == 4


def test_the_current_batch_stays_uncommitted_after_a_revocation(stream: MemberStream) -> None:
    """The rest of the set is not returned either. The next owner begins with the current batch."""
    partition = partition_of(stream)
    stream.offer(chunk_of(partition, b"a", b"b", b"c"))
    batches = stream.batches(max_messages=2)
    assert rows(next(batches)) == [(0, b"a"), (1, b"b")]
    elsewhere(lambda: stream.revoke([partition]))
    assert partition.consumed_offset == 0
    with pytest.raises(ConsumerTimeout):
        next(batches)


def test_batches_and_messages_in_turns(stream: MemberStream) -> None:
    """Batches and single messages continue behind each other, and each finishes the other's last
    one."""
    partition = partition_of(stream)
    stream.offer(chunk_of(partition, b"a", b"b", b"c", b"d", b"e"))
    batches = stream.batches(max_messages=2)
    assert next(stream).value == b"a"
    assert rows(next(batches)) == [(1, b"b"), (2, b"c")]
    assert position_seen_by_others(stream) == 1
    assert next(stream).value == b"d"
    assert position_seen_by_others(stream) == 3
    assert rows(next(batches)) == [(4, b"e")]


def test_nothing_is_handed_out_while_the_session_is_in_doubt() -> None:
    """No batch is returned while the session is in doubt, as with single messages. It follows when
    the session is certain again."""
    supervisor = AllIsWell()
    stream = new_stream(supervisor)
    stream.offer(chunk_of(partition_of(stream), b"a"))
    supervisor.until = 0.0
    with pytest.raises(ConsumerTimeout):
        next(stream.batches())
    supervisor.until = float("inf")
    assert rows(next(stream.batches())) == [(0, b"a")]


def test_damage_is_raised_behind_the_sound_messages(stream: MemberStream) -> None:
    """A damaged message is raised and never skipped: the partition is fetched again from it."""
    partition = partition_of(stream)
    data = bytearray(message_set.encode([(None, b"sound"), (None, b"broken")]))
    data[-1] ^= 1
    stream.offer(chunk_of(partition, b"x")._replace(data=bytes(data), next_offset=2, hold=True))
    batches = stream.batches()
    assert rows(next(batches)) == [(0, b"sound")]
    with pytest.raises(InvalidMessage):
        next(batches)
    assert (partition.consumed_offset, partition.fetch_offset) == (1, 1)


def test_batches_end_with_the_stream(stream: MemberStream) -> None:
    """After a shutdown batches() ends, also when it is called again."""
    batches = stream.batches()
    stream.close()
    assert list(batches) == []
    assert list(batches) == []


@pytest.mark.parametrize("limits", [(0, 1), (1, -1)])
def test_impossible_limits_are_refused(stream: MemberStream, limits: tuple[int, int]) -> None:
    """An illegal limit is an error of the call of batches(), not of the first batch."""
    with pytest.raises(ValueError, match="at least one message"):
        stream.batches(*limits)


def test_arrow_without_pyarrow_names_the_extra(
    stream: MemberStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain install has no pyarrow; the other columns need none."""
    stream.offer(chunk_of(partition_of(stream), b"x"))
    batch = next(stream.batches())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"to_arrow needs pyarrow: pip install 'kafka08\[arrow\]'"
    ):
        batch.to_arrow()
    assert [b"x"] == batch.values()


def test_a_batch_as_arrow(stream: MemberStream) -> None:
    """Offsets, keys and values are columns. Null differs from empty, and values are not copied."""
    pyarrow = pytest.importorskip("pyarrow")
    partition = partition_of(stream)
    chunk = chunk_of(partition, b"x", b"y", b"z")
    data = message_set.encode([(b"k", b"one"), (None, b""), (b"", None)])
    stream.offer(chunk._replace(data=data))
    batch = next(stream.batches())
    assert batch.to_arrow().to_pydict() == {
        "offset": [0, 1, 2],
        "key": [b"k", None, b""],
        "value": [b"one", b"", None],
    }
    assert (batch.keys(), batch.values()) == ([b"k", None, b""], [b"one", b"", None])
    assert batch.to_arrow().schema.types == [pyarrow.int64(), pyarrow.binary(), pyarrow.binary()]
    assert repr(batch) == "<MessageBatch [t,0]: 3 messages, offsets 0 to 2>"
    assert (batch.topic, batch.partition) == ("t", 0)


def test_an_interrupt_loses_no_batch(stream: MemberStream, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler that raises before the reader has a batch, while it is made or after it was
    handed out, leaves it to the next request; a commit after that is before it."""
    partition = partition_of(stream)
    stream.offer(chunk_of(partition, b"a", b"b", b"c", b"d"))
    batches = stream.batches(max_messages=1)
    assert next(batches).values() == [b"a"]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka08.consumer.fetching.stream.MessageBatch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    monkeypatch.undo()
    assert position_seen_by_others(stream) == 0
    assert next(batches).values() == [b"b"]
    monkeypatch.setattr(stream, "_condition", InterruptedExit(stream._condition))
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    monkeypatch.undo()
    assert stream.position() == (partition, 2)
    assert [next(batches).values(), next(batches).values()] == [[b"c"], [b"d"]]
    assert position_seen_by_others(stream) == 3
