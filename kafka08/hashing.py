"""The hashes of the JVM that choose the partition of a key or group, and a fetcher. Pure.

Every result is a signed 32-bit int, as in Java. There are two ways from a hash to a partition:

    old producer, coordinators      abs(hash) % n            `partition_of` (abs of MIN_VALUE is 0)
    new producer (0.8.2)            (hash & 0x7fffffff) % n  `masked_partition_of`

so `ref-g1` belongs to partition 42 of 50 by the first and to 6 by the second. Sources:
java.lang.String, java.util.Arrays; kafka.utils.Utils.abs and
org.apache.kafka.common.utils.Utils.murmur2 0.8.2.2.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kafka08.config import INT_MAX, INT_MIN
from kafka08.structs import TopicPartition

_MASK: Final = 0xFFFFFFFF


def java_string_hash(text: str) -> int:
    """`String.hashCode`: 31·h + c over the UTF-16 code units; 0 for ""."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for i in range(0, len(units), 2):
        value = (31 * value + (units[i] << 8 | units[i + 1])) & _MASK
    return _signed(value)


def java_bytes_hash(data: bytes | bytearray | memoryview) -> int:
    """`Arrays.hashCode(byte[])`: 31·h + b over signed bytes, beginning with 1."""
    value = 1
    for byte in bytes(data):
        value = (31 * value + (byte - 256 if byte > 127 else byte)) & _MASK
    return _signed(value)


def java_abs(value: int) -> int:
    """Absolute value of a Java int, with MIN_VALUE → 0. Source: kafka.utils.Utils.abs."""
    return 0 if value == INT_MIN else abs(value)


def partition_of(value: int, partitions: int) -> int:
    """Partition of a hash among `partitions` (> 0), as the old producer takes it."""
    return java_abs(value) % partitions


def masked_partition_of(value: int, partitions: int) -> int:
    """Partition of a hash among `partitions` (> 0), as the new producer takes it."""
    return (value & INT_MAX) % partitions


def group_partition(group: str, partitions: int) -> int:
    """Partition of __consumer_offsets that stores `group`, of `partitions` (> 0).

    Source: kafka.server.OffsetManager.partitionFor.
    """
    return partition_of(java_string_hash(group), partitions)


@lru_cache(1000)  # Each request of a transaction asks for it, and the hash is plain Python.
def transaction_partition(transactional_id: str, partitions: int) -> int:
    """Partition of __transaction_state that stores a transactional id, of `partitions` (> 0).

    Source: kafka.coordinator.transaction.TransactionStateManager.partitionFor 0.11.0.2.
    """
    return partition_of(java_string_hash(transactional_id), partitions)


def fetcher_of(topic_partition: TopicPartition, fetchers: int) -> int:
    """The number of the fetcher of a partition, of `fetchers` (> 0), as with num.replica.fetchers.

    Source: kafka.server.AbstractFetcherManager.getFetcherId.
    """
    value = 31 * java_string_hash(topic_partition.topic) + topic_partition.partition
    return partition_of(_signed(value & _MASK), fetchers)


def murmur2(data: bytes | bytearray | memoryview) -> int:
    """32-bit murmur2 with Kafka's seed; the new producer's hash of a serialized key."""
    data = bytes(data)
    size = len(data)
    m = 0x5BD1E995
    value = 0x9747B28C ^ size
    whole = size & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & _MASK
        k = (k ^ k >> 24) * m & _MASK
        value = value * m & _MASK ^ k
    if size != whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * m & _MASK
    value = (value ^ value >> 13) * m & _MASK
    return _signed(value ^ value >> 15)


def _signed(value: int) -> int:
    return value - 2**32 if value & 0x80000000 else value
