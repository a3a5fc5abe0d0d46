"""The new producer's default partitioning. Source:
org.apache.kafka.clients.producer.internals.Partitioner 0.8.2.2.

A partitioner of your own is any callable with the signature of 0.9's interface:

    def hot_last(topic, key, key_bytes, value, value_bytes, partitions):
        '''Hot keys have the last partition to themselves.'''
        if key in HOT:
            return len(partitions) - 1
        return partition_for_key(key_bytes, len(partitions) - 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafka08 import kernel
from kafka08.client.metadata import PartitionInfo
from kafka08.hashing import masked_partition_of

RecordPartitioner = Callable[[str, Any, bytes | None, Any, bytes | None, Sequence[PartitionInfo]],
                             int]  # fmt: skip
"""`partitioner(topic, key, key_bytes, value, value_bytes, partitions)` returns a partition number.
`partitions` are all of the topic's, leaderless ones too. Called in the thread that calls send."""


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition, out of `partitions`, of this serialized key in every new producer."""
    return masked_partition_of(kernel.murmur2(key), partitions)
