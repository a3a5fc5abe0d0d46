"""StickyTurns: the partitions of records without a key, one until its batch is full or sent.

With round robin a producer that sends now and then to a hundred partitions sends a hundred batches
of one record; with this one batch, to another partition each time. The partitions get the same
share. Source: org.apache.kafka.clients.producer.internals.StickyPartitionCache 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Self

from kafka08.kernel import SetBuilder
from kafka08.producer.partition_queue import PartitionQueue

FULL: Final = 7 / 8
"""A batch with this part of batch.size is left: a record that has no room would open another one in
the same partition."""


class StickyTurns:
    """Yields a queue for each record. Threads may use it at once: then a turn may be shorter.

    queues       the next queue, without an end
    batch_bytes  batch.size
    """

    def __init__(self, queues: Iterator[PartitionQueue], batch_bytes: int) -> None:
        self._queues = queues
        self._full = int(batch_bytes * FULL)
        self._queue = next(queues)
        self._builder: SetBuilder | None = None
        """The open set of the queue, once it has the first record of this turn."""
        self._is_new = True

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> PartitionQueue:
        queue = self._queue
        builder = queue.builder
        if self._is_new:
            self._is_new = False
            self._builder = builder
        if builder is not None and builder is self._builder and builder.size < self._full:
            return queue
        self._queue = queue = next(self._queues)
        self._is_new = True
        return queue
