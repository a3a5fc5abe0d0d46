"""Partitioners of both producers.

The old producer's choose by the key before it is encoded: `partitioner(key, partitions)`.
`partitions` counts all partitions of the topic, leaderless ones too, so that a key keeps its
partition while a broker is down. Never called for None. Source: kafka.producer.Partitioner 0.8.2.2.

The new producer's is any callable with the signature of 0.9's interface:

    def hot_last(topic, key, key_bytes, value, value_bytes, partitions):
        '''Hot keys have the last partition to themselves.'''
        if key in HOT:
            return len(partitions) - 1
        return partition_for_key(key_bytes, len(partitions) - 1)

Source of its default: org.apache.kafka.clients.producer.internals.Partitioner 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kafka08 import kernel
from kafka08.client.metadata import PartitionInfo
from kafka08.config import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from kafka08.hashing import (
    java_bytes_hash,
    java_string_hash,
    masked_partition_of,
    partition_of,
)

Partitioner = Callable[[Any, int], int]
"""The old producer's."""
RecordPartitioner = Callable[[str, Any, bytes | None, Any, bytes | None, Sequence[PartitionInfo]],
                             int]  # fmt: skip
"""The new producer's: `partitioner(topic, key, key_bytes, value, value_bytes, partitions)` returns
a partition number. `partitions` are all of the topic's, leaderless ones too. Called in the thread
that calls send."""

_LIKE_BYTES: Final = (bytes, bytearray, memoryview)
"""A tuple: a union type would be created for every key."""


class DefaultPartitioner:
    """abs(Java's hashCode of the key) % partitions: the same partition as from a JVM producer.

    str               as java.lang.String
    int               as Integer if it fits, else as Long
    bytes and others  as Arrays.hashCode. (The JVM's own hash of a byte[] is its address, so its
                      DefaultPartitioner scatters such keys at random.)

    TypeError for other types, since no other producer could compute their hash.
    """

    def __call__(self, key: Any, partitions: int) -> int:
        if type(key) is int and -INT_MAX <= key <= INT_MAX:
            return abs(key) % partitions  # the same result without four calls
        return partition_of(java_hash(key), partitions)


class ByteArrayPartitioner:
    """abs(Arrays.hashCode(key)) % partitions, as the console producer does. Keys are bytes."""

    def __call__(self, key: bytes | bytearray | memoryview, partitions: int) -> int:
        return partition_of(java_bytes_hash(key), partitions)


def java_hash(key: Any) -> int:
    """`hashCode` of the Java object that corresponds to `key`, see DefaultPartitioner."""
    if isinstance(key, str):
        return java_string_hash(key)
    if isinstance(key, int) and not isinstance(key, bool) and LONG_MIN <= key <= LONG_MAX:
        return key if INT_MIN <= key <= INT_MAX else _long_hash(key)
    if isinstance(key, _LIKE_BYTES):
        return java_bytes_hash(key)
    raise TypeError(
        f"no Java hash for a key of type {type(key).__name__}: use str, int or bytes, give a "
        "partition_key, or set a partitioner of your own"
    )


def _long_hash(value: int) -> int:
    """`Long.hashCode`: the upper half xor the lower one."""
    folded = (value ^ (value >> 32)) & 0xFFFFFFFF
    return folded - 2**32 if folded > INT_MAX else folded


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition, from 0 to `partitions` - 1, of this serialized key in every new producer."""
    return masked_partition_of(kernel.murmur2(key), partitions)
