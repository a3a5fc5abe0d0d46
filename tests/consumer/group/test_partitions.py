"""Which partitions are read, from where, and what a search for positions may change."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from kafka08.consumer.fetching.fetcher_manager import FetcherManager
from kafka08.consumer.fetching.owned_partition import OwnedPartition
from kafka08.consumer.group.partitions import Partitions, Start
from kafka08.consumer.group.polled_stream import PolledStream
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from tests.consumer.streams import chunk_of

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


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
    positions = {TopicPartition("t", int(name[1:])): at for name, at in offsets.items()}
    partitions.found(positions, partitions.missing())


def test_a_position_that_was_reset_during_a_search_is_searched_again() -> None:
    """The result of the search belongs to the position before the reset."""
    partitions, _, begun = partitions_of(A)
    asked = partitions.missing()
    partitions.reset([A], Start.LATEST)
    partitions.found({A: 5}, asked)
    assert partitions.position(A) is None
    assert partitions.missing() == {A: Start.LATEST}
    assert begun == []


def test_a_position_that_was_set_during_a_search_stays() -> None:
    """A seek during a search wins over the position that the search finds."""
    partitions, _, begun = partitions_of(A)
    asked = partitions.missing()
    partitions.seek({A: 7})
    partitions.found({A: 5}, asked)
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
    partitions.seek({A: 9})
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
