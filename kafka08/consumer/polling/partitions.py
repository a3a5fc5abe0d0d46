"""Partitions: the assigned partitions of a KafkaConsumer and their positions.

While a partition is read, the stream and the fetchers hold an OwnedPartition for it. A seek or a
pause revokes that object, which discards everything fetched for it; reading continues with a new
one. Only the user's thread uses this class.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum

from kafka08.consumer.fetcher_manager import FetcherManager
from kafka08.consumer.owned_partition import OwnedPartition
from kafka08.consumer.polling.polled_stream import PolledStream
from kafka08.structs import NO_OFFSET, TopicPartition


class Start(Enum):
    """How to find a position that is not known yet."""

    COMMITTED = "committed"
    EARLIEST = "earliest"
    LATEST = "latest"


class Place:
    """One partition.

    position   while it is not read; NO_OFFSET until it is known
    owned      while it is read
    """

    __slots__ = ("is_paused", "owned", "position", "topic_partition")

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.position = NO_OFFSET
        self.is_paused = False
        self.owned: OwnedPartition | None = None


class Partitions:
    """See the module.

    fetch_bytes   max.partition.fetch.bytes
    epoch         increases with each assignment
    """

    def __init__(self, stream: PolledStream, fetchers: FetcherManager, fetch_bytes: int) -> None:
        self._stream = stream
        self._fetchers = fetchers
        self._fetch_bytes = fetch_bytes
        self.epoch = 0
        self._places: dict[TopicPartition, Place] = {}
        self._missing: dict[TopicPartition, Start] = {}
        """Partitions without a position → how to find it."""

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._places)

    def __contains__(self, tp: object) -> bool:
        return tp in self._places

    def __len__(self) -> int:
        return len(self._places)

    def replace(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign these. Partitions that were assigned before keep their positions."""
        self.epoch += 1
        wanted = dict.fromkeys(partitions)
        gone = [tp for tp in self._places if tp not in wanted]
        self._stop([self._places[tp] for tp in gone])
        self._stream.forget_in_hand(gone)
        for tp in gone:
            del self._places[tp]
            self._missing.pop(tp, None)
        for tp in wanted:
            if tp not in self._places:
                self._missing[tp] = Start.COMMITTED
        self._places = {tp: self._places.get(tp) or Place(tp) for tp in wanted}

    @property
    def paused(self) -> list[TopicPartition]:
        return [tp for tp, place in self._places.items() if place.is_paused]

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Return no messages of these, and discard what was fetched of them."""
        places = [self._places[tp] for tp in partitions]
        for place in places:
            place.is_paused = True
        self._stop(places)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        for tp in partitions:
            self._places[tp].is_paused = False
        self._begin(self._places[tp] for tp in partitions)

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Continue at these offsets."""
        places = [self._places[tp] for tp in positions]
        self._stop(places)
        self._stream.forget_in_hand(positions)
        for place in places:
            self._missing.pop(place.topic_partition, None)
            place.position = positions[place.topic_partition]
        self._begin(places)

    def reset(self, partitions: Collection[TopicPartition], start: Start) -> None:
        """Find new positions when they are needed."""
        places = [self._places[tp] for tp in partitions]
        self._stop(places)
        self._stream.forget_in_hand(partitions)
        self._missing.update(dict.fromkeys(partitions, start))

    def missing(self) -> dict[TopicPartition, Start]:
        """Partitions without a position → how to find it."""
        return dict(self._missing)

    def found(
        self, positions: Mapping[TopicPartition, int], asked: Mapping[TopicPartition, Start]
    ) -> None:
        """Take the positions that were found for `asked`; one that was set meanwhile stays."""
        self.seek(
            {tp: offset for tp, offset in positions.items() if self._missing.get(tp) is asked[tp]}
        )

    def position(self, tp: TopicPartition) -> int | None:
        """The offset of the next message; None if it is not known yet."""
        place = self._places[tp]
        if place.owned is not None:
            return self._stream.position_of(place.owned)
        return None if tp in self._missing else place.position

    def positions(self) -> dict[TopicPartition, int]:
        """The known positions, behind the messages that were returned to the user."""
        return self._known(self._stream.positions(self.owned))

    def finished(self) -> dict[TopicPartition, int]:
        """The known positions, before the messages that are not finished yet."""
        found = self.positions()
        for tp, offset in self._stream.in_hand.items():
            if tp in found:
                found[tp] = min(found[tp], offset)
        return found

    @property
    def owned(self) -> list[OwnedPartition]:
        """The partitions that are being read."""
        return [place.owned for place in self._places.values() if place.owned is not None]

    def high_watermark(self, tp: TopicPartition) -> int | None:
        """The high watermark of the last fetch; None before the first one."""
        owned = self._places[tp].owned
        return None if owned is None or owned.high_watermark < 0 else owned.high_watermark

    # -------------------------------------------------------------------------------- its parts

    def _known(self, read: Mapping[OwnedPartition, int]) -> dict[TopicPartition, int]:
        found = {}
        for tp, place in self._places.items():
            if place.owned is not None:
                found[tp] = read[place.owned]
            elif tp not in self._missing:
                found[tp] = place.position
        return found

    def _stop(self, places: Collection[Place]) -> None:
        """Stop reading these, and keep their positions."""
        owned = [place.owned for place in places if place.owned is not None]
        if not owned:
            return
        positions = self._stream.positions(owned)
        self._stream.revoke(owned)
        for place in places:
            if place.owned is not None:
                place.position = positions[place.owned]
                place.owned = None

    def _begin(self, places: Iterable[Place]) -> None:
        begun = []
        for place in places:
            is_known = place.topic_partition not in self._missing
            if is_known and not place.is_paused and place.owned is None:
                place.owned = OwnedPartition(
                    place.topic_partition,
                    thread_id="",
                    sink=self._stream,
                    offset=place.position,
                    fetch_bytes=self._fetch_bytes,
                )
                begun.append(place.owned)
        if begun:
            self._fetchers.begin(begun)
