"""Partitions: the assigned partitions of a KafkaConsumer and their positions.

While a partition is read, the stream and the fetchers hold an OwnedPartition for it. A seek or a
pause revokes that object, which discards everything fetched for it; reading continues with a new
one. Only the user's thread uses this class.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum

from kafka08.consumer.fetching.fetcher_manager import FetcherManager
from kafka08.consumer.fetching.owned_partition import OwnedPartition, Position
from kafka08.consumer.group.committer import Offsets
from kafka08.consumer.group.polled_stream import PolledStream
from kafka08.structs import NO_LEADER_EPOCH, NO_OFFSET, TopicPartition


class Start(Enum):
    """How to find a position that is not known yet."""

    COMMITTED = "committed"
    EARLIEST = "earliest"
    LATEST = "latest"


class TopicPartitionState:
    """One partition.

    position   while it is not read; at NO_OFFSET until it is known
    owned      while it is read
    """

    __slots__ = ("is_paused", "owned", "position", "topic_partition")

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.position = Position(NO_OFFSET)
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
        self._states: dict[TopicPartition, TopicPartitionState] = {}
        self._missing: dict[TopicPartition, Start] = {}
        """Partitions without a position → how to find it."""

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._states)

    def __contains__(self, tp: object) -> bool:
        return tp in self._states

    def __len__(self) -> int:
        return len(self._states)

    def replace(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign these. Partitions that were assigned before keep their positions."""
        self.epoch += 1
        wanted = dict.fromkeys(partitions)
        gone = [tp for tp in self._states if tp not in wanted]
        self._stop([self._states[tp] for tp in gone])
        self._stream.forget_unfinished(gone)
        for tp in gone:
            del self._states[tp]
            self._missing.pop(tp, None)
        for tp in wanted:
            if tp not in self._states:
                self._missing[tp] = Start.COMMITTED
        self._states = {tp: self._states.get(tp) or TopicPartitionState(tp) for tp in wanted}

    @property
    def paused(self) -> list[TopicPartition]:
        return [tp for tp, state in self._states.items() if state.is_paused]

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Return no messages of these, and discard what was fetched of them."""
        states = [self._states[tp] for tp in partitions]
        for state in states:
            state.is_paused = True
        self._stop(states)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        for tp in partitions:
            self._states[tp].is_paused = False
        self._begin(self._states[tp] for tp in partitions)

    def seek(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Continue there."""
        states = [self._states[tp] for tp in positions]
        self._stop(states)
        self._stream.forget_unfinished(positions)
        for state in states:
            self._missing.pop(state.topic_partition, None)
            state.position = positions[state.topic_partition]
        self._begin(states)

    def read_again(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Go back to these offsets, in partitions that are still assigned."""
        back = {tp: offset for tp, offset in offsets.items() if tp in self._states}
        if back:
            self._stop([self._states[tp] for tp in back])
            self.seek(
                {tp: self._states[tp].position._replace(offset=at) for tp, at in back.items()}
            )

    def reset(self, partitions: Collection[TopicPartition], start: Start) -> None:
        """Find new positions when they are needed."""
        states = [self._states[tp] for tp in partitions]
        self._stop(states)
        self._stream.forget_unfinished(partitions)
        self._missing.update(dict.fromkeys(partitions, start))

    def missing(self) -> dict[TopicPartition, Start]:
        """Partitions without a position → how to find it."""
        return dict(self._missing)

    def found(
        self, positions: Mapping[TopicPartition, Position], asked: Mapping[TopicPartition, Start]
    ) -> None:
        """Take the positions that were found for `asked`; one that was set meanwhile stays."""
        self.seek({tp: at for tp, at in positions.items() if self._missing.get(tp) is asked[tp]})

    def position(self, tp: TopicPartition) -> int | None:
        """The offset of the next message; None if it is not known yet."""
        state = self._states[tp]
        if state.owned is not None:
            return self._stream.position_of(state.owned)
        return None if tp in self._missing else state.position.offset

    def positions(self) -> dict[TopicPartition, int]:
        """The known positions, behind the messages that were returned to the user."""
        return self._known(self._stream.positions(self.owned))

    def finished(self) -> dict[TopicPartition, int]:
        """The known positions, before the messages that are not finished yet."""
        found = self.positions()
        for tp, offset in self._stream.unfinished_from.items():
            if tp in found:
                found[tp] = min(found[tp], offset)
        return found

    def with_epochs(self, offsets: Offsets) -> Offsets:
        """These offsets for a commit. Those up to their partition's position get its epoch."""
        known = {}
        for tp in offsets:
            if (state := self._states.get(tp)) is not None:
                owned = state.owned
                epoch = state.position.epoch if owned is None else owned.consumed_epoch
                if epoch != NO_LEADER_EPOCH:
                    known[tp] = state, epoch
        read = self._stream.positions([s.owned for s, _ in known.values() if s.owned is not None])
        found = dict(offsets)
        for tp, (state, epoch) in known.items():
            one = offsets[tp]
            reached = state.position.offset if state.owned is None else read[state.owned]
            if one.leader_epoch == NO_LEADER_EPOCH and one.offset <= reached:
                found[tp] = replace(one, leader_epoch=epoch)
        return found

    @property
    def owned(self) -> list[OwnedPartition]:
        """The partitions that are being read."""
        return [state.owned for state in self._states.values() if state.owned is not None]

    def high_watermark(self, tp: TopicPartition) -> int | None:
        """The high watermark of the last fetch; None before the first one."""
        owned = self._states[tp].owned
        return None if owned is None or owned.high_watermark < 0 else owned.high_watermark

    # -------------------------------------------------------------------------------- its parts

    def _known(self, read: Mapping[OwnedPartition, int]) -> dict[TopicPartition, int]:
        found = {}
        for tp, state in self._states.items():
            if state.owned is not None:
                found[tp] = read[state.owned]
            elif tp not in self._missing:
                found[tp] = state.position.offset
        return found

    def _stop(self, states: Collection[TopicPartitionState]) -> None:
        """Stop reading these, and keep their positions."""
        stopped = [state.owned for state in states if state.owned is not None]
        if not stopped:
            return
        positions = self._stream.positions(stopped)
        self._stream.revoke(stopped)
        for state in states:
            if (owned := state.owned) is not None:
                state.position = Position(
                    positions[owned], owned.consumed_epoch, owned.checked_epoch
                )
                state.owned = None

    def _begin(self, states: Iterable[TopicPartitionState]) -> None:
        begun = []
        for state in states:
            is_known = state.topic_partition not in self._missing
            if is_known and not state.is_paused and state.owned is None:
                state.owned = OwnedPartition(
                    state.topic_partition,
                    thread_id="",
                    sink=self._stream,
                    offset=state.position.offset,
                    epoch=state.position.epoch,
                    checked_epoch=state.position.checked_epoch,
                    fetch_bytes=self._fetch_bytes,
                )
                begun.append(state.owned)
        if begun:
            self._fetchers.begin(begun)
