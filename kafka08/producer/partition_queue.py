"""PartitionQueue: the unsent batches of one partition."""

from __future__ import annotations

from collections import deque
from typing import Final

from kafka08 import kernel
from kafka08.producer.batch import RecordBatch
from kafka08.producer.sequences import Sequences
from kafka08.protocol import compression
from kafka08.structs import Broker, TopicPartition

NO_BATCH: Final = RecordBatch(TopicPartition("", -1), compression.NONE, 0, 0.0)
"""`open` of a queue without an open batch: it has no room for any record."""
AT_ONCE: Final = float("-inf")
NEVER: Final = float("inf")


class PartitionQueue(kernel.OpenSet):
    """The batches of one partition, oldest first; `open` is the last of them, or NO_BATCH, and
    `builder` its set, to which `KafkaProducer.send` appends without the lock.

    leader      the known leader, see ReadyQueues.set_leader
    due         when its first batch may be sent (monotonic seconds): AT_ONCE, or NEVER without one
                or while it waits for a response. Of ReadyQueues
    magic       format of its next batches: the one that its last leader takes
    in_flight   the number of requests with its batches that wait for a response
    used_at     when its last batch was opened, or it was made (monotonic seconds)
    sequences   the numbers of its records; None for a producer that is not idempotent
    is_joined   whether the last of them has several batches. If it is refused, they are sent again
                one by one: until then the partition waits
    """

    __slots__ = (
        "batches",
        "due",
        "in_flight",
        "is_joined",
        "leader",
        "magic",
        "open",
        "sequences",
        "tp",
        "used_at",
    )

    def __init__(
        self,
        tp: TopicPartition,
        magic: int = 0,
        used_at: float = 0.0,
        sequences: Sequences | None = None,
    ) -> None:
        super().__init__()
        self.tp = tp
        self.used_at = used_at
        self.magic = magic
        self.sequences = sequences
        self.batches: deque[RecordBatch] = deque()
        self.open = NO_BATCH
        self.leader: Broker | None = None
        self.due = NEVER
        self.in_flight = 0
        self.is_joined = False

    def enqueue(self, batch: RecordBatch) -> None:
        """Close the last batch, and add `batch`, which may be open."""
        self.close_open()
        self.batches.append(batch)
        if batch.is_open:
            self.open, self.builder = batch, batch.builder

    def close_open(self) -> None:
        """Close the last batch: it accepts no more records."""
        if self.open is not NO_BATCH:
            self.builder = None
            self.open.close()
            self.open = NO_BATCH
