"""ReadyQueues: which partitions have a batch to send, to which leader, and from when on.

A turn of the sender asks for those alone: what it costs must not grow with the partitions that have
nothing to send. Source: RecordAccumulator.ready 0.8.2.2, which looks at all of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from heapq import heapify, heappop, heappush
from itertools import count

from kafka08.producer.batch import RecordBatch
from kafka08.producer.partition_queue import AT_ONCE, NEVER, PartitionQueue
from kafka08.structs import Broker

Entry = tuple[float, int, PartitionQueue]
"""(due, a number, queue). Of no use any more once `due` is not that of the queue."""


class ReadyQueues:
    """The caller holds the accumulator's lock, and calls `place` after each change of a queue.

    linger_s  seconds that an open batch waits for more records
    ordered   a partition with a request in flight waits
    """

    def __init__(self, *, linger_s: float, ordered: bool) -> None:
        self._linger_s = linger_s
        self._ordered = ordered
        self._ready: dict[Broker | None, OrderedDict[PartitionQueue, None]] = {}
        """By leader, None without one; those that have waited longest come first."""
        self._lingering = Timetable()
        self._backing_off = Timetable()

    @property
    def leaders(self) -> list[Broker]:
        """Brokers to which something can be sent, in their order."""
        return sorted([leader for leader in self._ready if leader is not None])

    @property
    def has_leaderless(self) -> bool:
        """Whether something could be sent if its leader was known."""
        return None in self._ready

    def leaderless_topics(self) -> set[str]:
        """Topics with something that could be sent then."""
        return {queue.tp.topic for queue in self._ready.get(None, ())}

    def advance(self, now: float, *, urgent: bool) -> float:
        """Let those go whose time has come; with `urgent` all that linger. Returns the seconds
        until the next one's time."""
        # What backs off is never urgent.
        for queue in self._lingering.take(NEVER if urgent else now):
            self._add(queue)
        for queue in self._backing_off.take(now):
            self._add(queue)
        return min(self._lingering.next_due, self._backing_off.next_due) - now

    def place(self, queue: PartitionQueue) -> None:
        """Put a queue where it belongs by its batches, its requests in flight and its leader."""
        where = None
        due = NEVER
        if queue.batches and not self.is_busy(queue):
            first = queue.batches[0]
            due = self._due(first)
            if due != AT_ONCE:
                where = self._backing_off if first.attempts else self._lingering
        if due == queue.due:
            return
        if queue.due == AT_ONCE:
            self._remove(queue)
        if where is not None:
            queue.due = due
            where.add(queue)
        elif due == AT_ONCE:
            self._add(queue)

    def is_due(self, batch: RecordBatch, now: float, *, urgent: bool) -> bool:
        """Whether a batch is sendable behind those in front of it. `urgent` as for `advance`."""
        return (urgent and not batch.attempts) or self._due(batch) <= now

    def _due(self, batch: RecordBatch) -> float:
        """When it may be sent: AT_ONCE if it neither backs off nor waits for records."""
        if batch.attempts:
            return batch.retry_at
        if batch.is_open and not batch.is_grown and self._linger_s > 0:
            return batch.created + self._linger_s
        return AT_ONCE

    def put_last(self, queue: PartitionQueue) -> None:
        """`place` one that had its turn: the others of its leader come first."""
        if queue.due == AT_ONCE:
            self._remove(queue)
        self.place(queue)

    def set_leader(self, queue: PartitionQueue, leader: Broker | None) -> None:
        if leader == queue.leader:
            return
        is_ready = queue.due == AT_ONCE
        if is_ready:
            self._remove(queue)
        queue.leader = leader
        if is_ready:
            self._add(queue)

    def is_busy(self, queue: PartitionQueue) -> bool:
        """Whether its batches, at least one, wait for the response to a request."""
        if queue.in_flight > 0 and (self._ordered or queue.is_joined):
            return True
        sequences = queue.sequences
        return sequences is not None and not sequences.may_send(queue.batches[0], queue.in_flight)

    def number_of(self, leader: Broker) -> int:
        """The number of queues with something for it."""
        return len(self._ready.get(leader, ()))

    def first_of(self, leader: Broker) -> PartitionQueue:
        """The queue whose turn it is, of at least one."""
        return next(iter(self._ready[leader]))

    def without(self, reachable: Collection[Broker]) -> list[PartitionQueue]:
        """Queues whose leader is not known, or not `reachable`."""
        return [
            queue
            for leader, queues in self._ready.items()
            if leader is None or leader not in reachable
            for queue in queues
        ]

    def _add(self, queue: PartitionQueue) -> None:
        queue.due = AT_ONCE
        queues = self._ready.get(queue.leader)
        if queues is None:
            queues = self._ready[queue.leader] = OrderedDict()
        queues[queue] = None

    def _remove(self, queue: PartitionQueue) -> None:
        queue.due = NEVER
        queues = self._ready[queue.leader]
        del queues[queue]
        if not queues:
            del self._ready[queue.leader]


class Timetable:
    """Queues by the time at which they are due. One that is due at another time meanwhile is left
    out when its turn comes."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._numbers = count()
        self._compact_at = COMPACT_AT

    def add(self, queue: PartitionQueue) -> None:
        heappush(self._entries, (queue.due, next(self._numbers), queue))
        if len(self._entries) > self._compact_at:
            self._entries = [entry for entry in self._entries if entry[0] == entry[2].due]
            heapify(self._entries)
            self._compact_at = 2 * len(self._entries) + COMPACT_AT

    def take(self, until: float) -> list[PartitionQueue]:
        """Remove those that are due by then, in order."""
        taken = []
        while self._entries and self._entries[0][0] <= until:
            due, _, queue = heappop(self._entries)
            if queue.due == due:
                queue.due = NEVER
                taken.append(queue)
        return taken

    @property
    def next_due(self) -> float:
        """When the next one is due; NEVER without one."""
        while self._entries and self._entries[0][0] != self._entries[0][2].due:
            heappop(self._entries)
        return self._entries[0][0] if self._entries else NEVER


COMPACT_AT = 1000
"""Entries above twice the useful ones: a linger of minutes would collect one for each batch."""
