"""The records of a partition of __consumer_offsets or __transaction_state, in which they are the
state of a coordinator."""

from __future__ import annotations

from collections.abc import Iterator

from kafka08.client import ClusterClient
from kafka08.clock import Clock
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.consumer.partition_reader import PartitionReader
from kafka08.structs import TopicPartition


def records_of(
    cluster: ClusterClient, tp: TopicPartition, start: int, end: int, clock: Clock
) -> Iterator[tuple[bytes, bytes | None]]:
    """(key, value) of each record with a key, from `start` on, up to `end` at least, or to the
    log's end if it comes first. Raises as PartitionReader.poll."""
    reader = PartitionReader(cluster, tp, start, clock=clock)
    while (before := reader.position) < end:
        for batch in reader.poll(BatchLimits()):
            for key, value in zip(batch.keys(), batch.values(), strict=True):
                if key is not None:
                    yield key, value
        if reader.position == before:
            return
