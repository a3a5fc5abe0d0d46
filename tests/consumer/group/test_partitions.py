"""Which partitions are read, from where, and what a search for positions may change."""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import cast

from kafka08.consumer.fetching.fetcher_manager import FetcherManager
from kafka08.consumer.fetching.owned_partition import OwnedPartition, Position
from kafka08.consumer.group.committer import Offsets
from kafka08.consumer.group.partitions import Partitions, Start
from kafka08.consumer.group.polled_stream import PolledStream
from kafka08.runtime.threads import THREADS
from kafka08.structs import NO_LEADER_EPOCH, OffsetAndMetadata, TopicPartition
from tests.consumer.streams import chunk_of

A, B, C = (TopicPartition("t", number) for number in range(3))


class Begun(list[OwnedPartition]):
    """In the place of the fetchers: what they were told to fetch."""

    def begin(self, partitions: Collection[OwnedPartition]) -> None:
        self.extend(partitions)


def partitions_of(*assigned: TopicPartition) -> tuple[Partitions, PolledStream, Begun]:
    begun = Begun()
    stream = PolledStream(
        runtime=THREADS,
        fetch_bytes=1024,
        key_deserializer=None,
        value_deserializer=None,
        on_room=lambda: None,
    )
    partitions = Partitions(stream, cast(FetcherManager, begun), 1024)
    partitions.replace(assigned)
    return partitions, stream, begun


def found(partitions: Partitions, **offsets: int) -> None:
    """The search for all that is missing has ended."""
    positions = {TopicPartition("t", int(name[1:])): Position(at) for name, at in offsets.items()}
    partitions.found(positions, partitions.missing())


def test_a_position_that_was_reset_during_a_search_is_searched_again() -> None:
    """The result of the search belongs to the position before the reset."""
    partitions, _, begun = partitions_of(A)
    asked = partitions.missing()
    partitions.reset([A], Start.LATEST)
    partitions.found({A: Position(5)}, asked)
    assert partitions.position(A) is None
    assert partitions.missing() == {A: Start.LATEST}
    assert begun == []


def test_a_position_that_was_set_during_a_search_stays() -> None:
    """A seek during a search wins over the position that the search finds."""
    partitions, _, begun = partitions_of(A)
    asked = partitions.missing()
    partitions.seek({A: Position(7)})
    partitions.found({A: Position(5)}, asked)
    assert partitions.position(A) == 7
    assert [one.fetch_offset for one in begun] == [7]


def test_partitions_that_are_assigned_again_keep_their_position() -> None:
    """They are not fetched again. New partitions are looked up, and removed ones forgotten."""
    partitions, stream, begun = partitions_of(A)
    found(partitions, p0=3)
    assert stream.offer(chunk_of(begun[0], b"x"))
    stream.take(1, 0.0)
    epoch = partitions.epoch
    partitions.replace([A, B])
    assert partitions.epoch > epoch
    assert partitions.positions() == {A: 4}
    assert partitions.missing() == {B: Start.COMMITTED}
    partitions.replace([B])
    assert list(partitions) == [B]
    assert begun[0].revoked


def test_a_paused_partition_begins_when_it_is_resumed() -> None:
    """Where it was, also if a seek came in between."""
    partitions, _, begun = partitions_of(A)
    found(partitions, p0=3)
    partitions.pause([A])
    assert begun[0].revoked
    assert partitions.position(A) == 3
    partitions.seek({A: Position(9)})
    assert len(begun) == 1
    partitions.resume([A])
    assert [one.fetch_offset for one in begun] == [3, 9]


def test_current_messages_are_not_finished() -> None:
    """They are finished once the stream says so; the position is behind them."""
    partitions, stream, begun = partitions_of(A, B)
    found(partitions, p0=3, p1=0)
    assert stream.offer(chunk_of(begun[0], b"x", b"y"))
    stream.take(9, 0.0)
    assert partitions.positions() == {A: 5, B: 0}
    assert partitions.finished() == {A: 3, B: 0}
    stream.finish()
    assert partitions.finished() == {A: 5, B: 0}


def test_a_position_keeps_what_is_known_of_its_epochs() -> None:
    """Over a pause, and over a return to messages that are not finished; a seek forgets it."""
    partitions, stream, begun = partitions_of(A)
    partitions.found({A: Position(4, epoch=1)}, partitions.missing())
    begun[0].led_in(3)
    assert begun[0].unchecked
    stream.confirm(begun[0], 4)
    partitions.pause([A])
    partitions.resume([A])
    begun[1].led_in(3)
    assert not begun[1].unchecked, "the same leader has confirmed it"
    partitions.read_again({A: 2})
    assert (begun[2].fetch_offset, begun[2].fetch_epoch, begun[2].checked_epoch) == (2, 1, 3)
    partitions.seek({A: Position(7)})
    assert (begun[3].fetch_offset, begun[3].fetch_epoch) == (7, NO_LEADER_EPOCH)


def test_offsets_of_a_commit_get_the_epoch_of_the_position() -> None:
    """Up to the position; others, and those that have one, are committed as they are."""
    partitions, stream, begun = partitions_of(A, B)
    found(partitions, p0=0, p1=9)
    stream.offer(chunk_of(begun[0], b"a", b"b")._replace(epoch=5))
    assert stream.take(2, -inf)
    offsets = {
        A: OffsetAndMetadata(2, "a"),
        B: OffsetAndMetadata(9),
        C: OffsetAndMetadata(1),
    }
    assert epochs(partitions.with_epochs(offsets)) == {A: 5, B: NO_LEADER_EPOCH, C: NO_LEADER_EPOCH}
    assert partitions.with_epochs(offsets) == offsets
    assert epochs(partitions.with_epochs({A: OffsetAndMetadata(3)})) == {A: NO_LEADER_EPOCH}
    given = OffsetAndMetadata(1, leader_epoch=4)
    assert epochs(partitions.with_epochs({A: given})) == {A: 4}
    partitions.pause([A])
    assert epochs(partitions.with_epochs({A: OffsetAndMetadata(2)})) == {A: 5}


def epochs(offsets: Offsets) -> dict[TopicPartition, int]:
    return {tp: one.leader_epoch for tp, one in offsets.items()}
